"""Signatures of tinker_cookbook.rl.message_env, for tests of the adapter where tinker_cookbook, which needs torch, is
not installed. The bridge here keeps its messages as they are, where the real one renders them to tokens."""

import dataclasses
from abc import ABC, abstractmethod


@dataclasses.dataclass
class MessageStepResult:
    reward: float
    episode_done: bool
    next_messages: list
    metrics: dict = dataclasses.field(default_factory=dict)
    logs: dict = dataclasses.field(default_factory=dict)
    next_stop_condition: object = None


class MessageEnv(ABC):
    @abstractmethod
    async def initial_observation(self) -> list: ...

    @abstractmethod
    async def step(self, message) -> MessageStepResult: ...


class EnvFromMessageEnv:
    def __init__(self, renderer, message_env, failed_parse_reward=-1.0, terminate_on_parse_error=True, max_trajectory_tokens=None,
                 max_generation_tokens=None, context_overflow_reward=-0.1):
        self.renderer, self.message_env = renderer, message_env
