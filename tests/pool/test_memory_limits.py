"""Workers with large modules work; a memory limit below their size is reported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.lines import without_silences
from tests.support.meters import counts_in, of_job

pytestmark = pytest.mark.real_start

#: more than the default, more than it was before it was counted from the size after boot, as pandas is
_LARGE = "from tests.support.poolapp import *\nHELD = bytes(range(256)) * 4096 * 200\n"


@pytest.fixture(autouse=True)
def large(site) -> None:
    (site.path / "large.py").write_text(_LARGE)


def ended(site, count: int) -> list[dict]:
    for _ in range(count):
        site.push("ok")
    return eventually(lambda: len(found := site.trail(event="end")) == count and found)


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["--preload", "--no-preload"])
def test_workers_with_large_modules_work_and_stay_with_the_default(site, how):
    with site.pool("--workers", "1", how, "--modules", "large") as pool:
        done = ended(site, 3)

    assert 1 == len({line["pid"] for line in done})
    assert "memory" not in pool.log()


def test_a_limit_below_the_size_of_the_modules_is_told_once_and_each_worker_does_a_job_before_it_leaves(site):
    with site.pool("--workers", "1", "--modules", "large", "--memory", "128", "--reserve-ahead", "1") as pool:
        done = ended(site, 3)
        eventually(lambda: 3 == pool.log().count("reason=memory"))

    assert 3 == len({line["pid"] for line in done})
    [(limit, size)] = re.findall(r"memory \((\d+) MB\) is below what a worker takes .* \((\d+) MB\)", pool.log())
    assert (128, True) == (int(limit), 200 < int(size) < 400)
    assert 1 == without_silences(pool.log()).count("WARNING")


@pytest.mark.thorough("unit/test_memory.py has the rules of sizes; the tests around have whole pools")
def test_a_limit_above_the_size_after_boot_is_one_of_what_jobs_take(site):
    site.push("eat", mb=100)
    with site.pool("--workers", "1", "--modules", "large", "--memory", "+64") as pool:
        eventually(lambda: "reason=memory" in pool.log())
        site.push("ok")
        eventually(lambda: 2 == len(site.trail(event="end")))

    assert "is below" not in pool.log()
    assert 2 == len({line["pid"] for line in site.trail(event="start")})


def test_the_log_and_a_metric_say_which_job_has_made_the_worker_grow(site):
    (site.path / "grows.py").write_text(
        "from queuepool import job\nKEPT = []\n"
        "@job('small')\ndef small(): KEPT.append(b'x' * 1_000_000)\n"
        "@job('leaks')\ndef leaks(): KEPT.append(b'x' * 30_000_000)\n"
    )
    with site.pool("--workers", "1", "--memory", "+80", "--reserve-ahead", "1", "--modules", "grows") as pool:
        for done, name in enumerate(("small", "leaks", "leaks", "small", "leaks"), start=1):
            site.queue.push(name)
            eventually(lambda done=done: pool.pids(rf"^queuepool: master .* done={done} "))
        found = eventually(lambda: re.search(r"reason=memory .* grew_most=(\S+) grew_mb=(\S+)", pool.log()))
        eventually(lambda: 1 == of_job(counts_in(Path(pool.runtime)), "leaks").outgrown)
        metrics = site.run("metrics", "--runtime-dir", pool.runtime, *site.where).stdout

    told = re.findall(r'queuepool_worker_memory_exits_total{.*job_name="(\S+)"} (\d+)', metrics)
    assert [("leaks", "1"), ("small", "0")] == sorted(told)
    assert "leaks" == found[1]
    assert 80 < float(found[2]) < 120


@pytest.mark.thorough("unit/test_memory.py has the rules of sizes; the tests around have whole pools")
def test_a_lone_worker_does_its_job_too(site):
    site.push("ok")
    done = site.run("work", *site.flags("--modules", "large", "--memory", "128", "--stop-when-empty"), check=False)

    assert 12 == done.returncode
    assert site.trail(event="end")
    assert 1 == done.stderr.count("is below what a worker takes")


ABOVE = pytest.mark.thorough("as any that is above")


@pytest.mark.by_turns("limit", "code")
@pytest.mark.parametrize(
    ("limit", "code"), [("128", 1), pytest.param("+64", 0, marks=ABOVE), pytest.param("0", 0, marks=ABOVE)]
)
def test_check_says_it_before(site, limit, code):
    (site.path / "pool.ini").write_text(f"[pool]\nmodules = large\nmemory = {limit}\n")
    done = site.run("check", *site.where, "-c", "pool.ini", "--json", check=False)

    found = [row for row in json.loads(done.stdout) if "memory" in row["what"]]
    assert (code, code) == (done.returncode, len(found))
