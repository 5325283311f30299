"""The two estimators of advantages that the example trains by, equal to `proctor credit --estimator grpo` and
`--estimator gae`. A test holds them against it."""

from __future__ import annotations

import math
from typing import Any

Rollouts = list[dict[str, Any]]
"""As `proctor credit` reads them: {"id", "group", "reward", "segments": [{"action_mask", "values"}]}."""


def grpo(rollouts: Rollouts) -> list[list[float]]:
    """(r - mean) / (std + 1e-6) within the group, of all rollouts and not of segments; the same at every sampled
    token. A reward of None is in no group, and its tokens have no advantage."""
    groups: dict[str, list[float]] = {}
    for r in rollouts:
        if r["reward"] is not None:
            groups.setdefault(r["group"], []).append(r["reward"])
    out = []
    for r in rollouts:
        n, advantage = sum(len(s["action_mask"]) for s in r["segments"]), 0.0
        if r["reward"] is not None:
            rewards = groups[r["group"]]
            mean = sum(rewards) / len(rewards)
            std = math.sqrt(sum((x - mean) ** 2 for x in rewards) / max(1, len(rewards) - 1))
            advantage = (r["reward"] - mean) / (std + 1e-6)
        mask = [bit for s in r["segments"] for bit in s["action_mask"]]
        out.append([advantage * bit for bit in mask] if n else [])
    return out


def gae(rollouts: Rollouts, gamma: float, lam: float) -> list[list[float]]:
    """Generalised advantages over the sampled tokens alone: what lies between them is observation, and is skipped.
    One segment a rollout; the reward comes with its last sampled token."""
    out = []
    for r in rollouts:
        (s,) = r["segments"]
        advantages = [0.0] * len(s["action_mask"])
        if r["reward"] is not None:
            after, value, reward = 0.0, 0.0, r["reward"]
            for i in reversed(range(len(advantages))):
                if s["action_mask"][i]:
                    after = reward + gamma * value - s["values"][i] + gamma * lam * after
                    advantages[i], value, reward = after, s["values"][i], 0.0
        out.append(advantages)
    return out
