"""Answers for the parsers of the swebench package: one JSON document a line in, one a line out.

In:  {"parser": "pytest", "log": "...", "instance_id": "...", "version": "..."}
Out: {"results": {...}} or {"error": "..."}
"""
import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import types

# swebench.harness imports docker, datasets and modal on its way in; its parsers need none of them.
spec = importlib.util.find_spec("swebench")
harness = types.ModuleType("swebench.harness")
harness.__path__ = [os.path.join(list(spec.submodule_search_locations)[0], "harness")]
sys.modules["swebench.harness"] = harness
from swebench.harness.log_parsers import PARSER_REGISTRY  # noqa: E402


def answer(ask):
    about = types.SimpleNamespace(instance_id=ask.get("instance_id", ""), version=ask.get("version", ""))
    # The harness reads logs as text files, whose line ends Python makes one.
    log = re.sub("\r\n?", "\n", ask["log"])
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return {"results": PARSER_REGISTRY["parse_log_" + ask["parser"]](log, about)}
    except Exception as problem:
        return {"error": f"{type(problem).__name__}: {problem}"}


if __name__ == "__main__":
    print(json.dumps({"parsers": sorted(name.removeprefix("parse_log_") for name in PARSER_REGISTRY)}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
