"""The environment, and the small HTTP client that it needs, with the standard library and pydantic."""

from __future__ import annotations

import json
import os
import platform
import shlex
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

from minisweagent.exceptions import Submitted
from pydantic import BaseModel

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class Problem(Exception):
    """An error answer of the server. `retry` says that the same request may succeed later."""

    def __init__(self, status: int, body: dict):
        super().__init__(f"{body.get('code', status)}: {body.get('detail', '')}")
        self.status = status
        self.code = body.get("code", "")
        self.retry = bool(body.get("retry", False))


class ProctorEnvironmentConfig(BaseModel):
    task_id: str = ""
    """Task to make a rollout of; not needed where PROCTOR_ROLLOUT names one."""
    url: str = ""
    """Address of the server; PROCTOR_URL where empty."""
    cwd: str = ""
    """Folder in which every command starts; the task's where empty."""
    timeout: int = 60
    """Seconds that a command may take."""
    mode: str = "enforce"
    """Mode of a rollout that is made: enforce, shadow, off."""
    policy: str = "mini-swe-agent"
    """Name of the policy of a rollout that is made."""
    setup_commands: list[str] = []
    """Run once, before the agent, as the harness: with the trainer's key, not judged."""
    grade: bool = False
    """Grade a rollout that was made here when the agent submits; `grade_result` holds the outcome."""


class ProctorEnvironment:
    """Runs mini-swe-agent's actions in a rollout. Every action is a shell of its own, as the agent is told."""

    def __init__(self, *, config_class: type = ProctorEnvironmentConfig, **kwargs):
        self.config = config_class(**kwargs)
        self.url = (self.config.url or os.environ.get("PROCTOR_URL", "http://127.0.0.1:8080")).rstrip("/")
        # Never part of the configuration, which trajectories hold.
        self._key = os.environ.get("PROCTOR_API_KEY", "")
        self.rollout_id = os.environ.get("PROCTOR_ROLLOUT", "")
        self._token = os.environ.get("PROCTOR_AGENT_TOKEN", "")
        self.workdir = os.environ.get("PROCTOR_WORKDIR", "")
        self.instruction = ""
        self.grade_result: dict | None = None
        self._session = uuid.uuid4().hex[:12]
        self._calls = 0
        self._submitted = False
        self._own = not self.rollout_id
        if self._own:
            self._create()
        for command in self.config.setup_commands:
            result = self._call(command, self.config.timeout, token=self._trainer())
            if result["exit_code"] != 0:
                raise RuntimeError(f"set-up command failed: {command}: {result['output'][-500:]}")

    def execute(self, action: dict, cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Runs one action as the agent. What does not fit the server's rules is told as output, like any failure."""
        command = action.get("command", "")
        try:
            seen = self._call(self._fresh(command, cwd or self.config.cwd), timeout or self.config.timeout, token=self._token)
        except Problem as problem:
            if problem.status != 422:
                raise
            return {"output": "", "returncode": -1, "exception_info": str(problem)}
        if seen["timed_out"] or seen["exit_code"] is None:
            return {"output": seen["output"], "returncode": -1, "exception_info": f"the command did not end within {timeout or self.config.timeout} s"}
        output = {"output": seen["output"], "returncode": seen["exit_code"], "exception_info": ""}
        self._check_finished(output)
        return output

    def diff(self) -> str:
        """Gives the work as a unified diff, made on the trusted side. It needs the trainer's key."""
        return self._request("GET", f"/v1/rollouts/{self.rollout_id}/patch", self._trainer(), raw=True)

    def get_template_vars(self, **kwargs) -> dict[str, Any]:
        system = {"system": "Linux", "release": "", "version": "", "machine": platform.machine()}
        return {**self.config.model_dump(), **system, "cwd": self.config.cwd or self.workdir, "rollout_id": self.rollout_id, **kwargs}

    def serialize(self) -> dict:
        return {
            "info": {
                "config": {
                    "environment": {**self.config.model_dump(mode="json"), "cwd": self.config.cwd or self.workdir},
                    "environment_type": f"{type(self).__module__}.{type(self).__name__}",
                },
                "proctor": {"rollout_id": self.rollout_id, "url": self.url},
            }
        }

    def cleanup(self):
        """Lets go of a rollout that was made here and not graded."""
        if self._own and self.rollout_id and self.grade_result is None and self._key:
            rollout, self.rollout_id = self.rollout_id, ""
            self._request("DELETE", f"/v1/rollouts/{rollout}", self._key)

    def _create(self):
        if not self.config.task_id:
            raise ValueError("no rollout: set PROCTOR_ROLLOUT and PROCTOR_AGENT_TOKEN, or give task_id")
        body = {"task_id": self.config.task_id, "mode": self.config.mode, "policy": {"name": self.config.policy}}
        made = self._request("POST", "/v1/rollouts", self._trainer(), body, key=f"mini-{self._session}")
        self.rollout_id, self._token = made["id"], made["agent_token"]
        self.workdir, self.instruction = made["workdir"], made["instruction"]

    def _trainer(self) -> str:
        if not self._key:
            raise ValueError("PROCTOR_API_KEY is not set: making rollouts, set-up and diffs are the harness's and need the trainer's key")
        return self._key

    def _fresh(self, command: str, cwd: str) -> str:
        """Puts a command into a subshell, so that neither its folder nor its exit reach the next one."""
        if cwd and cwd != self.workdir:
            return f"(cd {shlex.quote(cwd)} && (\n{command}\n))"
        return f"(\n{command}\n)"

    def _call(self, command: str, timeout: int, token: str) -> dict:
        self._calls += 1
        body = {"call_id": f"{self._calls}", "name": "bash", "arguments": {"command": command, "timeout_s": timeout}}
        return self._request("POST", f"/v1/rollouts/{self.rollout_id}/calls", token, body, key=f"{self._session}-{self._calls}", wait=timeout + 120)

    def _check_finished(self, output: dict):
        lines = output["output"].lstrip().splitlines(keepends=True)
        if not lines or lines[0].strip() != DONE or output["returncode"] != 0:
            return
        if not self._submitted:
            self._submitted = True
            self._request("POST", f"/v1/rollouts/{self.rollout_id}/submit", self._token, {})
        if self._own and self.config.grade:
            self.grade_result = self._request("POST", f"/v1/rollouts/{self.rollout_id}/grade?wait=true", self._trainer(), {}, wait=3600)
        submission = "".join(lines[1:])
        raise Submitted({"role": "exit", "content": submission, "extra": {"exit_status": "Submitted", "submission": submission}})

    def _request(self, method: str, path: str, token: str, body: dict | None = None, *, key: str = "", wait: int = 600, raw: bool = False, tries: int = 8):
        """Sends a request until it is answered. With a key a call runs once, however often it is sent."""
        for left in reversed(range(tries)):
            try:
                return self._once(method, path, token, body, key, wait, raw)
            except (Problem, OSError) as error:
                if left == 0 or isinstance(error, Problem) and not error.retry:
                    raise
                time.sleep(min(0.2 * 2 ** (tries - left - 1), 20))

    def _once(self, method, path, token, body, key, wait, raw):
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", "Bearer " + token)
        if key:
            request.add_header("Idempotency-Key", key)
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=wait) as answer:
                text = answer.read()
        except urllib.error.HTTPError as refused:
            text = refused.read()
            try:
                problem = json.loads(text)
            except ValueError:  # a proxy's page
                problem = {"detail": str(refused.reason), "retry": refused.code >= 500}
            raise Problem(refused.code, problem) from None
        return text.decode("utf-8", "replace") if raw else json.loads(text or b"null")
