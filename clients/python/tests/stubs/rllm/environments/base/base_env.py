"""Signatures of rllm.environments.base.base_env (rLLM), for tests of the adapter where rLLM is not installed."""

from abc import ABC, abstractmethod
from typing import Any


class BaseEnv(ABC):
    @abstractmethod
    def reset(self) -> tuple[Any, dict]: ...

    @abstractmethod
    def step(self, action: Any) -> tuple[Any, float, bool, dict]: ...

    def close(self): ...

    @staticmethod
    @abstractmethod
    def from_dict(info: dict) -> "BaseEnv": ...
