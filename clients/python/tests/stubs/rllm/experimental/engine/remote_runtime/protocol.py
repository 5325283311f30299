"""Signatures of rllm.experimental.engine.remote_runtime.protocol (rLLM), for tests of the adapter where rLLM is not
installed."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from rllm.workflows.workflow import TerminationReason


@dataclass
class TaskSubmission:
    task: dict
    session_id: str
    task_id: str
    inference_url: str
    api_key: str = ""


@dataclass
class RemoteTaskResult:
    finished: bool
    session_id: str
    task_id: str = ""
    reward: float | None = None
    error: str | None = None
    termination_reason: TerminationReason | None = None
    elapsed: float = 0.0
    raw_result: dict | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class RemoteAgentRuntime(Protocol):
    def initialize(self) -> None: ...

    async def execute_tasks(self, submissions: list, timeout: float | None = None) -> list: ...

    def shutdown(self) -> None: ...
