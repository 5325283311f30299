"""The agent loop that adapters share: a policy behind the model gateway, with a rollout's tools."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Optional

from ._aio import AsyncClient, AsyncRollout
from ._errors import Problem
from ._http import Transport
from ._types import Grade


def default_turns() -> int:
    """How many answers of the policy a rollout has, from PROCTOR_TURNS; 50 where that is not set."""
    return int(os.environ.get("PROCTOR_TURNS", "50"))


@dataclasses.dataclass
class Played:
    """A rollout that was played to its end. export holds its documents in the form asked for, where one was."""

    id: str
    messages: list[dict[str, Any]]
    turns: int
    grade: Grade
    record: dict[str, Any]
    export: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def tool_schemas(ro: Any) -> list[dict[str, Any]]:
    """The rollout's tools as OpenAI's chat completions take them."""
    return [{"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.input_schema}} for t in ro.tools]


async def answer_call(ro: AsyncRollout, name: str, arguments: Any, call_id: str = "") -> str:
    """Makes a tool call and gives what the model is to read. What does not fit the tool is the model's mistake
    and its to read; anything else is raised. arguments is a dict, or its JSON as it was sampled."""
    try:
        read = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
        return (await ro.call(name, read, call_id=call_id)).output
    except ValueError as error:
        return f"the arguments are no JSON: {error}"
    except Problem as error:
        if error.code != "invalid_call":
            raise
        return str(error)


async def play(server: AsyncClient, ro: AsyncRollout, sampling: dict[str, Any], turns: Optional[int] = None) -> tuple[list[dict[str, Any]], int]:
    """Runs the policy until it submits, calls no tool, or has had its turns: the conversation, and how many
    answers it gave. sampling is what a chat completions request takes beside messages and tools."""
    gateway = Transport(ro.url, ro.agent_token, 7300, 8)
    tools, messages = tool_schemas(ro), [{"role": "user", "content": ro.instruction}]
    for turn in range(turns or default_turns()):
        body = {"model": "policy", "messages": messages, "tools": tools, **sampling}
        answer = await server.run(gateway.send, "POST", f"/v1/rollouts/{ro.id}/openai/v1/chat/completions", body, key=f"turn-{turn}")
        said = answer["choices"][0]["message"]
        messages.append({k: v for k, v in said.items() if v is not None or k == "content"})
        calls = said.get("tool_calls") or []
        if not calls:
            return messages, turn + 1
        for c in calls:
            seen = await answer_call(ro, c["function"]["name"], c["function"]["arguments"], c["id"])
            messages.append({"role": "tool", "tool_call_id": c["id"], "content": seen})
            if c["function"]["name"] == "submit":
                return messages, turn + 1
    return messages, turns or default_turns()


async def roll(server: AsyncClient, task_id: str, policy: dict[str, Any], sampling: dict[str, Any], *, turns: Optional[int] = None,
               form: str = "", blocked: str = "keep", **options: Any) -> Played:
    """One rollout from creation to reward. options are those of creation. A rollout whose blocked calls leave
    it out (blocked="reject") has an empty export."""
    async with await server.rollout(task_id, policy=policy, **options) as ro:
        messages, used = await play(server, ro, sampling, turns)
        grade = await ro.grade()
        record = await ro.trajectory()
        try:
            export = await ro.export(form, blocked) if form else []
        except Problem as error:
            if error.code != "rollout_rejected":
                raise
            export = []
    return Played(ro.id, messages, used, grade, record, export)
