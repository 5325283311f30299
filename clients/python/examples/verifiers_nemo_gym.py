#!/usr/bin/env python3
"""verifiers' own NeMo-Gym taskset on Proctor's NeMo-Gym server, with a scripted policy: python3 verifiers_nemo_gym.py TASK

verifiers and prime-rl reach Proctor by configuration alone: resources_url is /compat/nemo-gym, and a dataset row names its
task. Here the parts of the real package are joined by hand, so that the example needs neither uv nor a model: its
taskset reads the rows, its task seeds the session and verifies, its toolset makes the calls, its trace is what is verified.
Needs verifiers from PyPI (0.4 or newer).
"""

import asyncio
import json
import os
import pathlib
import tempfile
from typing import Any

from _script import next_call, task
from proctor_client import Client
from verifiers.v1 import AgentConfig
from verifiers.v1.graph import MessageNode
from verifiers.v1.mcp import SharedToolsetConfig
from verifiers.v1.mcp import server as channel
from verifiers.v1.tasksets.nemo_gym.taskset import NeMoGymConfig, NeMoGymTaskConfig, NeMoGymTaskset
from verifiers.v1.tasksets.nemo_gym.toolset import NeMoGymState, NeMoGymToolset
from verifiers.v1.trace import AgentInfo, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, ToolCall, ToolMessage, UserMessage


def rows(client: Client, task_ids: list[str]) -> list[dict[str, Any]]:
    """Dataset rows for these tasks, with the tools that the server has."""
    tools = client.nemo_gym_tools()
    instructions = {t["id"]: t.get("instruction", "") for t in client.tasks()}
    return [{"task_id": t, "responses_create_params": {"model": "policy", "input": [{"role": "user", "content": instructions[t]}], "tools": tools}}
            for t in task_ids]


async def episode(url: str, key: str, path: pathlib.Path) -> tuple[float, list[str], Trace]:
    config = NeMoGymConfig(dataset=path, task=NeMoGymTaskConfig(resources_url=url + "/compat/nemo-gym", headers={"Authorization": "Bearer " + key}))
    (one,) = list(NeMoGymTaskset(config))
    nodes = [MessageNode(message=UserMessage(content=one.data.prompt[0].content))]
    trace = Trace[type(one.data), NeMoGymState](task=TraceTask(type="NeMoGymTask", data=one.data), agent=AgentInfo(config=AgentConfig.model_construct()),
                                                 nodes=nodes, state=NeMoGymState())
    await one.setup(trace, runtime=None)  # type: ignore[arg-type]
    tools, seen = NeMoGymToolset(SharedToolsetConfig()), []
    token = channel._call_state.set(trace.state)
    try:
        offered = {t.name for t in await tools.list_tools()}
        while (call := next_call(seen))[0] != "submit":
            assert call[0] in offered, call
            got = await tools.call_tool(*call)
            assert not got.is_error, got
            seen.append(json.loads(got.content[0].text)["output"])
            name = f"call_{len(seen)}"
            for message in (AssistantMessage(tool_calls=[ToolCall(id=name, name=call[0], arguments=json.dumps(call[1]))]), ToolMessage(tool_call_id=name, content=seen[-1])):
                nodes.append(MessageNode(parent=len(nodes) - 1, message=message, sampled=message.role == "assistant"))
        trace.nodes = nodes
    finally:
        channel._call_state.reset(token)
    return await one.nemo_gym(trace), seen, trace


def run(task_id: str) -> tuple[float, list[str], Trace]:
    with Client() as client, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.jsonl"
        path.write_text("".join(json.dumps(r) + "\n" for r in rows(client, [task_id])))
        return asyncio.run(episode(client.url, os.environ["PROCTOR_API_KEY"], path))


if __name__ == "__main__":
    reward, seen, trace = run(task())
    print(f"reward {reward}, {len(seen)} calls, the first answered {seen[0]!r}, metrics {trace.metrics}")
