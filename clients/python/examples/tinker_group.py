#!/usr/bin/env python3
"""Tinker's groups of message environments on one task, with a scripted policy: python3 tinker_group.py TASK"""

import asyncio

from _script import real_or_stub, tagged, task

RUNS_WITH = real_or_stub("tinker_cookbook")
from proctor_client.tinker import ProctorGroup, ProctorMessageEnv  # noqa: E402


async def episode(env: ProctorMessageEnv) -> tuple[float, list[str], dict[str, float]]:
    """What EnvFromMessageEnv does with a message environment, without its renderer."""
    await env.initial_observation()
    seen: list[str] = []
    while True:
        out = await env.step({"role": "assistant", "content": tagged(seen)})
        if out.episode_done:
            return out.reward, seen, out.metrics
        seen.append(out.next_messages[-1]["content"])


def run(task_id: str, n: int = 2) -> list[tuple[float, list[str], dict[str, float]]]:
    async def go() -> list[tuple[float, list[str], dict[str, float]]]:
        envs = await ProctorGroup(task_id, n, None, max_turns=10, hardening=False).make_envs()
        return list(await asyncio.gather(*(episode(e.message_env) for e in envs)))

    return asyncio.run(go())


if __name__ == "__main__":
    print(f"{RUNS_WITH}: rewards {[reward for reward, _, _ in run(task())]}")
