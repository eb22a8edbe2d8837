"""Everything that says how a pool is says the same, in every state: one function answers, from what lives."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from queuepool.alerts.rules import readings
from queuepool.alerts.watch import AlertFacts
from queuepool.board.board import Board, Role, State
from queuepool.board.counts import PoolCounts
from queuepool.board.health import health_of
from queuepool.board.overview import PoolOverview
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import overview
from queuepool.config.alerts import AlertSettings
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.master.service_manager import SignsOfPool
from queuepool.metrics.server import Pages
from tests.support import in_process
from tests.support.boards import process
from tests.support.commands import queuepool
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.probing import probe
from tests.support.processes import halted

#: kinds of troubles that are alerts, too
ALERTS = {"boot", "store_full", "paused"}


@dataclass
class Standing:
    """A pool whose master is this process: a steward and two workers."""

    path: Path
    runtime: RuntimeDir
    board: Board
    #: whether its loop comes round, however long the commands take
    beats: bool = True
    #: held for each pass of it
    passes: Lock = field(default_factory=Lock)

    def beat(self, end: Event) -> None:
        while not end.wait(1.0):
            with self.passes:
                if self.beats:
                    self.board.header.beat = time.monotonic()

    def be_well(self) -> None:
        """Everything is as in a pool at work, now."""
        header = self.board.header
        header.state, header.target, header.generation, header.restart_known = State.RUNNING, 2, 2, 1
        self.beats = True
        header.beat = time.monotonic()
        header.ready = header.since = time.time()
        header.store_lost = header.store_full = 0.0
        header.down = header.orphans = 0
        header.paused = ""
        header.note_failed_boot(0, "")
        for number in (1, 2):
            slot = self.board.slots[number]
            slot.state, slot.generation, slot.dead = State.IDLE, 2, 0

    def workers(self, *states: State, generation: int = 2) -> None:
        for slot, state in zip(self.board.slots[1:3], states, strict=True):
            slot.state, slot.generation = state, generation

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            self.board.slots[number].dead = 1

    def page(self, path: str) -> tuple[int, str]:
        answer = Pages("default", "main", self.board).answer(path)
        return answer.status, answer.body.decode()

    def metric(self, name: str) -> float:
        families = text_string_to_metric_families(self.page("/metrics")[1])
        [value] = [sample.value for family in families for sample in family.samples if sample.name == name]
        return float(value)

    def command(self, *words: str) -> tuple[int, str]:
        place = ["--runtime-dir", str(self.path / "run"), "--url", f"sqlite:///{self.path}/queue.db"]
        done = queuepool(*words, *place, cwd=self.path, env={"COLUMNS": "300"})
        return done.returncode, done.stdout


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Standing]:
    connection = ConnectionSettings(url=f"sqlite:///{tmp_path}/queue.db")
    runtime = RuntimeDir(PoolSettings(connection=connection, runtime_dir=tmp_path / "run"))
    runtime.claim()
    board = runtime.new_board(8)
    process(board, 0, Role.STEWARD, 0, State.RUNNING)
    for number in (1, 2):
        process(board, number, Role.WORKER, number, State.IDLE)
    standing, end = Standing(tmp_path, runtime, board), Event()
    beating = Thread(target=standing.beat, args=[end])
    beating.start()
    yield standing
    end.set()
    beating.join()
    board.unlink()
    runtime.release()


def begin(pool: Standing) -> None:
    pool.board.header.state, pool.board.header.restart_known = State.STARTING, 0
    pool.workers(State.STARTING, State.STARTING)


def boot(pool: Standing) -> None:
    pool.board.header.state = State.STARTING
    pool.workers(State.STARTING, State.STARTING)


def lose_all(pool: Standing) -> None:
    pool.board.header.state = State.FAILING
    pool.board.header.note_failed_boot(2, "cannot import app")
    pool.kill(1, 2)


def boot_in_vain(pool: Standing) -> None:
    """A master that has not yet noticed, or of an older version, says that it runs."""
    pool.board.header.note_failed_boot(2, "cannot import app")
    pool.workers(State.STARTING, State.STARTING)


def lose_one(pool: Standing) -> None:
    pool.kill(2)


def lose_one_for_good(pool: Standing) -> None:
    pool.kill(2)
    pool.board.header.note_failed_boot(2, "cannot import app")


def keep_old_code(pool: Standing) -> None:
    pool.board.header.generation = 3
    pool.board.header.note_failed_boot(3, "cannot import app")


def mend(pool: Standing) -> None:
    """Once all have become ready, what kept one of them from it is over."""
    pool.board.header.note_failed_boot(2, "killed by signal 9")


def pause(pool: Standing) -> None:
    pool.board.header.state = State.PAUSED
    pool.workers(State.PAUSED, State.BUSY)


def begin_maintenance(pool: Standing) -> None:
    """One worker still runs the last job that it began."""
    pool.board.header.down = 1
    pool.workers(State.PAUSED, State.BUSY)


def pause_queues(pool: Standing) -> None:
    pool.board.header.paused = "default"
    pool.workers(State.PAUSED, State.PAUSED)


def pause_one_queue(pool: Standing) -> None:
    pool.board.header.paused = "imports"


def start_without_store(pool: Standing) -> None:
    pool.board.header.store_lost = time.time() - 30
    pool.workers(State.STARTING, State.STARTING)


def scale_to_0(pool: Standing) -> None:
    pool.board.header.target = 0
    pool.workers(State.BUSY, State.BUSY)  # they leave after their jobs


def lose_store(pool: Standing, seconds: float) -> None:
    pool.board.header.store_lost = time.time() - seconds


def fill_store(pool: Standing) -> None:
    pool.board.header.store_full = time.time() - 5


def lose_stewards(pool: Standing) -> None:
    pool.board.header.state = State.FAILING


def leave_orphans(pool: Standing) -> None:
    pool.board.header.orphans = 2


def stop(pool: Standing) -> None:
    pool.board.header.state = State.DRAINING
    pool.workers(State.BUSY, State.IDLE)


def hang(pool: Standing) -> None:
    with pool.passes:
        pool.beats = False
    pool.board.header.beat = time.monotonic() - 1000


#: what has happened, the state, whether it takes jobs, the exit code, whether it is well, and the worst of it
CASES: list[tuple[Callable[[Standing], None], str, bool, int, bool, str]] = [
    (lambda pool: None, "running", True, 0, True, ""),
    (begin, "starting", False, 4, False, "the steward has not read the control keys yet"),
    (boot, "starting", False, 4, False, "no worker has become ready yet"),
    (lose_all, "failing", False, 4, False, "no worker becomes ready, so no job begins: cannot import app"),
    (boot_in_vain, "failing", False, 4, False, "no worker becomes ready, so no job begins: cannot import app"),
    (lose_one, "running", True, 0, True, ""),
    (lose_one_for_good, "running", True, 0, False, "the new code does not become ready: cannot import app"),
    (keep_old_code, "running", True, 0, False, "the new code does not become ready: cannot import app"),
    (mend, "running", True, 0, True, ""),
    (pause, "paused", False, 0, True, "no worker begins a job until queuepool continue"),
    (begin_maintenance, "running", False, 0, True, "maintenance mode: no worker begins a job"),
    (pause_queues, "running", False, 0, True, "no worker begins a job, its queues are paused: default"),
    (pause_one_queue, "running", True, 0, True, "paused queues: imports"),
    (start_without_store, "starting", False, 4, False, "no worker becomes ready before the store is back"),
    (scale_to_0, "running", False, 4, False, "it was scaled to 0 workers"),
    (lambda pool: lose_store(pool, 5), "running", True, 0, False, "the store has been away since"),
    (lambda pool: lose_store(pool, 90), "running", False, 4, False, "the store has been away since"),
    (fill_store, "running", True, 0, False, "the store has been full since"),
    (lose_stewards, "failing", False, 4, False, "the steward dies again and again"),
    (leave_orphans, "running", True, 0, False, "workers of a killed master still run"),
    (stop, "draining", False, 4, False, "the pool is being stopped"),
    (hang, "running", False, 4, False, "the master's loop last came round 10"),
]


@pytest.mark.timeout(300)  # more than a hundred commands, and one second of `top` for each state
@each(("change", "state", "takes_jobs", "code", "is_well", "words"), CASES)
def test_everybody_says_the_same(pool: Standing, change, state, takes_jobs, code, is_well, words):
    def asked(answer: Callable[[], Any]) -> Any:
        pool.be_well()
        change(pool)
        return answer()

    answer = {"state": state, "takes_jobs": takes_jobs, "is_well": is_well}
    told = [asked(lambda: pool.command("status", "--json")), asked(lambda: pool.page("/api/v1/status"))]
    facts: list[Mapping[str, Any]] = [json.loads(told[0][1])[0], json.loads(told[1][1])]
    for one in facts:
        assert answer == {key: one[key] for key in answer}, one["troubles"]
        assert words in " ".join(trouble["text"] for trouble in one["troubles"][:1])
    kinds = {trouble["kind"] for trouble in facts[0]["troubles"]}

    for verb in (["status"], ["top", "--once"]):
        found, shown = asked(lambda verb=verb: pool.command(*verb))
        assert code == found == told[0][0]
        assert words in shown
        assert state in shown.splitlines()[0]
    assert (0 if takes_jobs else 1) == asked(lambda: probe("ready", pool.path / "run")).returncode
    assert (200 if takes_jobs else 503) == asked(lambda: pool.page("/readyz"))[0]
    assert [takes_jobs, "boot" in kinds, "store_full" in kinds] == [
        bool(asked(lambda name=name: pool.metric(f"queuepool_{name}")))
        for name in ("ready", "boot_problem", "store_full")
    ]
    assert words in asked(lambda: SignsOfPool(PoolSettings(), pool.board).now()).words
    assert answer | {"elsewhere": True} == asked(lambda: told_elsewhere(pool))
    assert {"boot", "store_full"} & kinds == {"boot", "store_full"} & asked(lambda: alerted(pool))


def told_elsewhere(pool: Standing) -> dict[str, Any]:
    """What another host makes of the pool's notice."""
    notice = json.loads(json.dumps(overview("default", pool.board).to_json()))
    health = health_of(PoolOverview.from_json({**notice, "host": "web2"}))
    return {"state": health.state, "takes_jobs": health.takes_jobs, "is_well": health.is_well, "elsewhere": True}


