#!/usr/bin/env python3
"""SkyRL's environment and generator on one task, with a scripted policy: python3 skyrl_generator.py TASK"""

import asyncio
from typing import Any

from _script import PolicyServer, real_or_stub, tagged, task

RUNS_WITH = real_or_stub("skyrl_gym")
from proctor_client.skyrl import ProctorEnv, ProctorGenerator  # noqa: E402


def environment(task_id: str) -> tuple[float, list[str]]:
    """What SkyRL's own generator does with an environment."""
    env = ProctorEnv({"options": {"hardening": False}}, {"task_id": task_id, "max_turns": 10})
    try:
        env.init([])
        seen: list[str] = []
        while True:
            out = env.step(tagged(seen))
            if out["done"]:
                return out["reward"], seen
            seen.append(out["observations"][0]["content"])
    finally:
        env.close()


def generator(task_id: str, n: int = 2, blocked: str = "mask") -> dict[str, Any]:
    """What SkyRL's trainer does with a generator: n samples of a prompt."""
    with PolicyServer() as policy:
        g = ProctorGenerator({"name": "skyrl", "base_url": policy.url, "model": "script"}, blocked=blocked, hardening=False)
        batch = {"prompts": [[]] * n, "env_classes": ["proctor"] * n, "env_extras": [{"task_id": task_id}] * n, "trajectory_ids": list(range(n)),
                 "sampling_params": {"temperature": 1.0, "max_generate_length": 100}, "batch_metadata": None}
        return asyncio.run(g.generate(batch))


if __name__ == "__main__":
    print(f"{RUNS_WITH}: the environment's reward {environment(task())[0]}, the generator's {generator(task())['rewards']}")
