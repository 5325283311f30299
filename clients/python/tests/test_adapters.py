"""Every adapter's example on a real server: PROCTOR_URL, PROCTOR_API_KEY, tasks toy-0 to toy-3. Run by
`go test ./cmd/proctor -run PythonAdapters`, which serves them."""

import inspect
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples"))
import rllm_runtime  # noqa: E402
import skyrl_generator  # noqa: E402
import slime_generate  # noqa: E402
import tinker_group  # noqa: E402
import trl_environment  # noqa: E402
import verl_loop  # noqa: E402

from proctor_client import Client  # noqa: E402
from proctor_client._text import calls_in  # noqa: E402

DECOY = "cat: .eval/expected.txt: No such file or directory\n"


class AdapterTest(unittest.TestCase):
    def test_verl(self):
        kept, masked = verl_loop.run("toy-1", "keep"), verl_loop.run("toy-1", "mask")
        for out in (kept, masked):
            self.assertEqual((out.reward_score, out.num_turns), (1.0, 5))
            self.assertEqual(len(out.response_ids), len(out.response_mask))
            self.assertEqual(len(out.response_ids), len(out.response_logprobs))
            (guard,) = [g for g in out.extra_fields["proctor"]["guard"] if g["decision"] == "block"]
            self.assertEqual((guard["decision"], guard["tool_call_id"], guard["observation"]), ("block", "0.0", DECOY))
        # The blocked turn is the first: its tokens are those that mask takes from keep, and no other.
        n = guard["end"] - guard["start"]
        self.assertEqual(kept.response_mask[:n], [1] * n)
        self.assertEqual(masked.response_mask, [0] * n + kept.response_mask[n:])
        self.assertIn(b"No such file", bytes(kept.response_ids))
        with self.assertRaisesRegex(ValueError, "task_id"):
            verl_loop.run("")

    def test_verl_rejects(self):
        out = verl_loop.run("toy-1", "reject")
        self.assertEqual((sum(out.response_mask), out.reward_score, out.extra_fields["trains"]), (0, 0.0, False))

    def test_skyrl(self):
        reward, seen = skyrl_generator.environment("toy-2")
        self.assertEqual((reward, seen[0]), (1.0, DECOY))
        out = skyrl_generator.generator("toy-2")
        self.assertEqual((out["rewards"], out["trajectory_ids"], out["is_last_step"]), ([1.0, 1.0], [0, 1], None))
        for ids, mask, logprobs in zip(out["response_ids"], out["loss_masks"], out["rollout_logprobs"], strict=True):
            self.assertEqual((len(ids), len(logprobs)), (len(mask), len(mask)))
            self.assertEqual(mask[0], 0)  # the blocked turn
            self.assertTrue(any(mask))
        self.assertEqual(out["rollout_metrics"], {"proctor/reward_unknown": 0, "proctor/blocked": 2})
        self.assertEqual([sum(m) for m in skyrl_generator.generator("toy-2", 1, "reject")["loss_masks"]], [0])

    def test_rllm(self):
        good, bad = rllm_runtime.runtime(["toy-3", "no-such-task"])
        self.assertEqual((good.finished, good.reward, good.termination_reason.name, good.metadata["blocked"]), (True, 1.0, "ENV_DONE", 1))
        self.assertEqual((bad.finished, bad.reward, bad.termination_reason.name, bad.session_id), (False, None, "ERROR", "s1"))
        self.assertIn("no-such-task", bad.error)
        self.assertEqual(rllm_runtime.environment("toy-0"), (1.0, [DECOY, "first clue: 0\n", "second clue: 0\n", "created answer.txt\n"]))

    def test_tinker(self):
        for reward, seen, metrics in tinker_group.run("toy-1"):
            self.assertEqual((reward, seen[0]), (1.0, DECOY))
            self.assertEqual(metrics, {"turns": 5.0, "reward_unknown": 0.0, "blocked": 1.0})

    def test_slime(self):
        (sample,) = slime_generate.run("toy-2")
        self.assertEqual((sample.reward, len(sample.loss_mask), len(sample.rollout_log_probs)), (1.0, sample.response_length, sample.response_length))
        self.assertTrue(all(lp == -0.5 for lp, bit in zip(sample.rollout_log_probs, sample.loss_mask) if bit))

    def test_trl(self):
        reward, seen = trl_environment.run("toy-3")
        self.assertEqual((reward, seen[0]), (1.0, DECOY))

    def test_signatures(self):
        """What the trainers call has the parameters that they call it with."""
        from proctor_client import rllm, skyrl, slime, tinker, verl

        for function, names in {
            verl.ProctorAgentLoop.run: ["self", "sampling_params", "kwargs"], slime.generate: ["args", "sample", "sampling_params"],
            skyrl.ProctorEnv.__init__: ["self", "env_config", "extras"], skyrl.ProctorEnv.init: ["self", "prompt"], skyrl.ProctorEnv.step: ["self", "action"],
            skyrl.ProctorGenerator.generate: ["self", "input_batch"], rllm.ProctorRuntime.execute_tasks: ["self", "submissions", "timeout"],
            rllm.ProctorEnv.step: ["self", "action"], rllm.ProctorEnv.from_dict: ["info"], tinker.ProctorMessageEnv.step: ["self", "message"],
            tinker.ProctorMessageEnv.initial_observation: ["self"], tinker.ProctorGroup.make_envs: ["self"]}.items():
            self.assertEqual(list(inspect.signature(function).parameters), names, function)
        for asked in (verl.ProctorAgentLoop.run, slime.generate, skyrl.ProctorGenerator.generate, rllm.ProctorRuntime.execute_tasks, tinker.ProctorMessageEnv.step):
            self.assertTrue(inspect.iscoroutinefunction(asked), asked)

    def test_calls_in_text(self):
        for text, want in {
            "done": [], 'x <tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call> y': [("bash", {"command": "ls"})],
            '<tool_call>{"name": "submit"}': [("submit", {})], '<tool_call>{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}</tool_call>': [("bash", {"command": "ls"})],
            "a\n```bash\nls -l\n```\nb\n```sh\npwd\n```": [("bash", {"command": "ls -l"}), ("bash", {"command": "pwd"})],
            "```python\nx\n```": []}.items():
            self.assertEqual([(c.name, c.arguments) for c in calls_in(text)], want, text)
        for text in ("<tool_call>ls</tool_call>", "<tool_call>[1]</tool_call>", '<tool_call>{"arguments": {}}</tool_call>', '<tool_call>{"name": 1}</tool_call>',
                     '<tool_call>{"name": "bash", "arguments": [1]}</tool_call>'):
            (call,) = calls_in(text)
            self.assertIn("does not read", call.error, text)

    def test_nothing_is_left(self):
        """Every example freed its sandboxes."""
        with Client() as client:
            views = client._transport.send("GET", "/v1/rollouts?limit=1000")["rollouts"]
        self.assertEqual([v["id"] for v in views if v["status"] in ("running", "creating", "submitted")], [])


if __name__ == "__main__":
    unittest.main()
