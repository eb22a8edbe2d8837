"""The event loops that jobs may run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec

Loop = asyncio.AbstractEventLoop


def _of_uvloop() -> Loop:
    import uvloop

    loop: Loop = uvloop.new_event_loop()
    return loop


#: by name; uvloop's if that is installed
LOOPS: dict[str, Callable[[], Loop]] = {"asyncio": asyncio.new_event_loop}
if find_spec("uvloop"):
    LOOPS["uvloop"] = _of_uvloop
