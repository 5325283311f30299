"""The environment, on proctor_client's requests and their repeats."""

from __future__ import annotations

import os
import platform
import shlex
import uuid
from typing import Any

from minisweagent.exceptions import Submitted
from proctor_client._http import Transport
from proctor_client import Problem
from pydantic import BaseModel

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


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
        # Never part of the configuration, which trajectories hold.
        self._key = os.environ.get("PROCTOR_API_KEY", "")
        self.rollout_id = os.environ.get("PROCTOR_ROLLOUT", "")
        self._token = os.environ.get("PROCTOR_AGENT_TOKEN", "")
        # Every request names its own key or token; which one is here does not matter.
        self._transport = Transport(self.config.url or None, self._key or self._token or "none", timeout=600, tries=8)
        self.url = self._transport.url
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
        patch = self._request("GET", f"/v1/rollouts/{self.rollout_id}/patch", self._trainer())
        return patch.decode("utf-8", "replace") if patch else ""

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

    def _request(self, method: str, path: str, token: str, body: dict | None = None, *, key: str = "", wait: int = 600) -> Any:
        """Sends a request until it is answered. With a key it runs once, however often it is sent; submit and grade do so
        without one."""
        once = key or (f"{self._session}-{path}" if method == "POST" else None)
        return self._transport.send(method, path, body, token=token, key=once, timeout=wait)
