"""Signatures of tinker_cookbook.rl.types, for tests of the adapter where tinker_cookbook is not installed."""


class Env:
    async def initial_observation(self): ...

    async def step(self, action): ...


class EnvGroupBuilder:
    async def make_envs(self): ...

    async def compute_group_rewards(self, trajectory_group):
        return [(0.0, {}) for _ in trajectory_group]
