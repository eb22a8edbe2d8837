"""The parent of several pools under a service manager, whatever happens to them, in every order.

Masters, boards and signals are real; workers and stewards do nothing, so that a case costs milliseconds.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, suppress
from itertools import product
from pathlib import Path

import pytest

from queuepool.board.board import Board, Role, State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.errors import NotRunning
from tests.support import warm
from tests.support.eventually import eventually
from tests.support.idle_pools import settings_of
from tests.support.pools import is_gone
from tests.support.processes import go_on, halt
from tests.support.service_manager import ServiceManager, service_manager

ROOT = Path(__file__).parents[2]
#: seconds; pings come with each pass
WATCHDOG = 1.5
#: seconds in which a ping comes, if pings come
PINGING = 0.75
NAMES = ("one", "two")
#: what a case waits for next
Wait = Callable[[], object]
Case = Generator[Wait, None, None]


class Service:
    """Two pools under their parent, and what is expected of them."""

    def __init__(self, folder: Path, manager: ServiceManager) -> None:
        self.folder, self.manager = folder, manager
        #: what became of each pool: ``works``, ``down``, ``hangs``, ``left``
        self.state = dict.fromkeys(NAMES, "works")
        self.masters: dict[str, int] = {}
        self.files = folder / "log"

    def start(self) -> None:
        environment = {"NOTIFY_SOCKET": self.manager.address, "WATCHDOG_USEC": str(int(WATCHDOG * 1e6))}
        words = [sys.executable, "-m", "tests.support.idle_pools", str(self.folder), *NAMES]
        with self.files.open("ab") as log:
            self.process = warm.start(
                words, env={**os.environ, **environment, "PYTHONPATH": str(ROOT)}, cwd=self.folder,
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def log(self) -> str:
        return self.files.read_text()

    def runtime(self, name: str) -> RuntimeDir:
        return RuntimeDir(settings_of(self.folder, name), takes_any=True)

    def sees(self, name: str, what: Callable[[Board], object]) -> bool:
        """What its living master's board says; ``False`` without one."""
        with suppress(NotRunning):
            board = self.runtime(name).board(write=True)
            with closing(board.memory):
                return bool(what(board))
        return False

    def is_forked(self, name: str) -> bool:
        """Whether it has a master, and another one than was last seen."""
        before = self.masters.get(name)
        with suppress(NotRunning):
            self.masters[name] = self.runtime(name).master_pid()
        return self.masters.get(name) != before

    def is_at_work(self, name: str) -> bool:
        """As ``is_forked``, of one that is at work."""
        before = self.masters.get(name)
        return self.sees(name, lambda board: board.name.pid != before and board.header.ready) and self.is_forked(name)

    def title(self) -> str:
        with suppress(OSError):
            return Path(f"/proc/{self.process.pid}/cmdline").read_text().strip("\0 ")
        return ""

    def shows(self, masters: int, state: str = "running") -> bool:
        return self.title() == f"queuepool: parent [one,two] {state} masters={masters}"

    def pings(self) -> int:
        return len(self.manager.having("WATCHDOG=1"))

    def is_in(self, name: str, state: State) -> bool:
        return self.sees(name, lambda board: board.header.state == state)

    def looks_at(self, master: int) -> bool:
        """Whether the parent has opened the board of this master."""
        opened = (os.readlink(each) for each in Path(f"/proc/{self.process.pid}/fd").iterdir())
        with suppress(FileNotFoundError):
            return any(f"/board.{master}-" in path for path in opened)
        return False

    def loses_stewards(self, name: str) -> None:
        """From now on none lives for long, so that its master will give up."""
        (self.folder / f"dying-{name}").touch()
        self.sees(name, lambda board: [os.kill(slot.pid, signal.SIGKILL) for slot in board.of(Role.STEWARD)])

    def code(self) -> int | None:
        return self.process.poll()

    def kill(self) -> None:
        """Kill what a case that failed has left: masters end with their parent."""
        if self.process.poll() is None:
            for pid in self.masters.values():
                go_on(pid)
            self.process.kill()
            self.process.wait()

    # What happens

    def is_killed(self, name: str) -> Case:
        pid = self.masters[name]
        os.kill(pid, signal.SIGKILL)
        self.state[name] = "works"
        yield lambda: self.is_at_work(name)
        yield lambda: f"master pid={pid} died: signal 9 (SIGKILL); next try in " in self.log()
        yield lambda: f"master pid={self.masters[name]} has become ready: the pool is back" in self.log()

    def boots_badly(self, name: str) -> Case:
        pid = self.masters[name]
        (self.folder / f"broken-{name}").touch()
        os.kill(pid, signal.SIGKILL)
        self.state[name] = "down"
        yield lambda: self.manager.having(rf"STATUS=.*; pool {name} is down: master pid=\d+ never .*: exit code 1\b.*")
        yield lambda: re.search(rf" ERROR pool={name} parent .* never became ready: exit code 1; next try", self.log())

    def hangs(self, name: str) -> Case:
        pid = self.masters[name]
        halt(pid)
        self.sees(name, age)
        self.state[name] = "hangs"
        yield lambda: f" ERROR pool={name} parent pid={self.process.pid} master pid={pid} hangs: " in self.log()
        yield lambda: self.manager.having(f"STATUS=.*; pool {name}: its master hangs.*")

    def leaves(self, name: str) -> Case:
        os.kill(self.masters[name], signal.SIGTERM)
        self.state[name] = "left"
        yield lambda: is_gone(self.masters[name])

    def comes_to_work(self) -> Case:
        self.start()
        for name in NAMES:
            yield lambda name=name: self.is_at_work(name)

    def is_mended(self, name: str) -> Case:
        """The new code is put in order, and said so by HUP: it is tried at once, not in a minute."""
        (self.folder / f"broken-{name}").unlink()
        self.process.send_signal(signal.SIGHUP)
        self.state[name] = "works"
        yield lambda: self.is_at_work(name)

    # What is seen

    def is_as_expected(self) -> Case:
        """READY once and never taken back, pings unless a pool hangs, and a title that counts what lives."""
        states = [*self.state.values()]
        if states == ["left", "left"]:
            yield lambda: self.code() == 0
            return
        living = 2 - states.count("left") - states.count("down")
        if "down" in states:  # the next try forks a master for a moment
            yield lambda: self.shows(living) and self.manager.having(rf"STATUS=running masters={living}.*")
        else:
            yield lambda: self.shows(living)
        phases = self.manager.phases()
        assert ["READY", "RELOADING"] * (len(phases) // 2) + ["READY"] * (len(phases) % 2) == phases
        pinged, until = self.pings(), time.monotonic() + PINGING
        if "hangs" not in states:
            yield lambda: self.pings() > pinged
            return
        yield lambda: time.monotonic() > until
        assert pinged == self.pings()

    def has_failed_to_start(self) -> Case:
        """The others are ended, and READY was never said."""
        yield lambda: self.code() is not None
        assert 1 == self.code()
        assert ["STOPPING"] == self.manager.phases()
        assert self.manager.having(r"STATUS=gives up, see the log: draining masters=\d; pool \w+ is down: .*")
        assert re.search(r" CRITICAL pool=\w+ parent pid=.* never became ready: .*: the start has failed", self.log())

    def ends(self) -> Case:
        """A stop ends what is left, forks nothing, and has the code of what was down."""
        if [*self.state.values()] == ["left", "left"]:
            return
        self.process.send_signal(signal.SIGTERM)
        for name in NAMES:
            if self.state[name] == "hangs":
                os.kill(self.masters[name], signal.SIGCONT)
        yield lambda: self.code() is not None
        assert int("down" in self.state.values()) == self.code()
        assert 1 == self.manager.phases().count("STOPPING")


def age(board: Board) -> None:
    """The beat of a master that stands still, as it will be in that many seconds."""
    board.header.beat = time.monotonic() - 6


EVENTS: dict[str, Callable[[Service, str], Case]] = {
    "is killed": Service.is_killed,
    "boots badly": Service.boots_badly,
    "hangs": Service.hangs,
    "leaves": Service.leaves,
    "is mended": Service.is_mended,
}
#: what may happen to a pool to which something has happened
AFTER = {
    "is killed": ["is killed", "boots badly", "hangs", "leaves"],
    "boots badly": ["is mended"],
    "hangs": ["is killed", "boots badly"],
    "leaves": [],
}
PAIRS = [
    *((("one", first), ("two", second)) for first, second in product(AFTER, AFTER)),
    *((("one", first), ("one", second)) for first, then in AFTER.items() for second in then),
]
#: each event happens to each pool
FEW = [
    *((("one", first), ("two", second)) for first, second in zip(AFTER, reversed(AFTER), strict=True)),
    (("one", "boots badly"), ("one", "is mended")),
]


def a_life(service: Service, *events: tuple[str, str]) -> Case:
    """Both pools become ready, this happens to them, and they are stopped."""
    yield from service.comes_to_work()
    yield lambda: service.manager.phases() == ["READY"]
    for name, event in events:
        yield from EVENTS[event](service, name)
        yield from service.is_as_expected()
    yield from service.ends()


@pytest.mark.parametrize("pairs", [FEW, pytest.param(PAIRS, marks=pytest.mark.thorough("each pair of events"))])
def test_whatever_happens_to_two_pools_in_any_order_their_service_manager_is_told_the_truth(tmp_path, pairs):
    live_all(tmp_path, {str(pair): lambda service, pair=pair: a_life(service, *pair) for pair in pairs})


def one_cannot_boot(service: Service, *broken: str) -> Case:
    for name in broken:
        (service.folder / f"broken-{name}").touch()
    service.start()
    yield from service.has_failed_to_start()


def one_is_killed_before_it_is_at_work(service: Service) -> Case:
    (service.folder / "slow-one").touch()
    service.start()
    yield lambda: service.is_forked("one")
    os.kill(service.masters["one"], signal.SIGKILL)
    yield from service.has_failed_to_start()


def one_leaves_before_it_is_at_work(service: Service) -> Case:
    """The other one is the service."""
    (service.folder / "slow-one").touch()
    service.start()
    yield lambda: service.is_forked("one")
    yield lambda: service.is_at_work("two")
    assert [] == service.manager.phases()
    yield from service.leaves("one")
    yield lambda: ["READY"] == service.manager.phases()
    yield from service.is_as_expected()
    yield from service.ends()


def one_is_slow(service: Service) -> Case:
    (service.folder / "slow-one").touch()
    service.start()
    yield lambda: service.is_forked("one")
    yield lambda: service.is_at_work("two")
    assert [] == service.manager.phases()
    (service.folder / "slow-one").unlink()
    yield lambda: ["READY"] == service.manager.phases()
    yield from service.ends()


def one_dies_at_work_while_the_other_boots(service: Service) -> Case:
    """It can become ready, so the start goes on."""
    (service.folder / "slow-two").touch()
    service.start()
    yield lambda: service.is_forked("two")
    yield lambda: service.is_at_work("one")
    yield from service.is_killed("one")
    assert [] == service.manager.phases()
    (service.folder / "slow-two").unlink()
    yield lambda: ["READY"] == service.manager.phases()
    yield from service.ends()


def test_a_service_is_ready_when_each_pool_is_and_one_that_never_works_ends_it(tmp_path):
    live_all(
        tmp_path,
        {
            "the first cannot boot": lambda service: one_cannot_boot(service, "one"),
            "the second cannot boot": lambda service: one_cannot_boot(service, "two"),
            "neither can boot": lambda service: one_cannot_boot(service, *NAMES),
            "killed": one_is_killed_before_it_is_at_work,
            "left": one_leaves_before_it_is_at_work,
            "slow": one_is_slow,
            "dies": one_dies_at_work_while_the_other_boots,
        },
    )


def paused(service: Service) -> Case:
    """The parent is told, and then a master itself."""
    yield from service.comes_to_work()
    service.process.send_signal(signal.SIGUSR2)
    for name in NAMES:
        yield lambda name=name: service.is_in(name, State.PAUSED)
    yield from service.is_killed("one")
    yield lambda: service.is_in("one", State.PAUSED)
    os.kill(service.masters["two"], signal.SIGCONT)
    yield lambda: service.is_in("two", State.RUNNING)
    yield from service.is_killed("two")
    yield lambda: service.is_in("two", State.RUNNING)
    assert service.is_in("one", State.PAUSED)
    yield from service.ends()


def paused_before_it_gives_up(service: Service) -> Case:
    """A master itself is told, in a state that does not show it."""
    yield from service.comes_to_work()
    service.loses_stewards("one")
    yield lambda: service.is_in("one", State.FAILING)
    os.kill(service.masters["one"], signal.SIGUSR2)
    yield lambda: "no steward has stayed alive for 5s: giving up" in service.log()
    (service.folder / "dying-one").unlink()
    yield lambda: service.is_at_work("one")
    yield lambda: service.is_in("one", State.PAUSED)
    yield from service.is_as_expected()
    yield from service.ends()


def paused_while_it_boots(service: Service) -> Case:
    """A master itself is told, which then fails to boot."""
    yield from service.comes_to_work()
    for what in ("slow", "broken"):
        (service.folder / f"{what}-one").touch()
    os.kill(service.masters["one"], signal.SIGKILL)
    yield lambda: service.is_forked("one")
    master = service.masters["one"]
    yield lambda: service.looks_at(master)
    os.kill(master, signal.SIGUSR2)
    yield lambda: service.sees("one", lambda board: board.header.signalled == State.PAUSED)
    (service.folder / "slow-one").unlink()
    yield lambda: f"master pid={master} never became ready: " in service.log()
    yield from service.is_mended("one")
    yield lambda: service.is_in("one", State.PAUSED)
    yield from service.ends()


def killed_while_it_gives_up(service: Service) -> Case:
    """It drains, but nobody has asked for that: it is wanted back."""
    yield from service.comes_to_work()
    yield lambda: service.manager.phases() == ["READY"]
    (service.folder / "busy-one").touch()
    service.loses_stewards("one")
    yield lambda: service.is_in("one", State.DRAINING)
    (service.folder / "dying-one").unlink()
    killed = service.is_killed("one")
    is_back = next(killed)
    (service.folder / "busy-one").unlink()  # not before it is killed: it leaves when its worker has left
    yield is_back
    yield from killed
    yield from service.is_as_expected()
    yield from service.ends()


def killed_while_it_drains(service: Service) -> Case:
    """As asked it does not come back, whatever ended it."""
    yield from service.comes_to_work()
    yield lambda: service.manager.phases() == ["READY"]
    (service.folder / "busy-one").touch()
    os.kill(service.masters["one"], signal.SIGTERM)
    yield lambda: service.is_in("one", State.DRAINING)
    os.kill(service.masters["one"], signal.SIGKILL)
    (service.folder / "busy-one").unlink()
    service.state["one"] = "left"
    yield (
        lambda: (
            " ERROR pool=one parent " in service.log() and " died while it was being stopped: signal 9" in service.log()
        )
    )
    yield lambda: service.manager.having(
        r"STATUS=running masters=1; pool one is down: master pid=\d+ died while it was being stopped: signal 9.*"
    )
    yield from service.is_as_expected()
    yield from service.is_killed("two")
    yield from service.is_as_expected()
    service.process.send_signal(signal.SIGTERM)
    yield lambda: service.code() == 1


def test_what_an_operator_has_said_of_a_pool_outlives_its_master(tmp_path):
    lives = {"paused": paused, "paused and gone": paused_before_it_gives_up, "stopped": killed_while_it_drains}
    lives["paused while it boots"] = paused_while_it_boots
    live_all(tmp_path, {**lives, "not stopped": killed_while_it_gives_up})


def whose_store_is_full(service: Service) -> Case:
    yield from service.comes_to_work()
    service.sees("one", fill)
    yield lambda: service.manager.having("STATUS=running masters=2; pool one: the store has been full since .*")
    yield from service.is_as_expected()
    yield from service.ends()


def without_a_beat_yet(service: Service) -> Case:
    """As a board is before its master's loop begins."""
    yield from service.comes_to_work()
    halt(service.masters["one"])
    service.sees("one", lose_beat)
    pinged = service.pings()
    yield lambda: service.pings() > pinged + 1
    assert " hangs: " not in service.log()
    go_on(service.masters["one"])
    yield from service.ends()


def fill(board: Board) -> None:
    board.header.store_full = time.time()


def lose_beat(board: Board) -> None:
    board.header.beat = 0.0


def test_what_is_said_of_a_pool_whose_master_lives_is_what_its_board_says(tmp_path):
    live_all(tmp_path, {"full": whose_store_is_full, "no beat": without_a_beat_yet})


def live_all(folder: Path, lives: Mapping[str, Callable[[Service], Case]]) -> None:
    """Side by side, as each of them waits most of the time."""
    with ExitStack() as opened:
        cases: dict[str, Case] = {}
        managers: list[ServiceManager] = []
        for number, (name, life) in enumerate(lives.items()):
            place = folder / str(number)
            place.mkdir()
            managers.append(opened.enter_context(service_manager(place / "notify", WATCHDOG)))
            service = Service(place, managers[-1])
            opened.callback(service.kill)
            cases[name] = life(service)
        waits: dict[str, Wait | None] = {name: next(case) for name, case in cases.items()}

        def goes_on() -> bool:
            for manager in managers:
                manager.read()  # else there is no room for what is said next
            for name, case in cases.items():
                while (wait := waits[name]) and wait():
                    waits[name] = next(case, None)
            return not any(waits.values())

        try:
            eventually(goes_on, within=90)
        except AssertionError as error:
            waiting = {name: line_of(cases[name]) for name, wait in waits.items() if wait}
            raise AssertionError(f"the cases with the lines in which they are: {waiting}") from error


def line_of(case: Case) -> int:
    while case.gi_yieldfrom:
        case = case.gi_yieldfrom
    return case.gi_frame.f_lineno if case.gi_frame else 0
