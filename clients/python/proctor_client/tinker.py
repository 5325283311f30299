"""Tinker: a MessageEnv, and a builder of groups of them for tinker_cookbook's RL loop.

    dataset.get_batch = lambda i: [ProctorGroup("interval-merge", 8, renderer)]

The members of a group are one group of the server: one task, from one warmed image. The rollout's tools are told to
the renderer where it can take them. A reward nobody knows is 0 with the metric reward_unknown, since Tinker has no
word for it; leave such trajectories out by that metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
from tinker_cookbook.rl.types import Env, EnvGroupBuilder

from ._aio import AsyncClient, AsyncRollout
from ._loop import answer_call, default_turns
from ._text import calls_in, how_to_call


class ProctorMessageEnv(MessageEnv):
    """One rollout. It ends with submit, an answer without a call, or max_turns; then it is graded and freed."""

    def __init__(self, ro: AsyncRollout, renderer: Any = None, max_turns: Optional[int] = None):
        self.rollout, self.renderer, self.max_turns, self.turns = ro, renderer, max_turns or default_turns(), 0
        self.messages: list[Any] = []

    async def initial_observation(self) -> list[Any]:
        ro, prefix, told = self.rollout, [], self.rollout.instruction
        if hasattr(self.renderer, "create_conversation_prefix_with_tools"):
            tools = [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in ro.tools]
            prefix = self.renderer.create_conversation_prefix_with_tools(tools)
        else:
            told += "\n\n" + how_to_call(ro.tools)
        self.messages = [*prefix, {"role": "user", "content": told}]
        return list(self.messages)

    async def step(self, message: Any) -> MessageStepResult:
        self.turns += 1
        self.messages.append(message)
        calls = _calls(message, self.turns)
        for name, arguments, call_id, error in calls:
            seen = error or await answer_call(self.rollout, name, arguments, call_id)
            self.messages.append({"role": "tool", "content": seen, "tool_call_id": call_id, "name": name})
        done = not calls or self.turns >= self.max_turns or any(c[0] == "submit" for c in calls)
        reward, metrics = 0.0, {"turns": float(self.turns)}
        if done:
            grade = await self.rollout.grade()
            record = await self.rollout.trajectory()
            reward = grade.reward or 0.0
            metrics |= {"reward_unknown": float(grade.reward is None), "blocked": float(record["rollout"]["blocked"])}
        return MessageStepResult(reward=reward, episode_done=done, next_messages=list(self.messages), metrics=metrics)


def _calls(message: Any, turn: int) -> list[tuple[str, Any, str, str]]:
    """Name, arguments, id and error of each call: those that the renderer read, else those in the text."""
    found = message.get("tool_calls") or []
    if found:
        return [(c.function.name, c.function.arguments, c.id or f"{turn}.{i}", "") for i, c in enumerate(found)]
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(p.get("text", "") for p in content if p.get("type") == "text")
    return [(c.name, c.arguments, f"{turn}.{i}", c.error) for i, c in enumerate(calls_in(text))]


class ProctorGroup(EnvGroupBuilder):
    """n rollouts of a task. options are those of a group: mode, preset, seed, ...; bridge those of EnvFromMessageEnv."""

    def __init__(self, task_id: str, n: int, renderer: Any, *, url: Optional[str] = None, key: Optional[str] = None,
                 max_turns: Optional[int] = None, bridge: Optional[dict[str, Any]] = None, **options: Any):
        self.task_id, self.n, self.renderer, self.max_turns = task_id, n, renderer, max_turns
        self.url, self.key, self.bridge, self.options = url, key, bridge or {}, options

    async def make_envs(self) -> Sequence[Env]:
        """Makes the group. A group that is short of members is ended and told: Tinker centres rewards on all n."""
        server = AsyncClient(self.url, self.key, workers=self.n)
        group, made, failed = await server.group(self.task_id, self.n, **self.options)
        if failed:
            await server.abort_group(group)
            raise RuntimeError(f"{len(failed)} of {self.n} rollouts could not be made: {failed[0]['detail']} ({failed[0]['code']})")
        return [EnvFromMessageEnv(self.renderer, ProctorMessageEnv(ro, self.renderer, self.max_turns), **self.bridge) for ro in made]
