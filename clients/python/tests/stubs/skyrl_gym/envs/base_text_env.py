"""Signatures of skyrl_gym.envs.base_text_env (SkyRL), for tests of the adapter where SkyRL is not installed."""

from typing import Any, TypedDict


class BaseTextEnvStepOutput(TypedDict, total=False):
    observations: list
    reward: float
    done: bool
    metadata: dict
    postprocessed_action: Any


class BaseTextEnv:
    def __init__(self):
        self.turns, self.max_turns, self.tool_groups, self.tool_to_toolgroup = 0, 1, [], {}

    def step(self, action: str) -> BaseTextEnvStepOutput: ...

    def init(self, prompt: list) -> tuple[list, dict]:
        return prompt, {}

    def close(self): ...
