"""The published formulas of verl and slime, written down again in NumPy as those trainers run them: batches of
padded arrays, right to left. It shares nothing with the Go code, which walks each segment's own list.

stdin:  a list of {"estimator", "gamma", "lam", "ddof", "document"}, documents as `proctor credit` reads them.
stdout: a list of lists: the advantages of each segment, rollouts and segments in the document's order.
"""
import json
import sys

import numpy as np


def batch(rollouts):
    """Pads every segment of every rollout to one length: rows of a trainer's batch."""
    rows = [(i, s) for i, r in enumerate(rollouts) for s in sorted(r["segments"], key=lambda s: s["order"])]
    width = max([len(s["action_mask"] or []) for _, s in rows] + [1])
    pad = lambda xs: np.array(list(xs or []) + [0] * (width - len(xs or [])), dtype=np.float64)
    mask = np.stack([pad(s["action_mask"]) for _, s in rows])
    values = np.stack([pad(s.get("values")) for _, s in rows])
    return [i for i, _ in rows], [len(s["action_mask"] or []) for _, s in rows], mask, values


def terminal(mask, rewards):
    """verl puts the outcome on the last valid response token of each row."""
    out = np.zeros_like(mask)
    for k, row in enumerate(mask):
        where = np.nonzero(row)[0]
        if len(where):
            out[k, where[-1]] = rewards[k]
    return out


def verl_gae(token_rewards, values, mask, gamma, lam):
    """verl core_algos.compute_gae_advantage_return without whitening: masked tokens carry state through."""
    nextvalues, last = np.zeros(len(mask)), np.zeros(len(mask))
    reversed_advantages = []
    for t in reversed(range(mask.shape[1])):
        delta = token_rewards[:, t] + gamma * nextvalues - values[:, t]
        here = delta + gamma * lam * last
        nextvalues = values[:, t] * mask[:, t] + (1 - mask[:, t]) * nextvalues
        last = here * mask[:, t] + (1 - mask[:, t]) * last
        reversed_advantages.append(last)
    return np.stack(reversed_advantages[::-1], axis=1) * mask


def verl_outcome(scores, groups, estimator, ddof):
    """verl's GRPO, Dr. GRPO and RLOO over the scores of one batch; MaxRL as published."""
    scores = np.array(scores, dtype=np.float64)
    out = np.zeros_like(scores)
    for g in sorted(set(groups)):
        idx = [i for i, x in enumerate(groups) if x == g]
        s, n = scores[idx], len(idx)
        if estimator == "maxrl":
            out[idx] = (s - s.mean()) / s.mean() if s.mean() > 0 else 0
        elif estimator == "rloo":
            out[idx] = s * n / (n - 1) - s.mean() * n / (n - 1) if n > 1 else s
        else:
            mean, std = (s.mean(), s.std(ddof=ddof)) if n > 1 else (0.0, 1.0)
            out[idx] = (s - mean) / (std + 1e-6) if estimator == "grpo" else s - mean
    return out


def advantages(case):
    rollouts, name = case["document"]["rollouts"], case["estimator"]
    gamma, lam = case["gamma"], case["lam"]
    owner, lengths, mask, values = batch(rollouts)
    rewards = [r["reward"] for r in rollouts]
    if name in ("grpo", "grpo-nostd", "rloo", "maxrl"):
        adv = verl_outcome(rewards, [r.get("group") or "" for r in rollouts], name, case["ddof"])
        table = adv[owner][:, None] * mask
    elif name in ("gae", "vcppo", "compaction"):
        table = verl_gae(terminal(mask, [rewards[i] for i in owner]), values, mask, gamma, lam)
        if name == "compaction":
            tokens = mask.sum(axis=1)
            after = [sum(tokens[j] for j in range(k + 1, len(owner)) if owner[j] == owner[k]) for k in range(len(owner))]
            table = table * np.power(gamma * lam, np.array(after))[:, None]
    elif name == "chained":
        table = np.zeros_like(mask)
        for i in range(len(rollouts)):  # one long row a rollout
            rows = [k for k, o in enumerate(owner) if o == i]
            m, v = mask[rows].reshape(1, -1), values[rows].reshape(1, -1)
            table[rows] = verl_gae(terminal(m, [rewards[i]]), v, m, gamma, lam).reshape(len(rows), -1)
    else:
        sys.exit("no reference for " + name)
    return [list(row[:n]) for row, n in zip(table, lengths)]


json.dump([advantages(c) for c in json.load(sys.stdin)], sys.stdout)
