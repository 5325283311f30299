"""What the server answers, typed. Unknown fields are kept out: a newer server may send more."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, TypedDict, TypeVar

T = TypeVar("T", bound="Shape")


class Policy(TypedDict, total=False):
    """Who attempts the task. base_url and model are where the model gateway forwards to; api_key is sent there and
    told to nobody; dialect (openai, vllm, sglang, llama.cpp, anthropic) skips finding out what it speaks."""

    name: str
    size_b: float
    version: str
    base_url: str
    model: str
    dialect: str
    api_key: str


class CreateOptions(TypedDict, total=False):
    """The fields of POST /v1/rollouts but task_id; a test holds them to the server's own."""

    task: dict[str, Any]  # an inline task, in place of task_id
    mode: str  # enforce, shadow, off
    preset: str  # balanced, strict, observe
    answers: str  # decoy, explicit
    on_unsure: str  # execute, decoy, hold; these three where the judge is unsure, answers garbage, is out
    on_failure: str
    on_outage: str
    hardening: bool
    honeypots: bool
    group_id: Optional[str]
    policy: Policy
    seed: int
    limits: dict[str, Any]
    metadata: dict[str, Any]
    lease_s: int
    queue: bool  # wait for a place where the server is full
    wait_s: int  # so many seconds


class ForkOptions(TypedDict, total=False):
    """The fields of POST /v1/rollouts/{id}/fork but n. What is left out is as in the rollout that is forked."""

    snapshot: str  # default: one that is taken now
    policy: Policy
    seed: int
    seeds: list[int]
    metadata: dict[str, Any]
    lease_s: int
    need: int
    queue: bool
    wait_s: int


class GroupOptions(CreateOptions, total=False):
    """What POST /v1/groups takes beside task_id and n."""

    need: int  # once so many have a reward, the others are ended
    seeds: list[int]


class Shape:
    @classmethod
    def of(cls: type[T], body: dict[str, Any]) -> T:
        names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        return cls(**{k: v for k, v in body.items() if k in names})


@dataclasses.dataclass(frozen=True)
class Observation(Shape):
    """What the agent is shown for a call. exit_code is None where the command did not end by itself."""

    call_id: str
    output: str
    exit_code: Optional[int]
    timed_out: bool
    truncated: bool
    handle: Optional[str]
    output_base64: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Tool(Shape):
    name: str
    description: str
    input_schema: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Grade(Shape):
    """reward is None where nobody can say what was earned (infra, verifier, task): leave the rollout out."""

    outcome: str
    reward: Optional[float]
    failure_class: str = "none"
    patch_sha256: str = ""
    tests: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Verdict(Shape):
    """A call that a rule hit. ordinal is its place in the record, from 1."""

    ordinal: int
    name: str
    arguments: dict[str, Any]
    verdict: dict[str, Any]
    review: Optional[dict[str, Any]] = None


@dataclasses.dataclass(frozen=True)
class GroupRollout(Shape):
    """A member of a group, as its results tell it."""

    id: str
    status: str
    reward: Optional[float]
    failure_class: str
    calls: int
    blocked: int
    flagged: int


@dataclasses.dataclass(frozen=True)
class Group(Shape):
    id: str
    status: str
    rollouts: list[GroupRollout]
    hack_rate: float

    @classmethod
    def of(cls, body: dict[str, Any]) -> "Group":  # type: ignore[override]
        return cls(body["id"], body["status"], [GroupRollout.of(r) for r in body["rollouts"]], body["hack_rate"])
