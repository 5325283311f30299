#!/usr/bin/env python3
"""One rollout from start to reward, with proctor_client, which is in this folder and needs the standard library alone.

    python3 clients/python/example_rollout.py TASK_ID

The server is found by PROCTOR_URL and PROCTOR_API_KEY. In place of a model there is a list of
commands; an adapter puts its policy where `commands` is read and keeps the rest.
"""

import sys

from proctor_client import Client

COMMANDS = ["git log --oneline | head -3", "git show v1.4 --stat", "pytest -q 2>&1 | tail -1"]


def rollout(task_id, commands):
    """Runs a rollout of a task and gives its record. What the server is too busy for is sent again, under one key."""
    with Client() as server, server.rollout(task_id, policy={"name": "example"}) as ro:
        for command in commands:
            seen = ro.bash(command, timeout_s=120)
            print(f"> {command}\n{seen.output}[exit {seen.exit_code}]")
        ro.submit()
        ro.grade()
        return ro.trajectory()


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
