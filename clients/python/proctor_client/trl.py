"""TRL: an environment_factory for GRPOTrainer. Each generation gets an environment of its own.

    from proctor_client.trl import environment_factory
    GRPOTrainer(..., environment_factory=environment_factory(url, key),
                reward_funcs=lambda environments, **_: [e.get_reward() for e in environments])

Dataset rows carry task_id; its public, typed methods are the tools that the model is offered.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from ._sync import Client, Rollout


def environment_factory(url: Optional[str] = None, key: Optional[str] = None, **options: Any) -> Callable[[], "Environment"]:
    """options are those of a rollout: mode, policy, limits, ..."""
    client = Client(url, key)
    return lambda: Environment(client, options)


class Environment:
    def __init__(self, client: Client, options: dict[str, Any]):
        self._client, self._options = client, options
        self._rollout: Optional[Rollout] = None
        self._reward: Optional[float] = None

    def reset(self, task_id: str = "", **row: Any) -> str:
        """Begins a rollout of the row's task; the instruction is added to the prompt."""
        self._end()
        self._rollout, self._reward = self._client.rollout(task_id, **self._options), None
        return self._rollout.instruction

    def bash(self, command: str) -> str:
        """Runs a command in the sandbox's shell and returns what it printed.

        Args:
            command: The shell command to run.
        """
        return self._call("bash", command=command)

    def view(self, path: str) -> str:
        """Shows a file or lists a folder.

        Args:
            path: The file or folder.
        """
        return self._call("view", path=path)

    def create(self, path: str, file_text: str) -> str:
        """Writes a file.

        Args:
            path: The file.
            file_text: Its whole text.
        """
        return self._call("create", path=path, file_text=file_text)

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replaces a text that occurs once in a file.

        Args:
            path: The file.
            old_str: The text to replace.
            new_str: What takes its place.
        """
        return self._call("str_replace", path=path, old_str=old_str, new_str=new_str)

    def get_reward(self) -> Optional[float]:
        """Grades the work once and frees the sandbox. None: nobody can say what was earned."""
        if self._rollout is not None and self._reward is None:
            self._reward = self._rollout.grade().reward
            self._end()
        return self._reward

    def _call(self, name: str, **arguments: Any) -> str:
        if self._rollout is None:
            raise RuntimeError("reset the environment first")
        return self._rollout.call(name, arguments).output

    def _end(self) -> None:
        if self._rollout is not None:
            self._rollout.close()
            self._rollout = None