def alerted(pool: Standing) -> set[str]:
    """The kinds of which an alert would be raised if they last."""
    facts, _ = AlertFacts("default", pool.board, lambda _: PoolCounts()).look(None, None, None)
    return {one.kind for one in readings(facts, AlertSettings())}


def test_a_pause_is_an_alert_if_it_lasts(pool: Standing):
    for change in (pause, begin_maintenance, pause_one_queue):
        pool.be_well()
        assert "paused" not in alerted(pool)
        change(pool)
        assert "paused" in alerted(pool)


# Real pools


def told(
    site: Site, capsys: pytest.CaptureFixture[str], code: int, state: str, words: str = "", without: str = "\0"
) -> str:
    """What ``status`` says once it exits with this code and says all this and no more; the other voices say so, too."""
    place = ["--runtime-dir", str(site.path / "run"), *site.where]

    def said() -> str | None:
        done = in_process.queuepool(capsys, "status", *place)  # the pool is in other processes
        is_said = f"pool default: {state} " in done.stdout and words in done.stdout and without not in done.stdout
        return done.stdout if done.returncode == code and is_said else None

    shown: str = eventually(said)
    assert code == in_process.queuepool(capsys, "top", "--once", *place).returncode
    assert (0 if code == 0 else 1) == probe("ready", site.path / "run").returncode
    metrics = in_process.queuepool(capsys, "metrics", *place).stdout
    assert f'queuepool_ready{{pool="default"}} {int(code == 0)}' in metrics
    assert f'queuepool_boot_problem{{pool="default"}} {int("become" in shown)}' in metrics
    return shown


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["--no-preload", "--preload"])
def test_a_pool_whose_code_breaks_and_whose_workers_all_die_fails_until_it_is_mended(site, capsys, how):
    module = site.path / "deployed.py"
    module.write_text("import tests.support.poolapp\n")
    with site.pool("--workers", "2", "--modules", "deployed", how) as pool:
        module.write_text("raise RuntimeError('half deployed')\n")
        for pid in [*pool.pids("^queuepool: template"), *pool.workers()]:
            os.kill(pid, signal.SIGKILL)
        told(
            site,
            capsys,
            4,
            "failing",
            "no worker becomes ready, so no job begins: cannot import deployed: RuntimeError: half",
        )
        eventually(lambda: pool.pids(r"^queuepool: master \[default\] failing workers="))  # shown after the board

        module.write_text("import tests.support.poolapp\n\n")
        told(site, capsys, 0, "running", without="become")  # which is said until the last one works


