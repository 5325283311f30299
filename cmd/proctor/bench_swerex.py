"""Times SWE-ReX for `proctor bench exec`: a line with a probe's name comes in, its one call is made, and a line goes out."""

import asyncio
import secrets
import socket
import subprocess
import sys

import aiohttp
from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest
from swerex.runtime.local import LocalRuntime
from swerex.runtime.remote import RemoteRuntime


async def until_alive(runtime):
    for _ in range(300):
        try:
            if (await runtime.is_alive(timeout=1)).is_alive:
                return
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass
        await asyncio.sleep(0.1)
    sys.exit("swe-rex: its server does not answer")


async def with_session(runtime):
    """Opens a session and gives its name; again where its first words to the shell get lost on a busy machine."""
    for name in ("one", "two", "three"):
        try:
            await runtime.create_session(CreateBashSessionRequest(session=name))
            return name
        except Exception as error:
            failure = error
    raise failure


async def main():
    local = LocalRuntime()
    mine = await with_session(local)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    server = subprocess.Popen(
        [sys.executable, "-m", "swerex.server", "--host", "127.0.0.1", "--port", str(port), "--auth-token", token],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        remote = RemoteRuntime(host="http://127.0.0.1", port=port, auth_token=token)
        await until_alive(remote)
        theirs = await with_session(remote)
        probes = {
            "session": lambda: local.run_in_session(BashAction(command="true", session=mine)),
            "http_session": lambda: remote.run_in_session(BashAction(command="true", session=theirs)),
            "http_execute": lambda: remote.execute(Command(command=["bash", "-c", "true"])),
        }
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            got = await probes[line.strip()]()
            print("ok" if got.exit_code == 0 else f"exit {got.exit_code}", flush=True)
    finally:
        server.kill()
        server.wait()


asyncio.run(main())
