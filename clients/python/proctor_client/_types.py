"""What the server answers, typed. Unknown fields are kept out: a newer server may send more."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, TypeVar

T = TypeVar("T", bound="Shape")


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
