#!/usr/bin/env python3
"""verl's agent loop on one task, with a scripted policy behind the server manager: python3 verl_loop.py TASK"""

import asyncio
import types
from typing import Any

from _script import Tokenizer, real_or_stub, tagged, task

RUNS_WITH = real_or_stub("verl")
from proctor_client.verl import ProctorAgentLoop  # noqa: E402


class ServerManager:
    """In place of verl's AsyncLLMServerManager: token in, token out."""

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> Any:
        seen = [part.split("<|end|>")[0] for part in bytes(prompt_ids).decode().split("<|tool|>")[1:]]
        ids = list((tagged(seen) + "<|end|>").encode())
        return types.SimpleNamespace(token_ids=ids, log_probs=[-0.5] * len(ids))


def run(task_id: str, blocked: str = "mask") -> Any:
    async def go() -> Any:
        rollout = types.SimpleNamespace(response_length=100_000)
        config = types.SimpleNamespace(actor_rollout_ref=types.SimpleNamespace(rollout=rollout))
        loop = ProctorAgentLoop(types.SimpleNamespace(config=config), ServerManager(), Tokenizer(), None, blocked=blocked, options={"hardening": False})
        return await loop.run({"temperature": 1.0}, raw_prompt=[], extra_info={"task_id": task_id})

    return asyncio.run(go())


if __name__ == "__main__":
    out = run(task())
    print(f"{RUNS_WITH}: reward {out.reward_score}, {out.num_turns} turns, {sum(out.response_mask)} of {len(out.response_ids)} tokens train")
