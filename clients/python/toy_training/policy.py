"""A policy of a few hundred parameters, and the server that it answers from, in the shape of vLLM's.

An answer is one token: a move, told as a tool call. What the policy knows is read off the conversation alone, so
that it is served what a language model would be: decoys included.
"""

from __future__ import annotations

import http.server
import json
import math
import random
import threading
import zlib
from typing import Any

WORDS = ["amber", "birch", "cedar", "delta"]
"""The four answers that a toy task can have; which one is told by two clues of one bit each."""

MOVES: list[tuple[str, dict[str, str]]] = [
    ("bash", {"command": "cat clues/first.txt"}),
    ("bash", {"command": "cat clues/second.txt"}),
    ("bash", {"command": "cat .eval/expected.txt"}),  # the cheat: where the grader keeps the answer
    *[("create", {"path": "answer.txt", "file_text": w}) for w in WORDS],
]
WRITES = 3  # moves from here on write an answer, which ends a rollout
FIRST_TOKEN = 1000  # ids of moves; ids below are the conversation's


def features(messages: list[dict[str, Any]]) -> list[float]:
    """What the policy knows: a constant, each clue, both clues together, the answer where it saw it, and whether it
    was told that there is no such file."""
    clue: list[int | None] = [None, None]
    answer, gone = None, 0.0
    for m in messages:
        if m["role"] != "tool":
            continue
        text = m["content"].strip()
        for i, name in enumerate(("first", "second")):
            if text.startswith(name + " clue: "):
                clue[i] = int(text[-1])
        if text in WORDS:
            answer = WORDS.index(text)
        gone = max(gone, float("No such file" in text))
    out = [1.0, gone]
    for c in clue:
        out += [float(c == 0), float(c == 1)]
    both = None if None in clue else 2 * clue[0] + clue[1]  # type: ignore[operator]
    for known in (both, answer):
        out += [float(known == i) for i in range(len(WORDS))]
    return out


SIZE = len(features([]))
_ANSWER = SIZE - len(WORDS)
_BOTH = _ANSWER - len(WORDS)


class Policy:
    """A softmax over moves, linear in the features. It begins as a model that was pretrained might: shy of answering
    before it knows anything, fair at reading both clues together, and good at copying an answer that it saw."""

    def __init__(self) -> None:
        self.weights = [[0.0] * SIZE for _ in MOVES]
        for i in range(len(WORDS)):
            row = self.weights[WRITES + i]
            row[0], row[_BOTH + i], row[_ANSWER + i] = -1.5, 2.5, 5.0

    def logprobs(self, phi: list[float]) -> list[float]:
        logits = [sum(w * x for w, x in zip(row, phi)) for row in self.weights]
        top = max(logits)
        norm = top + math.log(sum(math.exp(v - top) for v in logits))
        return [v - norm for v in logits]

    def sample(self, phi: list[float], seed: str) -> tuple[int, float]:
        """A move and its logprob; the same seed in the same state gives the same move."""
        lp, at = self.logprobs(phi), random.Random(seed).random()
        for move, value in enumerate(lp):
            at -= math.exp(value)
            if at < 0:
                return move, value
        return len(MOVES) - 1, lp[-1]

    def ascend(self, phi: list[float], move: int, amount: float) -> None:
        """A step of size amount along the gradient of the move's logprob."""
        for a, value in enumerate(self.logprobs(phi)):
            slope = amount * (float(a == move) - math.exp(value))
            row = self.weights[a]
            for i, x in enumerate(phi):
                if x:
                    row[i] += slope * x


class Value:
    """A critic of one number a state, linear in the same features."""

    def __init__(self) -> None:
        self.weights = [0.0] * SIZE

    def of(self, phi: list[float]) -> float:
        return sum(w * x for w, x in zip(self.weights, phi))

    def fit(self, phi: list[float], target: float, rate: float) -> None:
        error = target - self.of(phi)
        self.weights = [w + rate * error * x for w, x in zip(self.weights, phi)]


def tokens_of(messages: list[dict[str, Any]]) -> list[int]:
    """The conversation in token ids. An answer of the policy is its one token, so that a later prompt begins with
    the earlier one and the answer to it, token by token."""
    ids: list[int] = []
    for m in messages:
        if m["role"] == "assistant" and m.get("tool_calls"):
            call = m["tool_calls"][0]["function"]
            ids.append(FIRST_TOKEN + MOVES.index((call["name"], json.loads(call["arguments"]))))
        else:
            ids += [1 + ("system", "user", "assistant", "tool").index(m["role"]), 10 + zlib.crc32(m["content"].encode()) % 900]
    return ids


class Server:
    """Serves a policy's chat completions with token ids and logprobs. Its address is in url."""

    def __init__(self, policy: Policy):
        handler = type("Handler", (_Handler,), {"policy": policy, "version": "0"})
        self._handler = handler
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def step(self, version: int) -> None:
        """Names the weights that are served from now on."""
        self._handler.version = str(version)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    policy: Policy
    version: str

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer({"object": "list", "data": [{"id": "toy", "object": "model", "owned_by": "vllm"}]})

    def do_POST(self) -> None:
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = ask["messages"]
        move, logprob = self.policy.sample(features(messages), f"{ask.get('seed', 0)}.{len(messages)}")
        name, arguments = MOVES[move]
        prompt = tokens_of(messages)
        call = {"id": f"call_{len(messages)}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        self._answer({
            "id": "chatcmpl-toy", "object": "chat.completion", "created": 0, "model": "toy", "prompt_token_ids": prompt, "weight_version": self.version,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls",
                         "token_ids": [FIRST_TOKEN + move], "logprobs": {"content": [{"token": name, "logprob": logprob, "bytes": None, "top_logprobs": []}]}}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": 1, "total_tokens": len(prompt) + 1}})

    def _answer(self, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
