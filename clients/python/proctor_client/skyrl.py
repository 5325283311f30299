"""SkyRL: an environment, and a generator.

ProctorEnv is a BaseTextEnv, for SkyRL's own generator: register(id="proctor", entry_point="proctor_client.skyrl:ProctorEnv"),
and rows with env_class "proctor" and task_id. The policy's calls are read out of its text.

ProctorGenerator is a GeneratorInterface: the policy is asked through the rollout's model gateway, at the base URL
of SkyRL's HTTP endpoint, and tokens, logprobs and masks come from the server's record. With blocked="mask" the turns
with a blocked call have loss mask 0. Every segment is a row; a rollout of several needs step_wise=True, as
generator.step_wise_trajectories has it.

A rollout whose reward nobody knows trains nothing in the generator; the environment, which has no word for it,
gives 0 and says reward_known False in its metadata.
"""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
from skyrl_train.generators.base import GeneratorInput, GeneratorInterface, GeneratorOutput

from ._aio import AsyncClient
from ._errors import BadCall
from ._loop import Played, default_turns, roll
from ._sync import Client, Rollout
from ._text import calls_in, how_to_call


class ProctorEnv(BaseTextEnv):
    """env_config may hold url, key and options of a rollout; extras the row's task_id and max_turns."""

    def __init__(self, env_config: Any, extras: Optional[dict[str, Any]] = None):
        super().__init__()
        extras, config = extras or {}, dict(env_config or {})
        self.task_id, self.max_turns = extras["task_id"], int(extras.get("max_turns", default_turns()))
        self._client = Client(config.get("url"), config.get("key"))
        self._options = dict(config.get("options") or {})
        self._rollout: Optional[Rollout] = None

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        self._rollout = self._client.rollout(self.task_id, **self._options)
        told = self._rollout.instruction + "\n\n" + how_to_call(self._rollout.tools)
        return [*prompt, {"role": "user", "content": told}], {"rollout_id": self._rollout.id}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        if self._rollout is None:
            raise RuntimeError("init the environment first")
        self.turns += 1
        seen, calls = [], calls_in(action)
        for i, c in enumerate(calls):
            seen.append(c.error or self._call(c.name, c.arguments, f"{self.turns}.{i}"))
        done = not calls or self.turns >= self.max_turns or any(c.name == "submit" for c in calls)
        reward = self._rollout.grade().reward if done else 0.0
        metadata = {"rollout_id": self._rollout.id, "reward_known": reward is not None}
        observations = [] if done else [{"role": "user", "content": "\n".join(seen)}]
        return BaseTextEnvStepOutput(observations=observations, reward=reward or 0.0, done=done, metadata=metadata)

    def close(self) -> None:
        if self._rollout is not None:
            self._rollout.close()
            self._rollout = None

    def _call(self, name: str, arguments: dict[str, Any], call_id: str) -> str:
        try:
            return self._rollout.call(name, arguments, call_id=call_id).output  # type: ignore[union-attr]
        except BadCall as error:  # the model's mistake is the model's to read
            return str(error)


class ProctorGenerator(GeneratorInterface):
    """policy names the policy's server: {"name", "base_url", "model"}. options are those of a rollout."""

    def __init__(self, policy: dict[str, Any], *, url: Optional[str] = None, key: Optional[str] = None, turns: Optional[int] = None,
                 blocked: str = "keep", step_wise: bool = False, **options: Any):
        self.policy, self.url, self.key, self.turns = policy, url, key, turns
        self.blocked, self.step_wise, self.options = blocked, step_wise, options

    async def generate(self, input_batch: GeneratorInput) -> GeneratorOutput:
        extras = input_batch.get("env_extras") or []
        ids = input_batch.get("trajectory_ids") or [None] * len(extras)
        sampling = _openai_sampling(input_batch.get("sampling_params") or {})
        async with AsyncClient(self.url, self.key) as server:
            played = await asyncio.gather(*(
                roll(server, e["task_id"], self.policy, sampling, turns=self.turns, form="verl", blocked=self.blocked, **self.options) for e in extras))
        rows = [(i, p, row, row is p.export[-1]) for p, i in zip(played, ids) for row in self._rows(p)]
        known = [p.grade.reward for p in played if p.grade.reward is not None]
        return GeneratorOutput(
            prompt_token_ids=[r["prompt_ids"] for _, _, r, _ in rows], response_ids=[r["response_ids"] for _, _, r, _ in rows],
            rewards=[p.grade.reward or 0.0 for _, p, _, _ in rows],
            loss_masks=[r["response_mask"] if p.grade.reward is not None else [0] * len(r["response_mask"]) for _, p, r, _ in rows],
            stop_reasons=["length" if "length" in {t["finish_reason"] for t in r["extra_fields"]["proctor"].get("turns", [])[-1:]} else "stop"
                          for _, _, r, _ in rows],
            rollout_metrics={"proctor/reward_unknown": len(played) - len(known),
                             "proctor/blocked": sum(p.record["rollout"]["blocked"] for p in played)},
            rollout_logprobs=[r["response_logprobs"] for _, _, r, _ in rows],
            trajectory_ids=[i for i, _, _, _ in rows] if self.step_wise else input_batch.get("trajectory_ids"),
            is_last_step=[last for _, _, _, last in rows] if self.step_wise else None)

    def _rows(self, p: Played) -> list[dict[str, Any]]:
        """The rows of a rollout. One that blocked="reject" leaves out keeps its place, and trains nothing."""
        if not p.export:
            first = p.record["segments"][0]
            at = first["action_mask"].index(1)
            p.export = [{"prompt_ids": first["tokens"][:at], "response_ids": first["tokens"][at:], "response_logprobs": first["logprobs"][at:],
                         "response_mask": [0] * (len(first["tokens"]) - at), "extra_fields": {"proctor": {}}}]
        if len(p.export) > 1 and not self.step_wise:
            raise ValueError(f"rollout {p.id} has {len(p.export)} segments: set generator.step_wise_trajectories, and step_wise=True here")
        return p.export


def _openai_sampling(params: dict[str, Any]) -> dict[str, Any]:
    """SkyRL's sampling parameters, which are vLLM's, as a chat completions request has them."""
    wanted = {k: params[k] for k in ("temperature", "top_p", "top_k", "min_p", "stop", "seed") if params.get(k) is not None}
    limit = params.get("max_generate_length") or params.get("max_tokens")
    return {**wanted, "max_tokens": limit} if limit else wanted
