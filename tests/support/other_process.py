"""Another process with a store of its own: it does one thing to a queue and prints the result as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from tests.support import warm
from tests.support.eventually import eventually
from tests.support.idle_transactions import let_transactions_be_idle
from tests.support.samples import ids, new_jobs, payload, record


def started(connection: ConnectionSettings, verb: str, *words: object, before: Sequence[str] = ()) -> Other:
    """``before``: the command that it is run by."""
    command = [*before, sys.executable, "-m", __name__, connection.url, connection.prefix, verb, *map(str, words)]
    said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - read when the process is over
    under = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": os.pathsep.join(sys.path)} if before else {}
    return Other(warm.start(command, stdout=said, env={**os.environ, **under}, cwd=warm.ROOT), said)


def answers(others: Sequence[Other]) -> list[Any]:
    """When all of them are over, whatever has become of one."""
    for other in others:
        other.end()
    return [other.answer() for other in others]


class Other:
    """What was started; it is over when its answer is read, or when it is killed."""

    def __init__(self, process: warm.Process | subprocess.Popen[bytes], said: IO[str]) -> None:
        self._process, self._output, self._said = process, said, ""

    def kill(self) -> None:
        self._process.kill()
        self.end()

    def end(self) -> None:
        if not self._output.closed:
            self._process.wait(50)
            with self._output as output:
                output.seek(0)
                self._said = output.read()

    def answer(self) -> Any:
        self.end()
        assert 0 == self._process.returncode
        return json.loads(self._said)


def push(stores: Any, queue: str, name: str, delay: str) -> float:
    """Gives the monotonic second before which it was not there."""
    began = time.monotonic()
    stores.queue.push(queue, new_jobs(payload(name)), float(delay))
    return began


def look(stores: Any, queue: str) -> list[Any]:
    """Take what there is; gives that, and this process's own clock."""
    reservation = stores.queue.reserve([queue], stores.queue.join(), 10)
    return [ids(reservation.leases), reservation.next_due, time.time()]


def drain(stores: Any, queue: str, batch: str) -> list[str]:
    """As a worker does it, until there is no more."""
    let_transactions_be_idle(stores)
    names: list[str] = []
    tag, done = stores.queue.join(), []
    while leases := stores.queue.reserve([queue], tag, int(batch), done).leases:
        done = leases
        names += ids(leases)
    return names


def fail(stores: Any, queue: str, identity: str) -> int:
    """All of them under one id."""
    let_transactions_be_idle(stores)
    tag, failed = stores.queue.join(), 0
    while leases := stores.queue.reserve([queue], tag, 1).leases:
        failed += stores.queue.fail(leases[0], identity, record(leases[0], identity))
    return failed


def hold(stores: Any, queue: str, statement: str) -> None:
    """Take a job and be about to say so, for ever; then in the middle of ``statement``, if that is one."""

    def work(connection: Any) -> None:
        # A look at whether it is there for others locks it for a moment, and whoever takes one skips it.
        eventually(lambda: stores.queue.leases._table.take(connection, queue, 7, 1))
        if statement:
            connection.exec_driver_sql(statement)
        time.sleep(3600)

    let_transactions_be_idle(stores)
    stores.client.transaction(work)


VERBS: dict[str, Callable[..., Any]] = {"push": push, "look": look, "drain": drain, "fail": fail, "hold": hold}


def main(url: str, prefix: str, verb: str, *words: str) -> None:
    stores = Stores(ConnectionSettings(url=url, prefix=prefix), reply_timeout=10.0)
    print(json.dumps(VERBS[verb](stores, *words)))
    stores.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
