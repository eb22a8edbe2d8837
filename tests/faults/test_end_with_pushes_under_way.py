"""A process or a queue ends while awaited pushes wait for a server that says nothing."""

from __future__ import annotations

import sys
import textwrap
import time

import pytest

from tests.support import warm
from tests.support.processes import halt

SCRIPT = """
    import asyncio, sys
    from queuepool import configure, job
    from queuepool.config.settings import ConnectionSettings

    @job("end.send")
    def send(): ...

    async def push():
        pushing = [asyncio.create_task(send.adispatch()) for _ in range(500)]
        done, _ = await asyncio.wait(pushing, timeout=0.2)
        assert not done
        print("pushing", flush=True)
        {ending}

    queue = configure(ConnectionSettings(url=sys.argv[1], timeout=60))
    asyncio.run(push())
"""


@pytest.mark.fault("F76")
@pytest.mark.by_turns("ending")
@pytest.mark.parametrize("ending", ["queue.close()", "raise SystemExit(0)", "return"])
def test_a_process_does_not_wait_for_pushes_that_nothing_answers(own_server, ending):
    halt(own_server.process.pid)
    program = textwrap.dedent(SCRIPT).replace("{ending}", ending)
    began = time.monotonic()
    words = [sys.executable, "-c", program, f"unix://{own_server.path}"]
    # What a return leaves to the interpreter is left to a real one.
    done = warm.run(words, real=ending == "return", capture_output=True, text=True, timeout=50)

    assert (0, "pushing\n") == (done.returncode, done.stdout)
    assert time.monotonic() - began < 30
