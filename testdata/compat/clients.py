"""Drives a running server with the other sides' own clients, unchanged: SWE-ReX's remote runtime, OpenEnv's
generic client and the MCP SDK. Prints one JSON object: what each of them saw. Configuration by environment:
PROCTOR_URL, PROCTOR_KEY, OPEN_URL (the listener without keys), TASK, WANT (which clients, with commas).
"""
import asyncio
import json
import os
import pathlib
import tempfile
import urllib.request

URL, KEY, OPEN, TASK = (os.environ[k] for k in ("PROCTOR_URL", "PROCTOR_KEY", "OPEN_URL", "TASK"))


def create():
    req = urllib.request.Request(URL + "/v1/rollouts", json.dumps({"task_id": TASK}).encode(),
                                 {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
    with urllib.request.urlopen(req) as res:
        return json.load(res)


async def swerex():
    from swerex.exceptions import NonZeroExitCodeError
    from swerex.runtime.abstract import (BashAction, CloseBashSessionRequest, Command, CreateBashSessionRequest,
                                         ReadFileRequest, UploadRequest, WriteFileRequest)
    from swerex.runtime.remote import RemoteRuntime
    made = create()
    seen = {"rollout": made["id"]}
    for who, token in (("agent", made["agent_token"]), ("harness", KEY)):
        rt = RemoteRuntime(host=URL + "/compat/swerex/" + made["id"], auth_token=token, timeout=30)
        out = seen[who] = {"alive": bool(await rt.is_alive())}
        await rt.create_session(CreateBashSessionRequest())
        out["echo"] = (await rt.run_in_session(BashAction(command="echo hello; cd /tmp; export A=b"))).output
        out["kept"] = (await rt.run_in_session(BashAction(command="echo $A $PWD"))).output
        try:
            await rt.run_in_session(BashAction(command="(exit 3)"))
            out["raised"] = None
        except NonZeroExitCodeError:
            out["raised"] = "NonZeroExitCodeError"
        out["silent"] = (await rt.run_in_session(BashAction(command="(exit 3)", check="silent"))).exit_code
        res = await rt.execute(Command(command=["sh", "-c", "echo $X in $PWD"], env={"X": "y"}, cwd="/usr"))
        out["execute"] = res.stdout
        await rt.write_file(WriteFileRequest(path="/tmp/" + who + "/deep/f.txt", content="written\n"))
        out["read"] = (await rt.read_file(ReadFileRequest(path="/tmp/" + who + "/deep/f.txt"))).content
        with tempfile.TemporaryDirectory() as d:
            pathlib.Path(d, "tools", "bin").mkdir(parents=True)
            pathlib.Path(d, "tools", "bin", "t.sh").write_text("echo tool\n")
            pathlib.Path(d, "tools", "blob").write_bytes(bytes(range(256)))
            await rt.upload(UploadRequest(source_path=str(pathlib.Path(d, "tools")), target_path="/tmp/" + who + "/up"))
        res = await rt.execute(Command(command="sh /tmp/%s/up/bin/t.sh; wc -c < /tmp/%s/up/blob" % (who, who), shell=True))
        out["uploaded"] = res.stdout.split()
        await rt.close_session(CloseBashSessionRequest())
        await rt.close()
    return seen


async def openenv():
    from openenv.core.generic_client import GenericEnvClient
    async with GenericEnvClient(base_url=OPEN + "/compat/openenv", message_timeout_s=300) as env:
        first = await env.reset(task_id=TASK, seed=1)
        step = await env.step({"tool_name": "bash", "arguments": {"command": "pwd; echo $((6*7))"}})
        state = await env.state()
        last = await env.step({"tool_name": "submit"})
        return {"instruction": first.observation["instruction"][:40], "output": step.observation["output"], "steps": state["step_count"],
                "done": last.done, "reward": last.reward, "rollout": state["rollout_id"]}


async def mcp():
    from mcp import ClientSession
    try:
        from mcp.client.streamable_http import streamablehttp_client as connect
        made = create()
        opened = connect(URL + made["links"]["mcp"], headers={"Authorization": "Bearer " + made["agent_token"]})
    except ImportError:
        import httpx
        from mcp.client.streamable_http import streamable_http_client as connect
        made = create()
        opened = connect(URL + made["links"]["mcp"], http_client=httpx.AsyncClient(headers={"Authorization": "Bearer " + made["agent_token"]}, timeout=60))
    async with opened as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            tools = await session.list_tools()
            res = await session.call_tool("bash", {"command": "echo over mcp"})
            bad = await session.call_tool("bash", {"cmd": "ls"})
            error = lambda r: getattr(r, "isError", None) if hasattr(r, "isError") else r.is_error
            return {"tools": sorted(t.name for t in tools.tools), "output": res.content[0].text, "error": error(res), "bad": error(bad), "rollout": made["id"]}


async def main():
    seen = {}
    for name in os.environ.get("WANT", "swerex,openenv,mcp").split(","):
        seen[name] = await {"swerex": swerex, "openenv": openenv, "mcp": mcp}[name]()
    print("\n" + json.dumps(seen))


asyncio.run(main())
