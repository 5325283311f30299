#!/usr/bin/env python3
"""slime's custom generate function on one task, with a scripted policy: python3 slime_generate.py TASK"""

import asyncio
import types
import urllib.parse
from typing import Any

from _script import PolicyServer, task

from proctor_client.slime import generate


def run(task_id: str) -> list[Any]:
    """What slime's rollout does: generate(args, sample, sampling_params). args names SGLang's router."""
    with PolicyServer() as policy:
        at = urllib.parse.urlsplit(policy.url)
        args = types.SimpleNamespace(sglang_router_ip=at.hostname, sglang_router_port=at.port, proctor_model="script", proctor_options={"hardening": False})
        sample = types.SimpleNamespace(metadata={"task_id": task_id}, prompt="")
        return asyncio.run(generate(args, sample, {"temperature": 1.0, "max_new_tokens": 100}))


if __name__ == "__main__":
    for s in run(task()):
        print(f"a sample of {len(s.tokens)} tokens, {sum(s.loss_mask)} of them train, reward {s.reward}")
