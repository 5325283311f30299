"""Signatures of skyrl_train.generators.base (SkyRL), for tests of the adapter where SkyRL is not installed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypedDict


@dataclass
class TrajectoryID:
    instance_id: str
    repetition_id: int


class GeneratorInput(TypedDict):
    prompts: list
    env_classes: list
    env_extras: list | None
    sampling_params: dict | None
    trajectory_ids: list | None
    batch_metadata: object


class GeneratorOutput(TypedDict):
    prompt_token_ids: list
    response_ids: list
    rewards: list
    loss_masks: list
    stop_reasons: list | None
    rollout_metrics: dict | None
    rollout_logprobs: list | None
    trajectory_ids: list | None
    is_last_step: list | None


class GeneratorInterface(ABC):
    @abstractmethod
    async def generate(self, input_batch: GeneratorInput) -> GeneratorOutput: ...
