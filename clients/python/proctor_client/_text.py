"""Tool calls in plain text, for trainers whose environments see what the policy wrote and nothing more."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:bash|sh|shell)\n(.*?)(?:```|\Z)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class TextCall:
    """A call that was written down. error is what the model is to read where it cannot be made, else empty."""

    name: str
    arguments: dict[str, Any]
    error: str = ""


def calls_in(text: str) -> list[TextCall]:
    """The calls in a policy's answer, in order: <tool_call>{"name": ..., "arguments": {...}}</tool_call>, or, where
    there is none, ```bash blocks. A block that is cut off at the end counts: its text is what was sampled."""
    tagged = _TAGGED.findall(text)
    if tagged:
        return [_tagged(t) for t in tagged]
    return [TextCall("bash", {"command": command.strip()}) for command in _FENCED.findall(text) if command.strip()]


def _tagged(text: str) -> TextCall:
    try:
        call = json.loads(text)
        name, arguments = call["name"], call.get("arguments") or {}
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise ValueError("name must be text and arguments an object")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return TextCall("", {}, f'the call does not read as {{"name": ..., "arguments": {{...}}}}: {error}')
    return TextCall(name, arguments)


def how_to_call(tools: list[Any]) -> str:
    """Words for a prompt that say how to make calls, with the tools' schemas."""
    listed = "\n".join(json.dumps({"name": t.name, "description": t.description, "parameters": t.input_schema}) for t in tools)
    return ('Call tools by writing <tool_call>{"name": NAME, "arguments": {...}}</tool_call>; what they give comes in the '
            f"next message. Call submit when you are done. The tools:\n{listed}")
