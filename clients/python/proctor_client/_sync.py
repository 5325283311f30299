"""The client for plain code."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Optional, Sequence

from ._errors import NotFound
from ._http import Transport
from ._types import CreateOptions, ForkOptions, Grade, Group, GroupOptions, Observation, Tool, Verdict

if TYPE_CHECKING:  # of no use at run time, and not there before Python 3.11
    from typing_extensions import Unpack


class Client:
    """A trainer's client. Safe for use by several threads. As a context manager it needs no closing of its own."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 7300, tries: int = 8):
        self._transport = Transport(url, key, timeout, tries)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @property
    def url(self) -> str:
        return self._transport.url

    def nemo_gym_tools(self) -> list[dict[str, Any]]:
        """The tools in the form of a NeMo-Gym dataset's responses_create_params."""
        told = self._transport.send("GET", "/compat/nemo-gym")["tools"]
        return [{"type": "function", "name": t["name"], "description": t["description"], "parameters": t["input_schema"]} for t in told]

    def rollout(self, task_id: Optional[str] = None, *, idempotency_key: Optional[str] = None, **options: Unpack[CreateOptions]) -> "Rollout":
        """Makes a rollout. options are the fields of POST /v1/rollouts (CreateOptions): mode, policy, seed, ..."""
        body = {**({"task_id": task_id} if task_id else {}), **options}
        made = self._transport.send("POST", "/v1/rollouts", body, key=idempotency_key or str(uuid.uuid4()))
        return Rollout(self._transport, made)

    def group(self, task_id: str, n: int, *, idempotency_key: Optional[str] = None, **options: Unpack[GroupOptions]) -> tuple[str, list["Rollout"], list[dict[str, str]]]:
        """Makes n rollouts of a task: the group's id, the rollouts, and what could not be made."""
        made = self._transport.send("POST", "/v1/groups", {"task_id": task_id, "n": n, **options}, key=idempotency_key or str(uuid.uuid4()))
        return made["id"], [Rollout(self._transport, r) for r in made["rollouts"]], made["failed"]

    def group_results(self, group_id: str, wait_s: int = 0) -> Group:
        return Group.of(self._transport.send("GET", f"/v1/groups/{group_id}?wait_s={wait_s}"))

    def abort_group(self, group_id: str) -> Group:
        """Ends the members that still run; their sandboxes are gone when it returns."""
        return Group.of(self._transport.send("POST", f"/v1/groups/{group_id}/abort", key=str(uuid.uuid4())))

    def tasks(self) -> list[dict[str, Any]]:
        return self._transport.send("GET", "/v1/tasks")["tasks"]

    def policy_stats(self, name: str) -> dict[str, Any]:
        return self._transport.send("GET", f"/v1/policies/{name}/stats")


