"""Reads one export back with its owner's own package and says what it held.

    readback.py FORM FOLDER
"""
import json
import pathlib
import sys

form, folder = sys.argv[1], pathlib.Path(sys.argv[2])
rows = [json.loads(line) for line in (folder / f"{form}.jsonl").read_text().splitlines()]


def openai():
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
    from pydantic import TypeAdapter

    messages, tools = TypeAdapter(list[ChatCompletionMessageParam]), TypeAdapter(list[ChatCompletionToolParam])
    for row in rows:
        for m in row["messages"]:
            m.pop("weight", None)  # of fine-tuning, which the chat types do not have
        list(messages.validate_python(row["messages"]))
        tools.validate_python(row["tools"])
    return f"{len(rows)} chats"


def swe_bench():
    from swebench.harness.utils import get_predictions_from_file

    got = get_predictions_from_file(str(folder / "swe-bench.jsonl"), "princeton-nlp/SWE-bench_Lite", "test")
    assert [p["instance_id"] for p in got] == [r["instance_id"] for r in rows]
    assert all(p["model_patch"] for p in got)
    return f"{len(got)} predictions"


def verl():
    import datasets
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "verl.parquet")
    got = table.to_pylist()
    for a, b in zip(got, rows, strict=True):
        for key in ("prompt_ids", "response_ids", "response_mask", "response_logprobs", "reward_score", "num_turns", "uid"):
            assert a[key] == b[key], key
        assert json.loads(a["extra_fields"]) == b["extra_fields"]
    loaded = datasets.load_dataset("parquet", data_files=str(folder / "verl.parquet"), split="train", cache_dir=str(folder / "cache"))
    assert loaded.num_rows == len(rows)
    return f"{table.num_rows} rows, {table.schema.names}"


def inspect():
    from inspect_ai.log import read_eval_log

    path = folder / "log.json"
    path.write_text(json.dumps(rows[0]))
    log = read_eval_log(str(path))
    assert log.version == 2 and log.status == "success" and len(log.samples) == 1
    sample = log.samples[0]
    assert sample.scores["reward"].value == rows[0]["samples"][0]["scores"]["reward"]["value"]
    assert len(sample.messages) == len(rows[0]["samples"][0]["messages"])
    assert sample.metadata["proctor"]["schema"] == "proctor.export.inspect/1"
    return f"a log of {len(sample.messages)} messages"


def verifiers():
    import importlib.metadata

    from verifiers.v1.trace import WireTrace

    for row in rows:
        trace = WireTrace.model_validate(row)
        assert trace.rewards["proctor"].score == row["rewards"]["proctor"]["score"] == trace.reward
        assert trace.task.data.id and trace.is_completed and trace.ok
        paths = {p["leaf"]: p for p in row["info"]["paths"]}
        assert len(trace.branches) == len(paths)
        for branch in trace.branches:
            leaf = next(i for i, n in enumerate(trace.nodes) if n is branch.nodes[-1])
            turns, mask = paths[leaf]["turns"], branch.sampled_mask
            assert len(mask) == len(branch.token_ids) == len(branch.logprobs)
            sampled = {i for t in turns for i in range(t["start"], t["end"])}
            assert {i for i, bit in enumerate(mask) if bit} <= sampled
            for t in turns:
                masked = t.get("superseded") or t["kind"] == "aux" or t["index"] in paths[leaf]["blocked_turns"]
                assert masked or all(mask[t["start"]:t["end"]]), t
    again = WireTrace.model_validate(trace.to_record(None))
    assert [n.logprobs for n in again.nodes] == [n.logprobs for n in trace.nodes]
    return f"{len(rows)} traces of {len(trace.nodes)} nodes, verifiers {importlib.metadata.version('verifiers')}"


print({"openai": openai, "swe-bench": swe_bench, "verl": verl, "inspect": inspect, "verifiers": verifiers}[form]())
