"""rLLM: a remote agent runtime, and an environment.

ProctorRuntime is a RemoteAgentRuntime for rLLM's remote agent flow engine: each submission is a rollout of
submission.task["task_id"], played with its tools by the policy at submission.inference_url (the session's URL of
rLLM's gateway, which the Proctor server must reach), and graded. A reward nobody knows is a result that did not
finish, which is how rLLM marks them.

ProctorEnv is a BaseEnv for the agent execution engine; an action is the policy's text, or an Action of it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Optional

from rllm.environments.base.base_env import BaseEnv
from rllm.experimental.engine.remote_runtime.protocol import RemoteTaskResult
from rllm.workflows.workflow import TerminationReason

from ._aio import AsyncClient
from ._errors import BadCall
from ._loop import default_turns, roll
from ._sync import Client, Rollout
from ._text import calls_in, how_to_call


class ProctorRuntime:
    """options are those of a rollout: mode, preset, limits, ...; sampling what every request to the policy holds."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, turns: Optional[int] = None, timeout: float = 900.0,
                 model: str = "policy", sampling: Optional[dict[str, Any]] = None, **options: Any):
        self._url, self._key, self._turns, self._timeout = url, key, turns, timeout
        self._model, self._sampling, self._options = model, sampling or {}, options

    def initialize(self) -> None:
        """Fails early where no server is named."""
        Client(self._url, self._key)

    async def execute_tasks(self, submissions: list[Any], timeout: Optional[float] = None) -> list[RemoteTaskResult]:
        """One result a submission, in order. timeout is a rollout's, in seconds."""
        async with AsyncClient(self._url, self._key, workers=max(64, len(submissions))) as server:
            return list(await asyncio.gather(*(self._one(server, s, timeout or self._timeout) for s in submissions)))

    async def _one(self, server: AsyncClient, sub: Any, timeout: float) -> RemoteTaskResult:
        began = time.monotonic()

        def result(finished: bool, why: TerminationReason, **more: Any) -> RemoteTaskResult:
            return RemoteTaskResult(finished=finished, session_id=sub.session_id, task_id=sub.task_id, termination_reason=why,
                                    elapsed=time.monotonic() - began, **more)

        policy = {"name": "rllm", "base_url": sub.inference_url, "model": self._model, "api_key": getattr(sub, "api_key", "")}
        try:
            played = await asyncio.wait_for(
                roll(server, sub.task["task_id"], policy, self._sampling, turns=self._turns, metadata={"session_id": sub.session_id}, **self._options), timeout)
        except asyncio.TimeoutError:
            return result(False, TerminationReason.TIMEOUT, error=f"the rollout took more than {timeout} s")
        except Exception as error:  # a rollout that fails is one result, not the end of the batch
            return result(False, TerminationReason.ERROR, error=f"{type(error).__name__}: {error}")
        said = {"rollout_id": played.id, "outcome": played.grade.outcome, "failure_class": played.grade.failure_class,
                "blocked": played.record["rollout"]["blocked"], "guard": played.record.get("guard", [])}
        if played.grade.reward is None:
            return result(False, TerminationReason.ERROR, error=f"no reward: {played.grade.failure_class}", metadata=said)
        return result(True, TerminationReason.ENV_DONE, reward=played.grade.reward, raw_result={"outcome": played.grade.outcome}, metadata=said)

    def shutdown(self) -> None:
        """Nothing is held between calls."""


class ProctorEnv(BaseEnv):
    """task is a row with task_id. options are those of a rollout."""

    def __init__(self, task: dict[str, Any], url: Optional[str] = None, key: Optional[str] = None, max_turns: Optional[int] = None, **options: Any):
        self.task, self.max_turns, self.turns = task, max_turns or default_turns(), 0
        self._client, self._options = Client(url, key), options
        self._rollout: Optional[Rollout] = None

    def reset(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self.close()
        self.turns, self._rollout = 0, self._client.rollout(self.task["task_id"], **self._options)
        told = self._rollout.instruction + "\n\n" + how_to_call(self._rollout.tools)
        return {"question": told}, {"rollout_id": self._rollout.id}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:
        if self._rollout is None:
            raise RuntimeError("reset the environment first")
        self.turns += 1
        calls = calls_in(str(getattr(action, "action", action)))
        seen = [c.error or self._call(c.name, c.arguments, f"{self.turns}.{i}") for i, c in enumerate(calls)]
        done = not calls or self.turns >= self.max_turns or any(c.name == "submit" for c in calls)
        reward = self._rollout.grade().reward if done else 0.0
        info = {"rollout_id": self._rollout.id, "reward_known": reward is not None}
        return {"tool_outputs": "\n".join(seen)}, reward or 0.0, done, info

    def close(self) -> None:
        if self._rollout is not None:
            self._rollout.close()
            self._rollout = None

    @staticmethod
    def from_dict(info: dict[str, Any]) -> "ProctorEnv":
        return ProctorEnv(**info) if "task" in info else ProctorEnv(info)

    @staticmethod
    def is_multithread_safe() -> bool:
        return True

    def _call(self, name: str, arguments: dict[str, Any], call_id: str) -> str:
        try:
            return self._rollout.call(name, arguments, call_id=call_id).output  # type: ignore[union-attr]
        except BadCall as error:  # the model's mistake is the model's to read
            return str(error)
