"""Errors of the server, by its stable codes."""

from __future__ import annotations

from typing import Any


class Problem(Exception):
    """An error answer (RFC 9457). retry says that the same request may succeed later."""

    def __init__(self, status: int, body: dict[str, Any]):
        super().__init__(f"{body.get('detail') or body.get('title') or status} ({body.get('code', status)}, HTTP {status})")
        self.status = status
        self.code: str = body.get("code", "")
        self.field: str = body.get("field", "")
        self.retry: bool = bool(body.get("retry", status in (429, 502, 503, 504)))
        self.after: float = float(body.get("_after", 0) or 0)  # seconds, from Retry-After


class BadCall(Problem):
    """A call that does not fit its tool: nothing ran. field names what is wrong."""


class NotFound(Problem):
    """There is no such resource, or the key given does not open it."""


def problem(status: int, body: dict[str, Any]) -> Problem:
    kind = {"invalid_call": BadCall, "not_found": NotFound}.get(body.get("code", ""), Problem)
    return kind(status, body)
