"""Signatures of verl.experimental.agent_loop.agent_loop (verl 0.7), for tests of the adapter where verl, which needs
ray and torch, is not installed."""

import dataclasses
from abc import ABC, abstractmethod

registry = {}


@dataclasses.dataclass
class AgentLoopMetrics:
    generate_sequences: float = 0.0
    tool_calls: float = 0.0


@dataclasses.dataclass(kw_only=True)
class AgentLoopOutput:
    prompt_ids: list
    response_ids: list
    response_mask: list
    response_logprobs: list | None = None
    multi_modal_data: dict | None = None
    reward_score: float | None = None
    num_turns: int = 0
    metrics: AgentLoopMetrics
    extra_fields: dict = dataclasses.field(default_factory=dict)


class AgentLoopBase(ABC):
    def __init__(self, trainer_config, server_manager, tokenizer, processor, **kwargs):
        self.config, self.server_manager, self.tokenizer, self.processor = trainer_config.config, server_manager, tokenizer, processor

    @abstractmethod
    async def run(self, sampling_params: dict, **kwargs) -> AgentLoopOutput: ...


def register(agent_name: str):
    def decorator(subclass):
        registry[agent_name] = f"{subclass.__module__}.{subclass.__qualname__}"
        return subclass

    return decorator
