"""Who waits for a job goes on waiting while its store is away for a moment."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDown
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState, aended, ended, found
from tests.support.commands import queuepool
from tests.support.eventually import eventually
from tests.support.redis_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="queuepool-blip-") as folder:
        own = Server(folder)
        yield own
        own.kill()


@pytest.fixture
def queue(server) -> Iterator[Queue]:
    with closing(Queue(ConnectionSettings(url=f"unix://{server.path}"))) as made:
        yield made


class Looks:
    """Looks at a job, and what became of them."""

    def __init__(self, queue: Queue, job_id: str) -> None:
        self._queue, self._job_id = queue, job_id
        self.answered = self.refused = 0

    def __call__(self) -> JobState | None:
        try:
            state = found(self._queue.stores, self._job_id)
        except StoreDown:
            self.refused += 1
            raise
        self.answered += 1
        return state

    async def asynchronous(self) -> JobState | None:
        return self()


@pytest.mark.by_turns("way")
@pytest.mark.parametrize("way", ["wait", "await_job"])
def test_a_wait_outlasts_a_server_that_is_started_again(server, queue, tmp_path, way):
    job_id = queue.push("do", {"mode": "ok"}, track=600)
    look, waited = Looks(queue, job_id), Future[JobState]()

    def wait() -> None:
        try:
            is_plain = way == "wait"
            waited.set_result(
                ended(look, job_id, 60) if is_plain else asyncio.run(aended(look.asynchronous, job_id, 60))
            )
        except BaseException as error:
            waited.set_exception(error)

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: look.answered)
    server.kill()
    eventually(lambda: look.refused)
    server.start()
    flags = ("--url", f"unix://{server.path}", "--modules", "tests.support.poolapp", "--stop-when-empty")
    done = queuepool("work", *flags, env={"TRAIL": str(tmp_path / "trail")})
    state = waited.result(60)
    thread.join()

    assert (0, "done") == (done.returncode, state.state)


def test_a_wait_for_a_store_that_never_answered_ends_at_once(server, queue):
    job_id = queue.push("do", track=600)
    server.kill()
    look = Looks(queue, job_id)
    with pytest.raises(StoreDown):
        ended(look, job_id, 60)

    assert (0, 1) == (look.answered, look.refused)


def test_a_wait_whose_time_is_over_while_the_store_is_away_says_that_it_is_away(server, queue):
    job_id = queue.push("do", track=600)
    look = Looks(queue, job_id)
    answers = [look()]
    server.kill()
    with pytest.raises(StoreDown):
        ended(lambda: answers.pop() if answers else look(), job_id, 2.0)

    assert look.refused > 1