def test_a_pool_whose_master_is_stopped_is_not_ready(site, capsys):
    with site.pool("--workers", "1") as pool:
        with halted(pool.pid):
            told(site, capsys, 4, "stopped by a signal")
        told(site, capsys, 0, "running")


@pytest.mark.thorough("a number in a line; pool/ has each restart itself")
def test_status_counts_every_restart(site, capsys):
    place = ["--runtime-dir", str(site.path / "run"), *site.where]
    with site.pool("--workers", "1"):
        assert "restarts=0 " in told(site, capsys, 0, "running")
        for verb in ("reload", "restart", "reload"):
            site.run(verb, "--wait", *place)
        assert "restarts=3 " in told(site, capsys, 0, "running")


def test_status_of_all_hosts_shows_the_local_pools_while_the_store_is_away(away, own_server):
    place = ["--runtime-dir", str(away.path / "run"), *away.where]
    with away.pool("--workers", "1"):
        own_server.kill()
        shown = away.run("status", "--all", *place, check=False)
        listed = away.run("status", "--all", "--json", *place, check=False)
        own_server.start()

    assert (1, 1) == (shown.returncode, listed.returncode)
    why, note = shown.stderr.splitlines()
    assert why.startswith("queuepool: the store cannot be reached or cannot serve now: ")
    assert "note: pools of other hosts on connection default cannot be seen: here are those of this host" == note
    assert shown.stdout.startswith("pool default: running master=")
    assert "worker 1" in shown.stdout
    assert [("default", True)] == [(pool["pool"], pool["takes_jobs"]) for pool in json.loads(listed.stdout)]
