#!/usr/bin/env python3
"""TRL's environment on one task, with scripted calls in place of GRPOTrainer's: python3 trl_environment.py TASK"""

from _script import next_call, task

from proctor_client.trl import environment_factory


def run(task_id: str) -> tuple[float | None, list[str]]:
    """What GRPOTrainer does with an environment: reset with the row, its methods as tools, the reward function."""
    env = environment_factory(hardening=False)()
    env.reset(task_id=task_id)
    seen: list[str] = []
    while (call := next_call(seen))[0] != "submit":
        seen.append(getattr(env, call[0])(**call[1]))
    return env.get_reward(), seen


if __name__ == "__main__":
    print(f"reward {run(task())[0]}")
