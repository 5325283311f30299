"""The client for asyncio: the same methods, each run in a thread, so that nothing but the standard library is
needed. workers bounds how many requests are under way at a time."""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional, Sequence

from ._sync import Client, Rollout
from ._types import Grade, Group, Observation, Verdict


class AsyncClient:
    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 7300, tries: int = 8, workers: int = 64):
        self._client = Client(url, key, timeout=timeout, tries=tries)
        self._pool = ThreadPoolExecutor(workers, "proctor")

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False)

    async def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, functools.partial(function, *args, **kwargs))

    async def rollout(self, task_id: Optional[str] = None, **options: Any) -> "AsyncRollout":
        return AsyncRollout(self, await self.run(self._client.rollout, task_id, **options))

    async def group(self, task_id: str, n: int, **options: Any) -> tuple[str, list["AsyncRollout"], list[dict[str, str]]]:
        group, made, failed = await self.run(self._client.group, task_id, n, **options)
        return group, [AsyncRollout(self, r) for r in made], failed

    async def group_results(self, group_id: str, wait_s: int = 0) -> Group:
        return await self.run(self._client.group_results, group_id, wait_s)

    async def abort_group(self, group_id: str) -> Group:
        return await self.run(self._client.abort_group, group_id)

    async def tasks(self) -> list[dict[str, Any]]:
        return await self.run(self._client.tasks)

    async def policy_stats(self, name: str) -> dict[str, Any]:
        return await self.run(self._client.policy_stats, name)


class AsyncRollout:
    """A rollout under asyncio. `async with` frees its sandbox at the end."""

    def __init__(self, client: AsyncClient, rollout: Rollout):
        self._client, self.sync = client, rollout
        self.id, self.task_id, self.instruction, self.workdir = rollout.id, rollout.task_id, rollout.instruction, rollout.workdir
        self.agent_token, self.tools, self.links, self.url = rollout.agent_token, rollout.tools, rollout.links, rollout.url

    async def __aenter__(self) -> "AsyncRollout":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.run(self.sync.close)

    async def call(self, name: str, arguments: dict[str, Any], **options: Any) -> Observation:
        return await self._client.run(self.sync.call, name, arguments, **options)

    async def bash(self, command: str, **arguments: Any) -> Observation:
        return await self._client.run(self.sync.bash, command, **arguments)

    async def type(self, handle: str, text: str = "", keys: Sequence[str] = (), **size: int) -> Observation:
        return await self._client.run(self.sync.type, handle, text, keys, **size)

    async def look(self, handle: str, wait_s: float = 0) -> Observation:
        return await self._client.run(self.sync.look, handle, wait_s)

    async def exec(self, argv: list[str], stdin: str = "", timeout_s: float = 60) -> dict[str, Any]:
        return await self._client.run(self.sync.exec, argv, stdin, timeout_s)

    async def heartbeat(self) -> None:
        await self._client.run(self.sync.heartbeat)

    async def submit(self) -> None:
        await self._client.run(self.sync.submit)

    async def grade(self) -> Grade:
        return await self._client.run(self.sync.grade)

    async def patch(self) -> bytes:
        return await self._client.run(self.sync.patch)

    async def trajectory(self) -> dict[str, Any]:
        return await self._client.run(self.sync.trajectory)

    async def upload_segments(self, segments: list[dict[str, Any]]) -> int:
        return await self._client.run(self.sync.upload_segments, segments)

    async def export(self, form: str, blocked: str = "keep") -> list[dict[str, Any]]:
        return await self._client.run(self.sync.export, form, blocked)

    async def verdicts(self) -> list[Verdict]:
        return await self._client.run(self.sync.verdicts)

    async def snapshot(self) -> dict[str, Any]:
        return await self._client.run(self.sync.snapshot)

    async def fork(self, n: int, **options: Any) -> tuple[str, list["AsyncRollout"], list[dict[str, str]]]:
        group, made, failed = await self._client.run(self.sync.fork, n, **options)
        return group, [AsyncRollout(self._client, r) for r in made], failed

    async def delete(self) -> None:
        await self._client.run(self.sync.delete)
