"""slime: `--custom-generate-function-path proctor_client.slime.generate`.

generate(args, sample, sampling_params) runs the policy through the rollout's model gateway, with the tools of the
rollout, until it submits, stops calling tools or has had its turns. Token ids, logprobs and masks come from the
server's record, cut into segments: one Sample a segment, all of them with the rollout's reward.

sample.metadata carries task_id; args.proctor_options, where it is there, what a rollout is created with. PROCTOR_URL and PROCTOR_API_KEY name the server, PROCTOR_TURNS the turns (50).
"""

from __future__ import annotations

import copy
from typing import Any

from ._aio import AsyncClient
from ._loop import roll


async def generate(args: Any, sample: Any, sampling_params: dict[str, Any]) -> Any:
    router = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/v1"
    policy = {"name": getattr(args, "proctor_policy", "policy"), "base_url": router, "model": getattr(args, "proctor_model", "policy")}
    async with AsyncClient() as server:
        played = await roll(server, sample.metadata["task_id"], policy, openai_sampling(sampling_params),
                            **getattr(args, "proctor_options", {}))
    return samples_of(sample, played.record, played.grade.reward)


def openai_sampling(sampling_params: dict[str, Any]) -> dict[str, Any]:
    """SGLang's sampling parameters as a chat completions request has them."""
    wanted = {k: sampling_params[k] for k in ("temperature", "top_p") if k in sampling_params}
    if "max_new_tokens" in sampling_params:
        wanted["max_tokens"] = sampling_params["max_new_tokens"]
    return wanted


def samples_of(sample: Any, record: dict[str, Any], reward: Any) -> list[Any]:
    """One Sample a segment that trains. A reward nobody knows gives samples that train nothing."""
    out = []
    for s in record["segments"]:
        if not any(s["loss_mask"]):
            continue
        one = copy.deepcopy(sample)
        first = s["action_mask"].index(1)
        one.tokens, one.response_length = list(s["tokens"]), len(s["tokens"]) - first
        one.loss_mask = [0] * one.response_length if reward is None else list(s["loss_mask"][first:])
        one.rollout_log_probs, one.reward = list(s["logprobs"][first:]), 0.0 if reward is None else reward
        out.append(one)
    return out
