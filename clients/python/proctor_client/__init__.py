"""Client of a Proctor server: typed, sync and async, with the standard library alone.

    from proctor_client import Client
    with Client() as server, server.rollout("interval-merge") as ro:
        print(ro.bash("ls").output)
        print(ro.grade().reward)

The server is found by PROCTOR_URL and PROCTOR_API_KEY unless it is named. A request is repeated while the
server says that it may succeed later; whatever makes or runs something carries an Idempotency-Key, so that a
repeat is answered from the record and never runs twice.
"""

from ._aio import AsyncClient, AsyncRollout
from ._errors import BadCall, NotFound, Problem
from ._sync import Client, Rollout
from ._types import Grade, Group, GroupRollout, Observation, Tool, Verdict

__all__ = ["AsyncClient", "AsyncRollout", "BadCall", "Client", "Grade", "Group", "GroupRollout", "NotFound", "Observation",
           "Problem", "Rollout", "Tool", "Verdict"]
__version__ = "0.1.0"
