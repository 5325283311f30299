"""An environment for mini-swe-agent whose commands run in a Proctor rollout.

mini-swe-agent takes any class by its import path, so that nothing of it is changed:

    mini -y --environment-class proctor_minisweagent.ProctorEnvironment -t "..."

or in its configuration

    environment:
      environment_class: proctor_minisweagent.ProctorEnvironment
      task_id: interval-merge
      setup_commands: ["git config --global user.name t"]

Inside `proctor run --agent`, PROCTOR_ROLLOUT and PROCTOR_AGENT_TOKEN name the rollout. Elsewhere one is made,
with the trainer's key in PROCTOR_API_KEY. The agent's commands go out with the agent's token and are judged.
`setup_commands` and `diff()` are the harness's: they go out with the trainer's key, and are recorded as such.
"""

from proctor_minisweagent.environment import ProctorEnvironment, ProctorEnvironmentConfig, Problem

__all__ = ["ProctorEnvironment", "ProctorEnvironmentConfig", "Problem"]