class Rollout:
    """One attempt at a task. As a context manager its sandbox is freed at the end; the record stays.

    Calls of one rollout are serial: share it between threads only with a lock of your own.
    """

    def __init__(self, transport: Transport, made: dict[str, Any]):
        self._transport = transport
        self.id: str = made["id"]
        self.agent_token: str = made["agent_token"]
        self.task_id: str = made["task_id"]
        self.instruction: str = made["instruction"]
        self.workdir: str = made["workdir"]
        self.tools = [Tool.of(t) for t in made["tools"]]
        self.links: dict[str, str] = made["links"]
        self._graded = False

    def __enter__(self) -> "Rollout":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return self._transport.url

    def call(self, name: str, arguments: dict[str, Any], *, call_id: str = "", idempotency_key: Optional[str] = None) -> Observation:
        """Runs a tool as the agent. However often it is sent, it runs once."""
        body = {"call_id": call_id, "name": name, "arguments": arguments}
        return Observation.of(self._transport.send("POST", self.links["calls"], body, token=self.agent_token, key=idempotency_key or str(uuid.uuid4())))

    def bash(self, command: str, **arguments: Any) -> Observation:
        return self.call("bash", {"command": command, **arguments})

    def type(self, handle: str, text: str = "", keys: Sequence[str] = (), **size: int) -> Observation:
        """Types into a background command: text, then keys by name ("enter", "ctrl-c", "up"; bash with pty=True). size is rows, cols."""
        given = {"text": text or None, "keys": list(keys) or None, **size}
        return self.call("bash_input", {"handle": handle, **{k: v for k, v in given.items() if v is not None}})

    def look(self, handle: str, wait_s: float = 0) -> Observation:
        """What a background command printed since the last look; of one on a terminal, its screen as text."""
        return self.call("bash_output", {"handle": handle, "wait_s": wait_s})

    def exec(self, argv: list[str], stdin: str = "", timeout_s: float = 60) -> dict[str, Any]:
        """Runs one argv as the harness: recorded, not judged, outside the agent's shell."""
        body = {"argv": argv, "stdin": stdin, "timeout_s": timeout_s}
        return self._transport.send("POST", f"/v1/rollouts/{self.id}/exec", body, key=str(uuid.uuid4()))

    def heartbeat(self) -> None:
        self._transport.send("POST", f"/v1/rollouts/{self.id}/heartbeat", key=str(uuid.uuid4()))

    def submit(self) -> None:
        self._transport.send("POST", f"/v1/rollouts/{self.id}/submit", token=self.agent_token, key=str(uuid.uuid4()))

    def grade(self) -> Grade:
        """Grades in a fresh sandbox and waits for it. Asked again it gives the same grade."""
        grade = Grade.of(self._transport.send("POST", f"/v1/rollouts/{self.id}/grade?wait=true", key=str(uuid.uuid4())))
        self._graded = True
        return grade

    def close(self) -> None:
        """Frees the sandbox, unless grading did: a graded rollout is left as it is, with its status."""
        if not self._graded:
            self.delete()

    def patch(self) -> bytes:
        got = self._transport.send("GET", f"/v1/rollouts/{self.id}/patch")
        return got if isinstance(got, bytes) else b""

    def trajectory(self) -> dict[str, Any]:
        return self._transport.send("GET", f"/v1/rollouts/{self.id}/trajectory")

    def upload_segments(self, segments: list[dict[str, Any]]) -> int:
        """Records the segments of a trainer that samples by itself; the same upload again changes nothing."""
        return self._transport.send("POST", f"/v1/rollouts/{self.id}/segments", {"segments": segments}, key=str(uuid.uuid4()))["segments"]

    def export(self, form: str, blocked: str = "keep") -> list[dict[str, Any]]:
        """The rollout in a trainer's own form (slime, verl, verifiers, ...): its documents. blocked is keep, mask,
        penalty:VALUE or reject; a rollout that is left out, or has no tokens for a form of tokens, is a Problem."""
        got = self._transport.send("GET", f"/v1/rollouts/{self.id}/trajectory?format={form}&blocked={blocked}")
        text = got.decode() if isinstance(got, bytes) else json.dumps(got)
        return [json.loads(line) for line in text.split("\n") if line]

    def verdicts(self) -> list[Verdict]:
        return [Verdict.of(v) for v in self._transport.send("GET", f"/v1/rollouts/{self.id}/verdicts")["verdicts"]]

    def snapshot(self) -> dict[str, Any]:
        """Keeps the files as they are once the call that runs has ended, until the rollout ends."""
        return self._transport.send("POST", f"/v1/rollouts/{self.id}/snapshot", key=str(uuid.uuid4()))

    def fork(self, n: int, *, idempotency_key: Optional[str] = None, **options: Unpack[ForkOptions]) -> tuple[str, list["Rollout"], list[dict[str, str]]]:
        """Makes n rollouts that go on from here, or from a snapshot: their group's id, the rollouts, and what could not be made."""
        made = self._transport.send("POST", f"/v1/rollouts/{self.id}/fork", {"n": n, **options}, key=idempotency_key or str(uuid.uuid4()))
        return made["id"], [Rollout(self._transport, r) for r in made["rollouts"]], made["failed"]

    def delete(self) -> None:
        """Frees the sandbox. Deleting what is gone is no error."""
        try:
            self._transport.send("DELETE", f"/v1/rollouts/{self.id}")
        except NotFound:
            pass
