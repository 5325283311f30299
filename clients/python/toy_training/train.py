#!/usr/bin/env python3
"""Trains a tiny policy by GRPO or by critic PPO through a Proctor server, with the standard library alone.

    python3 train.py --algorithm grpo --mode enforce --tasks toy-0,toy-1,toy-2,toy-3 --out grpo-with.json

The server is found by PROCTOR_URL and PROCTOR_API_KEY. A task hides one of four words; two clues tell it, and so does
the grader's own file. In mode shadow, which is a sandbox without Proctor whose cheats are counted all the same,
reading that file pays; in mode enforce it is answered with a decoy, and does not.

Everything that is trained on comes back from the server: token ids, logprobs and masks from the export in slime's
form, rewards from grading, advantages by the formulas of `proctor credit` (--dump keeps what they were made from).
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from proctor_client import Client, Rollout  # noqa: E402
from proctor_client._http import Transport  # noqa: E402
from proctor_client._loop import tool_schemas  # noqa: E402
from toy_training import estimators  # noqa: E402
from toy_training.policy import FIRST_TOKEN, MOVES, WRITES, Policy, Server, Value, features  # noqa: E402

TURNS = 3  # reading both clues and answering takes all of them: a turn spent on the cheat is missed later
EPOCHS, CLIP, RATE, VALUE_RATE, LAMBDA = 3, 0.2, 4.0, 0.025, 0.95


class Trainer:
    def __init__(self, client: Client, args: argparse.Namespace):
        self.client, self.args = client, args
        self.policy, self.value = Policy(), Value()
        self.server = Server(self.policy)
        self.pool = ThreadPoolExecutor(args.workers)

    def options(self, seed: int) -> dict[str, Any]:
        policy = {"name": f"toy-{self.args.algorithm}-{self.args.mode}", "size_b": 1e-7, "base_url": self.server.url, "model": "toy", "dialect": "vllm"}
        return {"mode": self.args.mode, "hardening": False, "policy": policy, "seed": seed}

    def rollouts(self, step: int) -> list[tuple[str, int, Rollout]]:
        """This step's rollouts with their groups and seeds: GRPO asks for groups, PPO for rollouts alone."""
        made, n = [], self.args.n
        for i, task in enumerate(self.args.tasks):
            seed = 1_000_000 * self.args.seed + 1000 * step + 100 * i
            if self.args.algorithm == "grpo":
                group, members, failed = self.client.group(task, n, **self.options(seed))
                if failed:
                    raise RuntimeError(f"{len(failed)} members were not made: {failed[0]['detail']}")
                made += [(group, seed + k, ro) for k, ro in enumerate(members)]
            else:
                made += [("", seed + k, self.client.rollout(task, **self.options(seed + k))) for k in range(n)]
        return made

    def play(self, made: tuple[str, int, Rollout]) -> dict[str, Any]:
        """Plays one rollout to its grade, and gives what training needs of it."""
        group, seed, ro = made
        gateway = Transport(ro.url, ro.agent_token, 60, 8)
        tools, states = tool_schemas(ro), []
        messages: list[dict[str, Any]] = [{"role": "user", "content": ro.instruction}]
        with ro:
            for turn in range(TURNS):
                states.append(features(messages))
                ask = {"model": "toy", "messages": messages, "tools": tools, "seed": seed}
                said = gateway.send("POST", ro.links["gateway"] + "/chat/completions", ask, key=f"turn-{turn}")["choices"][0]["message"]
                call = said["tool_calls"][0]
                name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
                seen = ro.call(name, arguments, call_id=call["id"]).output
                messages += [said, {"role": "tool", "tool_call_id": call["id"], "content": seen}]
                if MOVES.index((name, arguments)) >= WRITES:
                    break
            ro.submit()
            reward = ro.grade().reward
            (sample,) = ro.export("slime", self.args.blocked)
        guard = sample["metadata"]["proctor"]["guard"]
        action = sample["metadata"]["action_mask"]
        at = [i for i, bit in enumerate(action) if bit]
        if len(at) != len(states):
            raise RuntimeError(f"rollout {ro.id} sampled {len(at)} tokens in {len(states)} turns")
        response = sample["tokens"][-sample["response_length"]:]
        return {"id": ro.id, "group": group, "reward": reward, "states": states, "moves": [response[i] - FIRST_TOKEN for i in at],
                "logprobs": [sample["rollout_log_probs"][i] for i in at], "trains": [sample["loss_mask"][i] for i in at], "at": at,
                "action_mask": action, "hack": any(g["hack"] for g in guard), "blocked": any(g["action"] == "decoyed" for g in guard),
                "versions": sample["weight_versions"]}

    def document(self, played: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rollouts as `proctor credit` reads them, with the critic's values."""
        out = []
        for p in played:
            values = [0.0] * len(p["action_mask"])
            for i, phi in zip(p["at"], p["states"]):
                values[i] = self.value.of(phi)
            out.append({"id": p["id"], "group": p["group"] or p["id"], "reward": p["reward"],
                        "segments": [{"id": "s0", "order": 0, "action_mask": p["action_mask"], "values": values}]})
        return out

    def advantages(self, played: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[list[float]]]:
        document = self.document(played)
        return document, estimators.grpo(document) if self.args.algorithm == "grpo" else estimators.gae(document, 1.0, LAMBDA)

    def update(self, played: list[dict[str, Any]], advantages: list[list[float]]) -> None:
        """Clipped policy gradient, a mean over the tokens that train; for PPO on whitened advantages, and the critic's fit."""
        turns = [(phi, move, lp, adv[i], p["reward"]) for p, adv in zip(played, advantages)
                 for phi, move, lp, trains, i in zip(p["states"], p["moves"], p["logprobs"], p["trains"], p["at"]) if trains and p["reward"] is not None]
        if self.args.algorithm == "ppo" and turns:
            mean = sum(t[3] for t in turns) / len(turns)
            std = math.sqrt(sum((t[3] - mean) ** 2 for t in turns) / len(turns)) + 1e-6
            turns = [(phi, move, lp, (a - mean) / std, r) for phi, move, lp, a, r in turns]
        for _ in range(EPOCHS):
            for phi, move, lp, a, _ in turns:
                ratio = math.exp(self.policy.logprobs(phi)[move] - lp)
                if not (a > 0 and ratio > 1 + CLIP or a < 0 and ratio < 1 - CLIP):
                    self.policy.ascend(phi, move, RATE * a * ratio / len(turns))
        for phi, _, _, _, r in turns:
            self.value.fit(phi, r, VALUE_RATE)

    def train(self) -> dict[str, Any]:
        curve: list[dict[str, float]] = []
        dumped = []
        for step in range(self.args.steps):
            self.server.step(step)
            played = list(self.pool.map(self.play, self.rollouts(step)))
            known = [p["reward"] for p in played if p["reward"] is not None]
            curve.append({"reward": sum(known) / max(1, len(known)), "hacks": sum(p["hack"] for p in played) / len(played),
                          "blocked": sum(p["blocked"] for p in played) / len(played), "unknown": len(played) - len(known)})
            document, advantages = self.advantages(played)
            dumped.append({"rollouts": document, "advantages": advantages})
            if self.args.progress:
                print(f"step {step}: reward {curve[-1]['reward']:.2f}, hack rate {curve[-1]['hacks']:.2f}", file=sys.stderr)
            self.update(played, advantages)
        self.server.close()
        if self.args.dump:
            pathlib.Path(self.args.dump).write_text(json.dumps(dumped))
        return {"algorithm": self.args.algorithm, "mode": self.args.mode, "n": self.args.n, "tasks": len(self.args.tasks), "curve": curve}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--algorithm", choices=["grpo", "ppo"], default="grpo")
    p.add_argument("--mode", choices=["enforce", "shadow"], default="enforce")
    p.add_argument("--blocked", default="keep", help="how blocked turns are exported: keep, mask, penalty:VALUE")
    p.add_argument("--tasks", type=lambda s: s.split(","), required=True)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--n", type=int, default=8, help="rollouts of a task in a step")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--workers", type=int, default=4)
    p.add_argument("--progress", action="store_true")
    p.add_argument("--dump", help="file to keep each step's input and advantages in")
    p.add_argument("--out", help="file to write the curve to; stdout where left out")
    args = p.parse_args()
    with Client() as client:
        text = json.dumps(Trainer(client, args).train(), indent=1)
    if args.out:
        pathlib.Path(args.out).write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
