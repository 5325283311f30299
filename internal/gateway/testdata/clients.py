"""Asks a gateway with the official clients of OpenAI and Anthropic, whole and streamed, and prints what
they gave as one JSON object.

    clients.py GATEWAY [short]        short: answers of a few tokens, from a real server
"""
import json
import sys

import anthropic
import openai

base = sys.argv[1]
short = len(sys.argv) > 2
limit = 12 if short else 200
prompt = [{"role": "user", "content": "List the files."}]
schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
tools = {} if short else {"tools": [{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": schema}}]}
claude_tools = {} if short else {"tools": [{"name": "bash", "description": "Runs a command.", "input_schema": schema}]}
got = {}


def said(text, name, arguments, reason):
    return "|".join([text or "", name, arguments, reason or ""])


client = openai.OpenAI(base_url=base + "/openai/v1", api_key="token", max_retries=0)
assert [m.id for m in client.models.list()], "no models"
r = client.chat.completions.create(model="any", messages=prompt, logprobs=True, max_tokens=limit, **tools)
call = (r.choices[0].message.tool_calls or [None])[0]
got["openai"] = said(r.choices[0].message.content, call.function.name if call else "", call.function.arguments if call else "", r.choices[0].finish_reason)
got["openai"] += f"|{r.choices[0].logprobs.content[0].logprob}"

text, name, arguments, reason = "", "", "", ""
for chunk in client.chat.completions.create(model="any", messages=prompt, stream=True, max_tokens=limit, **tools):
    for choice in chunk.choices:
        text += choice.delta.content or ""
        reason = choice.finish_reason or reason
        for t in choice.delta.tool_calls or []:
            name += t.function.name or ""
            arguments += t.function.arguments or ""
got["openai_stream"] = said(text, name, arguments, reason)

claude = anthropic.Anthropic(base_url=base + "/anthropic", api_key="token", max_retries=0)


def blocks(message):
    text = "".join(b.text for b in message.content if b.type == "text")
    use = next((b for b in message.content if b.type == "tool_use"), None)
    return said(text, use.name if use else "", json.dumps(use.input) if use else "", message.stop_reason)


got["anthropic"] = blocks(claude.messages.create(model="any", max_tokens=limit, messages=prompt, **claude_tools))
with claude.messages.stream(model="any", max_tokens=limit, system="Be brief.", messages=prompt, **claude_tools) as stream:
    for _ in stream.text_stream:
        pass
    got["anthropic_stream"] = blocks(stream.get_final_message())
print(json.dumps(got))
