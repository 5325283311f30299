"""The swebench package's report of a run whose instances' reports lie in the current folder."""
import contextlib
import importlib.util
import io
import json
import os
import sys
import types

# The report asks docker for nothing here; its modules are not installed.
for name in ("docker", "swebench.image_builder", "swebench.image_builder.docker_utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["docker"].DockerClient = object
sys.modules["swebench.image_builder.docker_utils"].list_images = lambda client: []
spec = importlib.util.find_spec("swebench")
harness = types.ModuleType("swebench.harness")
harness.__path__ = [os.path.join(list(spec.submodule_search_locations)[0], "harness")]
sys.modules["swebench.harness"] = harness
from swebench.harness.reporting import make_run_report  # noqa: E402

ask = json.load(sys.stdin)
with contextlib.redirect_stdout(io.StringIO()):
    path = make_run_report(ask["predictions"], [{"instance_id": i} for i in ask["set"]], ask["run"], report_dir="theirs")
print(path.read_text())
