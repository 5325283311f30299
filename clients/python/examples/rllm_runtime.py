#!/usr/bin/env python3
"""rLLM's remote runtime and environment on one task, with a scripted policy: python3 rllm_runtime.py TASK"""

import asyncio
import types
from typing import Any

from _script import PolicyServer, real_or_stub, tagged, task

RUNS_WITH = real_or_stub("rllm")
from proctor_client.rllm import ProctorEnv, ProctorRuntime  # noqa: E402


def runtime(task_ids: list[str]) -> list[Any]:
    """What rLLM's remote engine does with a runtime."""
    with PolicyServer() as policy:
        r = ProctorRuntime(turns=10, hardening=False)
        r.initialize()
        submissions = [types.SimpleNamespace(task={"task_id": t}, session_id=f"s{i}", task_id=t, inference_url=policy.url, api_key="") for i, t in enumerate(task_ids)]
        results = asyncio.run(r.execute_tasks(submissions, timeout=120))
        r.shutdown()
        return results


def environment(task_id: str) -> tuple[float, list[str]]:
    """What rLLM's execution engine does with an environment."""
    env = ProctorEnv.from_dict({"task": {"task_id": task_id}, "hardening": False})
    env.reset()
    seen: list[str] = []
    while True:
        observation, reward, done, _ = env.step(tagged(seen))
        if done:
            env.close()
            return reward, seen
        seen.append(observation["tool_outputs"])


if __name__ == "__main__":
    print(f"{RUNS_WITH}: rewards {[r.reward for r in runtime([task()] * 2)]}, the environment's {environment(task())[0]}")
