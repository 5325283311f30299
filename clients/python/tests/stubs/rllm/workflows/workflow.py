"""Reasons of rllm.workflows.workflow (rLLM), for tests of the adapter where rLLM is not installed."""

from enum import Enum


class TerminationReason(Enum):
    ENV_DONE = "env_done"
    TIMEOUT = "timeout"
    ERROR = "error"
    UNKNOWN = "unknown"
