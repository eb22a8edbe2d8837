"""What a job can do in a worker that runs several at once is as in one of its own."""

from __future__ import annotations

import re

from tests.support.eventually import eventually
from tests.support.pools import Site

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.besideapp")


def push(site: Site, name: str, **data: object) -> str:
    return site.queue.push(name, data)


def test_the_pieces_of_lines_that_jobs_print_at_the_same_time_never_mix(site):
    words = ["aa", "bb", "cc"]
    for word in words:
        push(site, "prints", word=word)
    push(site, "prints", word="first", last=" no end", count=2)
    with site.pool(*BESIDE) as pool:
        eventually(lambda: 4 == len(site.trail(event="printed")))
        eventually(lambda: "no end" in pool.log())

    lines = re.findall(r"((?:\w\w )+\w\w)$", pool.log(), re.MULTILINE)
    assert [" ".join([word] * 5) for word in words] == sorted(line for line in lines if line[:2] in words)
    assert re.search(r"first first no end$", pool.log(), re.MULTILINE)
    assert 0 < pool.log().index("first first no end") < pool.log().index("aa aa aa aa aa")
