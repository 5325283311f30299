#!/usr/bin/env python3
"""One rollout from start to reward, with the standard library alone.

    python3 clients/python/example_rollout.py TASK_ID

The server is found by PROCTOR_URL and PROCTOR_API_KEY. In place of a model there is a list of
commands; an adapter puts its policy where `commands` is read and keeps the rest.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("PROCTOR_URL", "http://127.0.0.1:8080")
KEY = os.environ["PROCTOR_API_KEY"]

COMMANDS = ["git log --oneline | head -3", "git show v1.4 --stat", "pytest -q 2>&1 | tail -1"]


class Problem(Exception):
    """An error answer. `retry` says that the same request may succeed later."""

    def __init__(self, status, body):
        super().__init__(f"{body.get('code', status)}: {body.get('detail', '')}")
        self.code = body.get("code", "")
        self.retry = body.get("retry", False)


def once(method, path, token, body, key):
    """Sends one request and decodes its answer."""
    request = urllib.request.Request(URL + path, method=method)
    request.add_header("Authorization", "Bearer " + token)
    if key:
        request.add_header("Idempotency-Key", key)
    data = None
    if body is not None:
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=7300) as answer:  # a call may take two hours
            return json.loads(answer.read() or "null")
    except urllib.error.HTTPError as refused:
        text = refused.read()
        try:
            raise Problem(refused.code, json.loads(text)) from None
        except ValueError:  # a proxy's page
            raise Problem(refused.code, {"detail": refused.reason, "retry": refused.code >= 500}) from None


def send(method, path, token, body=None, key=None, tries=8):
    """Sends a request until it is answered. With a key a call runs once, however often it is sent."""
    for left in reversed(range(tries)):
        try:
            return once(method, path, token, body, key)
        except (Problem, OSError) as error:
            if left == 0 or isinstance(error, Problem) and not error.retry:
                raise
            time.sleep(min(2 ** (tries - left - 1), 30))


def rollout(task_id, commands):
    """Runs a rollout of a task and gives its record."""
    made = send("POST", "/v1/rollouts", KEY, {"task_id": task_id, "policy": {"name": "example"}}, key=f"example-{os.urandom(8).hex()}")
    path, token = "/v1/rollouts/" + made["id"], made["agent_token"]
    for turn, command in enumerate(commands, 1):
        call = {"call_id": f"turn-{turn}", "name": "bash", "arguments": {"command": command, "timeout_s": 120}}
        seen = send("POST", path + "/calls", token, call, key=f"turn-{turn}")
        print(f"> {command}\n{seen['output']}[exit {seen['exit_code']}]")
    send("POST", path + "/submit", token, {})
    send("POST", path + "/grade?wait=true", KEY, {})
    return send("GET", path + "/trajectory", KEY)


def main():
    record = rollout(sys.argv[1], COMMANDS)
    print()
    for call in record["calls"]:
        verdict = call["verdict"]
        print(f"call {call['ordinal']}: {verdict['decision']}, {verdict['action']} {verdict.get('class', '')}".rstrip())
    end = record["rollout"]
    print(f"reward {end['reward']}, outcome {end['outcome']}, failure class {end['failure_class']}, {end['blocked']} blocked")


if __name__ == "__main__":
    main()
