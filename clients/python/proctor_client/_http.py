"""One request, and its repeats."""

from __future__ import annotations

import http.client
import json
import os
import random
import time
import urllib.error
import urllib.request
from typing import Any, Optional

from ._errors import problem


class Transport:
    """Sends requests to one server. Safe for use by several threads.

    timeout is the longest wait for one answer, in seconds: a call may run for two hours. tries is how often a
    request is sent in all; waits between grow from 0.2 s to 10 s, or are what Retry-After says.
    """

    def __init__(self, url: Optional[str], key: Optional[str], timeout: float, tries: int):
        self.url = (url or os.environ.get("PROCTOR_URL", "http://127.0.0.1:8080")).rstrip("/")
        found = key if key is not None else os.environ.get("PROCTOR_API_KEY")
        if not found:
            raise ValueError("no key: give key=, or set PROCTOR_API_KEY")
        self.key, self.timeout, self.tries = found, timeout, tries

    def send(self, method: str, path: str, body: Any = None, *, token: Optional[str] = None, key: Optional[str] = None,
             timeout: Optional[float] = None) -> Any:
        """Sends until answered. A request without an Idempotency-Key is repeated only where it changes nothing.
        timeout is for this request, in seconds, in place of the transport's."""
        safe = key is not None or method in ("GET", "DELETE")
        for left in reversed(range(max(1, self.tries))):
            try:
                return self._once(method, path, body, token or self.key, key, timeout or self.timeout)
            except Exception as error:
                retry = getattr(error, "retry", isinstance(error, (OSError, http.client.HTTPException)))
                if left == 0 or not retry or not safe:
                    raise
                wait = min(10.0, 0.2 * 2 ** (self.tries - 1 - left)) * random.uniform(0.5, 1.5)
                time.sleep(getattr(error, "after", 0) or wait)
        raise AssertionError("unreachable")

    def _once(self, method: str, path: str, body: Any, token: str, key: Optional[str], timeout: float) -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", "Bearer " + token)
        if key:
            request.add_header("Idempotency-Key", key)
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=timeout) as answer:
                raw = answer.read()
                if not raw:
                    return None
                if answer.headers.get("Content-Type", "").split(";")[0].endswith("json") and "ndjson" not in answer.headers["Content-Type"]:
                    return json.loads(raw)
                return raw
        except urllib.error.HTTPError as refused:
            with refused:
                raw = refused.read()
            try:
                told = json.loads(raw)
            except ValueError:  # a proxy's page
                told = {}
            if not isinstance(told, dict):
                told = {}
            told.setdefault("detail", refused.reason)
            told["_after"] = refused.headers.get("Retry-After", 0) if str(refused.headers.get("Retry-After", "")).isdigit() else 0
            raise problem(refused.code, told) from None
