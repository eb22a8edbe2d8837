"""Waiting for a descriptor, whatever its number."""

from __future__ import annotations

import fcntl
import os
import resource
from collections.abc import Iterator

import pytest

from queuepool.unix.originals import is_readable, is_writable


@pytest.fixture(params=[0, 3000])
def pipe(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """A pipe whose ends have numbers of at least this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    low = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, request.param) for fd in low]
    yield high[0], high[1]
    for fd in {*low, *high}:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_pipe_is_readable_once_something_is_in_it(pipe: tuple[int, int]) -> None:
    source, sink = pipe
    before = is_readable(source, 0.0)
    os.write(sink, b"x")

    assert (False, True) == (before, is_readable(source, 5.0))


def test_a_pipe_is_writable_until_it_is_full(pipe: tuple[int, int]) -> None:
    _, sink = pipe
    written = 0
    while is_writable(sink, 0.0):
        written += os.write(sink, bytes(4096))

    assert written == fcntl.fcntl(sink, fcntl.F_GETPIPE_SZ)
