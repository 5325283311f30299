"""The client against a small real HTTP server that fails as servers do. Run by `go test ./clients/...`."""

import asyncio
import http.server
import json
import pathlib
import sys
import threading
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from proctor_client import AsyncClient, BadCall, Client, Problem  # noqa: E402
from proctor_client import trl  # noqa: E402
from proctor_client.slime import samples_of  # noqa: E402

MADE = {"id": "r_1", "agent_token": "tok", "task_id": "t", "instruction": "Fix it.", "workdir": "/w", "links": {"calls": "/v1/rollouts/r_1/calls"},
        "tools": [{"name": "bash", "description": "d", "input_schema": {}}], "new_field": 1}


class Server(http.server.BaseHTTPRequestHandler):
    seen: list = []
    script: list = []

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
        status, headers, reply = self.script.pop(0) if self.script else (200, {}, {})
        if status == 0:  # hang up without a word
            self.close_connection = True
            return
        raw = json.dumps(reply).encode() if not isinstance(reply, bytes) else reply
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if not isinstance(reply, bytes) else "text/html")
        for k, v in headers.items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_DELETE = answer


class ClientTest(unittest.TestCase):
    def setUp(self):
        Server.seen, Server.script = [], []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = Client(f"http://127.0.0.1:{self.server.server_port}", "key", timeout=10, tries=4)

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def test_forks_and_snapshots(self):
        rollout = self.rollout()
        Server.script += [(201, {}, {"id": "s_1", "ordinal": 2}), (201, {}, {"id": "g_1", "rollouts": [dict(MADE, id="r_2")], "failed": []})]
        self.assertEqual(rollout.snapshot()["id"], "s_1")
        group, forks, failed = rollout.fork(1, snapshot="s_1", wait_s=5)
        self.assertEqual((group, forks[0].id, failed), ("g_1", "r_2", []))
        self.assertEqual([s[1] for s in Server.seen[1:]], ["/v1/rollouts/r_1/snapshot", "/v1/rollouts/r_1/fork"])
        self.assertEqual(Server.seen[2][3], {"n": 1, "snapshot": "s_1", "wait_s": 5})
        self.assertIn("Idempotency-Key", Server.seen[2][2])

    def rollout(self):
        Server.script.append((201, {}, MADE))
        return self.client.rollout("t", seed=3)

    def test_a_call_is_repeated_under_one_key(self):
        ro = self.rollout()
        seen = {"call_id": "", "output": "hi\n", "exit_code": 0, "timed_out": False, "truncated": False, "handle": None, "later": 1}
        Server.script += [(0, {}, {}), (503, {"Retry-After": "0"}, {"code": "interrupted", "retry": True}), (502, {}, b"<html>"), (200, {}, seen)]
        self.assertEqual(ro.bash("ls").output, "hi\n")
        calls = [s for s in Server.seen if s[1].endswith("/calls")]
        self.assertEqual(len(calls), 4)
        self.assertEqual(len({c[2]["Idempotency-Key"] for c in calls}), 1)
        self.assertEqual(calls[0][2]["Authorization"], "Bearer tok")
        self.assertEqual(calls[0][3], {"call_id": "", "name": "bash", "arguments": {"command": "ls"}})

    def test_a_terminal_is_typed_to_and_looked_at(self):
        ro = self.rollout()
        seen = {"call_id": "", "output": ">>>\n", "exit_code": None, "timed_out": False, "truncated": False, "handle": "bg1"}
        Server.script += [(200, {}, seen)] * 3
        ro.type("bg1", "6 * 7", ["enter"])
        ro.type("bg1", rows=40, cols=100)
        self.assertEqual(ro.look("bg1", 2).handle, "bg1")
        made = [(s[3]["name"], s[3]["arguments"]) for s in Server.seen if s[1].endswith("/calls")]
        self.assertEqual(made, [("bash_input", {"handle": "bg1", "text": "6 * 7", "keys": ["enter"]}),
                                ("bash_input", {"handle": "bg1", "rows": 40, "cols": 100}), ("bash_output", {"handle": "bg1", "wait_s": 2})])

    def test_errors(self):
        ro = self.rollout()
        Server.script.append((422, {}, {"code": "invalid_call", "detail": "arguments.command: is missing", "field": "arguments.command", "retry": False}))
        with self.assertRaises(BadCall) as caught:
            ro.call("bash", {})
        self.assertEqual(caught.exception.field, "arguments.command")
        Server.script += [(503, {}, {"code": "engine_unavailable", "retry": True})] * 4
        with self.assertRaises(Problem) as caught:
            ro.bash("ls")
        self.assertEqual(caught.exception.code, "engine_unavailable")
        self.assertEqual(Server.script, [])

    def test_the_sandbox_is_freed(self):
        with self.assertRaises(RuntimeError), self.rollout():
            raise RuntimeError("the trainer's own")
        self.assertEqual(Server.seen[-1][:2], ("DELETE", "/v1/rollouts/r_1"))
        ro = self.rollout()
        Server.script.append((404, {}, {"code": "not_found"}))
        ro.delete()

    def test_grade_and_group(self):
        ro = self.rollout()
        Server.script.append((200, {}, {"outcome": "infra_failure", "reward": None, "failure_class": "infra", "review": {}}))
        self.assertIsNone(ro.grade().reward)
        Server.script.append((201, {}, {"id": "g", "task_id": "t", "n": 2, "rollouts": [MADE], "failed": [{"code": "at_capacity", "detail": "x"}]}))
        group, made, failed = self.client.group("t", 2)
        self.assertEqual((group, len(made), failed[0]["code"]), ("g", 1, "at_capacity"))
        Server.script.append((200, {}, {"id": "g", "status": "done", "hack_rate": 0.5, "rollouts": [
            {"id": "r_1", "status": "graded", "reward": 1.0, "failure_class": "none", "calls": 3, "blocked": 1, "flagged": 0}]}))
        self.assertEqual(self.client.group_results("g", 1).rollouts[0].blocked, 1)

    def test_async(self):
        async def run():
            url = f"http://127.0.0.1:{self.server.server_port}"
            async with AsyncClient(url, "key", tries=2) as client:
                Server.script.append((201, {}, MADE))
                async with await client.rollout("t") as ro:
                    Server.script.append((200, {}, {"call_id": "", "output": "x", "exit_code": 0, "timed_out": False, "truncated": False, "handle": None}))
                    return (await ro.bash("ls")).output
        self.assertEqual(asyncio.run(run()), "x")
        self.assertEqual(Server.seen[-1][0], "DELETE")

    def test_no_key(self):
        with self.assertRaisesRegex(ValueError, "PROCTOR_API_KEY"):
            Client("http://127.0.0.1:1", "")

    def test_trl_environment(self):
        url = f"http://127.0.0.1:{self.server.server_port}"
        env = trl.environment_factory(url, "key", mode="enforce")()
        with self.assertRaises(RuntimeError):
            env.bash("ls")
        Server.script += [(201, {}, MADE), (200, {}, {"call_id": "", "output": "out", "exit_code": 0, "timed_out": False, "truncated": False, "handle": None}),
                          (200, {}, {"outcome": "resolved", "reward": 1.0})]
        self.assertEqual(env.reset(task_id="t", prompt="p"), "Fix it.")
        self.assertEqual(env.bash("ls"), "out")
        self.assertEqual((env.get_reward(), env.get_reward()), (1.0, 1.0))
        self.assertEqual([s[0] for s in Server.seen], ["POST", "POST", "POST"])  # graded: it is left as it is
        self.assertEqual(Server.seen[0][3], {"task_id": "t", "mode": "enforce"})

    def test_slime_samples(self):
        record = {"segments": [
            {"tokens": [1, 2, 3, 4], "logprobs": [0, -1, 0, -2], "action_mask": [0, 1, 0, 1], "loss_mask": [0, 1, 0, 1]},
            {"tokens": [9], "logprobs": [0], "action_mask": [0], "loss_mask": [0]}]}
        got = samples_of(types.SimpleNamespace(metadata={}), record, 1.0)
        self.assertEqual(len(got), 1)
        self.assertEqual((got[0].response_length, got[0].loss_mask, got[0].reward), (3, [1, 0, 1], 1.0))
        self.assertEqual(samples_of(types.SimpleNamespace(metadata={}), record, None)[0].loss_mask, [0, 0, 0])


if __name__ == "__main__":
    unittest.main()
