"""verl: an agent loop whose tools are a rollout's.

    # agent_loop.yaml, named by actor_rollout_ref.rollout.agent.agent_loop_config_path
    - name: proctor
      _target_: proctor_client.verl.ProctorAgentLoop
      blocked: mask

Dataset rows carry agent_name "proctor" and task_id, at the top or in extra_info. Tokens come from verl's own
server manager, token in and token out; they are uploaded as the rollout's segment, and the output that verl trains
on is the server's export of it, under the way for blocked calls. Needs calculate_log_probs: True. PROCTOR_URL and
PROCTOR_API_KEY name the server, PROCTOR_TURNS the turns (50).

A rollout whose reward nobody knows, or that blocked="reject" leaves out, has no token that trains.
"""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from ._aio import AsyncClient, AsyncRollout
from ._errors import Problem
from ._loop import answer_call, default_turns, tool_schemas
from ._text import calls_in


@register("proctor")
class ProctorAgentLoop(AgentLoopBase):
    """options of a rollout (mode, preset, ...) may stand beside blocked in the configuration, under options."""

    def __init__(self, *args: Any, blocked: str = "keep", options: Any = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.blocked, self.options = blocked, dict(options or {})
        self.response_length = int(self.config.actor_rollout_ref.rollout.response_length)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        task = kwargs.get("task_id") or (kwargs.get("extra_info") or {}).get("task_id")
        if not task:
            raise ValueError("the dataset row has no task_id, at the top or in extra_info")
        async with AsyncClient() as server:
            async with await server.rollout(task, policy={"name": "verl"}, **self.options) as ro:
                got = await _Sampler(self, ro, sampling_params).play()
                await ro.upload_segments([got.segment()])
                grade = await ro.grade()
                try:
                    row = (await ro.export("verl", self.blocked))[0]
                except Problem as error:
                    if error.code != "rollout_rejected":
                        raise
                    row = {**(await ro.export("verl", "keep"))[0], "reward_score": None}
                return self._output(row, got, grade.reward is not None)

    def _output(self, row: dict[str, Any], got: "_Sampler", known: bool) -> AgentLoopOutput:
        n = self.response_length
        trains = known and row["reward_score"] is not None
        mask = row["response_mask"][:n] if trains else [0] * len(row["response_mask"][:n])
        return AgentLoopOutput(
            prompt_ids=row["prompt_ids"], response_ids=row["response_ids"][:n], response_mask=mask, response_logprobs=row["response_logprobs"][:n],
            reward_score=row["reward_score"] if trains else 0.0, num_turns=row["num_turns"],
            metrics=AgentLoopMetrics(generate_sequences=got.generating, tool_calls=got.calling),
            extra_fields={"proctor": row["extra_fields"]["proctor"], "trains": trains})


class _Sampler:
    """Plays one rollout, token in and token out, and holds its one segment."""

    def __init__(self, loop: ProctorAgentLoop, ro: AsyncRollout, sampling_params: dict[str, Any]):
        self.loop, self.ro = loop, ro
        self.sampling = {**sampling_params, "logprobs": True}
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.mask: list[int] = []
        self.turns: list[dict[str, Any]] = []
        self.generating = self.calling = 0.0

    async def play(self) -> "_Sampler":
        self._add(self._template([{"role": "user", "content": self.ro.instruction}], tools=tool_schemas(self.ro)))
        first, request = len(self.tokens), uuid4().hex
        for turn in range(default_turns()):
            text = await self._sample(request)
            calls = calls_in(text)
            if not calls or len(self.tokens) - first >= self.loop.response_length:
                break
            began = time.monotonic()
            answers, done = [], False
            for i, c in enumerate(calls):
                seen = c.error or await answer_call(self.ro, c.name, c.arguments, f"{turn}.{i}")
                answers.append({"role": "tool", "content": seen})
                self.turns[-1]["tool_calls"].append(f"{turn}.{i}")
                done = done or c.name == "submit"
            self.calling += time.monotonic() - began
            added = self._answered(answers)
            # verl's last token is to be a sampled one: what would not fit behind an answer is left out with it.
            if done or len(self.tokens) - first + len(added) >= self.loop.response_length:
                break
            self._add(added)
        return self

    async def _sample(self, request: str) -> str:
        began = time.monotonic()
        got = await self.loop.server_manager.generate(request_id=request, prompt_ids=self.tokens, sampling_params=self.sampling)
        self.generating += time.monotonic() - began
        ids = list(got.token_ids)
        if got.log_probs is None:
            raise ValueError("verl's server gave no logprobs; set actor_rollout_ref.rollout.calculate_log_probs=True")
        start = len(self.tokens)
        self._add(ids, list(got.log_probs))
        self.turns.append({"index": len(self.turns), "start": start, "end": len(self.tokens), "finish_reason": "", "tool_calls": []})
        return self.loop.tokenizer.decode(ids, skip_special_tokens=True)

    def _add(self, ids: list[int], logprobs: Any = None) -> None:
        self.tokens = self.tokens + ids  # a new list: the server may still hold the old one
        self.logprobs += [0.0] * len(ids) if logprobs is None else logprobs
        self.mask += [int(logprobs is not None)] * len(ids)

    def _template(self, messages: list[dict[str, Any]], prompt: bool = True, **more: Any) -> list[int]:
        return list(self.loop.tokenizer.apply_chat_template(messages, add_generation_prompt=prompt, tokenize=True, **more))

    def _answered(self, answers: list[dict[str, Any]]) -> list[int]:
        """What the template adds for the answers of tools behind a conversation."""
        before = [{"role": "user", "content": "-"}, {"role": "assistant", "content": "-"}]
        return self._template(before + answers)[len(self._template(before, prompt=False)):]

    def segment(self) -> dict[str, Any]:
        return {"id": "s0", "order": 0, "tokens": self.tokens, "logprobs": self.logprobs, "action_mask": self.mask, "loss_mask": self.mask,
                "turns": self.turns}
