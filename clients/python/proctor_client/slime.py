"""slime: `--custom-generate-function-path proctor_client.slime.generate`.

generate(args, sample, sampling_params) runs the policy through the rollout's model gateway, with the tools of the
rollout, until it submits, stops calling tools or has had its turns. Token ids, logprobs and masks come from the
server's record, cut into segments: one Sample a segment, all of them with the rollout's reward.

sample.metadata carries task_id. PROCTOR_URL and PROCTOR_API_KEY name the server, PROCTOR_TURNS the turns (50).
"""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from ._aio import AsyncClient
from ._http import Transport


async def generate(args: Any, sample: Any, sampling_params: dict[str, Any]) -> Any:
    router = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/v1"
    policy = {"name": getattr(args, "proctor_policy", "policy"), "base_url": router, "model": getattr(args, "proctor_model", "policy")}
    async with AsyncClient() as server:
        ro = await server.rollout(sample.metadata["task_id"], policy=policy)
        async with ro:
            await _play(server, ro, sampling_params)
            grade = await ro.grade()
            record = await ro.trajectory()
    return samples_of(sample, record, grade.reward)


async def _play(server: AsyncClient, ro: Any, sampling_params: dict[str, Any]) -> None:
    gateway = Transport(ro.url, ro.agent_token, 7300, 8)
    tools = [{"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.input_schema}} for t in ro.tools]
    messages: list[dict[str, Any]] = [{"role": "user", "content": ro.instruction}]
    wanted = {k: sampling_params[k] for k in ("temperature", "top_p") if k in sampling_params}
    if "max_new_tokens" in sampling_params:
        wanted["max_tokens"] = sampling_params["max_new_tokens"]
    for turn in range(int(os.environ.get("PROCTOR_TURNS", "50"))):
        body = {"model": "policy", "messages": messages, "tools": tools, **wanted}
        answer = await server.run(gateway.send, "POST", f"/v1/rollouts/{ro.id}/openai/v1/chat/completions", body, key=f"turn-{turn}")
        said = answer["choices"][0]["message"]
        messages.append(said)
        calls = said.get("tool_calls") or []
        if not calls:
            return
        for c in calls:
            try:
                arguments = json.loads(c["function"]["arguments"] or "{}")
                seen = (await ro.call(c["function"]["name"], arguments, call_id=c["id"])).output
            except Exception as error:  # the model's mistake is the model's to read
                if getattr(error, "code", "invalid_call") != "invalid_call" and not isinstance(error, ValueError):
                    raise
                seen = str(error)
            messages.append({"role": "tool", "tool_call_id": c["id"], "content": seen})
            if c["function"]["name"] == "submit":
                return


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
