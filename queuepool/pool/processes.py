"""What each forked child runs: from a slot and settings to a running worker, template, steward or web process."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from io import FileIO

from queuepool import log
from queuepool.board import boot_report
from queuepool.board.board import STALL_TIMEOUT, Board, Slot
from queuepool.board.from_workers import imported, publish_files
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.errors import BootFailure
from queuepool.events import Event, Looping
from queuepool.events.listeners import LISTENERS
from queuepool.jobs import connecting
from queuepool.jobs.context import running_data
from queuepool.jobs.current_job import running, running_id
from queuepool.log.captured import capture
from queuepool.pool import announce
from queuepool.pool.steward_process import StewardProcess
from queuepool.pool.worker_process import limits_of, warn_of_jobs, work
from queuepool.unix import originals, proc, stray_processes
from queuepool.unix.exit_codes import BOOT, LEFT
from queuepool.unix.places import Places
from queuepool.unix.signals import Alarm, WorkerSignals, write_stack_on_request
from queuepool.worker.boot import import_jobs, import_modules
from queuepool.worker.slot_writer import SlotWriter
from queuepool.worker.template import Template

_log = logging.getLogger("queuepool")


class Processes:
    """What the master forks: each method runs one process of the pool and returns its exit code."""

    def __init__(self, settings: PoolSettings, board: Board, runtime: RuntimeDir, served: Collection[str] = ()) -> None:
        self._settings = settings
        self._board = board
        self._runtime = runtime
        self._served = served
        self._module_files = ModuleFiles(board)
        self._places = Places(settings.config)

    def worker(self, slot: Slot, paused: bool) -> int:
        """Imports the user's modules and runs jobs."""
        signals = WorkerSignals(paused=paused)
        signals.listen()
        slot = self._mapped(slot)
        alarm = Alarm(trace := self._enter(slot, f"worker {slot.number}"))
        return self._work(slot, signals, alarm, trace) if self._has_booted(slot, signals, alarm, trace) else BOOT

    def template(self, slot: Slot, paused: bool) -> int:
        """Imports the user's modules and forks the workers."""
        # By SIGKILL, which its modules cannot catch: a template has nothing to finish.
        proc.end_with_parent(self._board.name.pid, signal.SIGKILL)
        signals = WorkerSignals()
        signals.listen()
        slot = self._mapped(slot)
        alarm = Alarm(trace := self._enter(slot, "template"))
        if not self._has_booted(slot, signals, alarm, trace):
            return BOOT
        if not signals.stop:
            Template(self._settings.name, self._board, slot, self._copied_worker).run()
        slot.exited_cleanly = 1
        return LEFT

    def steward(self, slot: Slot, paused: bool) -> int:
        """Imports the listeners and runs the steward."""
        signals = WorkerSignals()
        signals.listen()
        self._runtime.close_in_child()
        self._board.hold(byte=1)
        settings = self._settings
        proc.show(f"queuepool: steward [{settings.name}] starting")
        log.setup(settings, "steward", write_timeout=1.0)
        capture()
        stray_processes.mark(self._board.mark(slot))
        alarm = Alarm(trace := self._board.new_trace(slot))
        signals.let_end_if(self._has_master)
        if not self._has_listeners(slot, trace):
            return BOOT
        _restore(signals, alarm)
        log.adopt(settings)
        log.listen(LISTENERS)
        announce.replaced_names("listeners")
        StewardProcess(settings, self._board, self._runtime, signals).run(slot)
        slot.exited_cleanly = 1
        return LEFT

    def web(self, slot: Slot, paused: bool) -> int:
        """Serves the pages of ``listen``; it imports nothing of the user's."""
        # By SIGKILL, which no slow page delays: the next master needs the address.
        proc.end_with_parent(self._board.name.pid, signal.SIGKILL)
        signals = WorkerSignals()
        signals.listen()
        self._runtime.close_in_child()
        proc.show(f"queuepool: web [{self._settings.name}] starting")
        log.setup(self._settings, "web", write_timeout=1.0)
        log.adopt(self._settings)
        from queuepool.pool.web_process import run  # imported here: few pools have one

        return run(self._settings, self._board, slot, signals)

    def _copied_worker(self, slot: Slot) -> int:
        """A worker that a template has forked: the modules are imported already."""
        signals = WorkerSignals()
        signals.listen()
        alarm = Alarm(trace := self._enter(slot, f"worker {slot.number}"))
        return self._work(slot, signals, alarm, trace)

    def _mapped(self, slot: Slot) -> Slot:
        """The slot, on the board mapped into memory: jobs run here, and must not find a file of the pool open."""
        self._board = self._board.mapped()
        self._runtime.close_in_child()
        return self._board.slots[slot.index]

    def _enter(self, slot: Slot, role: str) -> FileIO:
        """Set the process's title, log and marks; returns its trace file."""
        proc.show(f"queuepool: {role} [{self._settings.name}] starting")
        where = role.replace(" ", "=")
        log.setup(self._settings, where, write_timeout=1.0, running=running_id, context=running_data)
        capture(running)
        stray_processes.mark(self._board.mark(slot))
        return self._board.new_trace(slot)

    def _has_booted(self, slot: Slot, signals: WorkerSignals, alarm: Alarm, trace: FileIO) -> bool:
        """Import the modules; ``False`` if that failed. The alarm ends the process after ``boot_timeout`` seconds."""
        slot.note = boot_report.too_late("the modules", self._settings.boot_timeout)
        alarm.arm(self._settings.boot_timeout)
        noted, began = partial(self._noted, slot), time.time()
        if not self._has_imported(slot, trace, lambda: boot(self._settings, signals, alarm, noted=noted)):
            return False
        alarm.disarm()
        slot.note = ""
        announce.jobs_of_generation(self._board.header, slot, self._places.gone())
        announce.schedules_of_generation(self._board, slot)
        if self._settings.reload:
            self._module_files.tell(slot, began)
        return True

    def _noted(self, slot: Slot, modules: Iterable[str]) -> Iterator[str]:
        """The modules; the board names the one that is being imported, since a process that the alarm kills cannot."""
        for module in modules:
            slot.note = boot_report.too_late(module, self._settings.boot_timeout)
            yield module

    def _work(self, slot: Slot, signals: WorkerSignals, alarm: Alarm, trace: FileIO) -> int:
        settings = self._settings
        waits = settings.connection.block_for + settings.sleep + settings.rest
        slot_writer = _writer_for(settings)(
            slot,
            settings.name,
            alarm,
            signals,
            stall_timeout=waits + STALL_TIMEOUT,
            meters=self._board.meters,
        )
        slot_writer.alive()
        limits = limits_of(settings, slot_writer)
        warn_of_jobs(settings, self._board.header, slot, self._served)
        write_stack_on_request(stacks := self._board.new_stacks(slot))
        slot_writer.stacks = stacks
        if settings.reload:
            self._module_files.watch(slot)
        try:
            return work(settings, slot_writer, signals, limits, self._board, self._runtime).code
        except BootFailure as failure:  # of a lifespan
            boot_report.leave(failure, trace)
            return BOOT

    def _has_master(self) -> bool:
        """Whether our master, whose child we are, lives: after its death the orphans need their steward."""
        return bool(os.getppid() == self._board.name.pid)

    def _has_listeners(self, slot: Slot, trace: FileIO) -> bool:
        """Import the listeners, all that a steward imports."""
        return self._has_imported(slot, trace, lambda: import_modules(self._settings.listeners))

    def _has_imported(self, slot: Slot, trace: FileIO, load: Callable[[], object]) -> bool:
        """``False`` if that failed, with the reason in the trace; the master kills a process that takes too long."""
        timeout = self._settings.boot_timeout
        slot.deadline = time.monotonic() + timeout if timeout else 0.0
        try:
            load()
        except BootFailure as failure:
            gone = self._places.gone()
            explained = f"{failure}; gone since the start: {gone}" if gone else str(failure)
            boot_report.leave(BootFailure(explained, failure.trace), trace)
            return False
        return True


def _writer_for(settings: PoolSettings) -> Callable[..., SlotWriter]:
    if settings.concurrency == 1:
        return SlotWriter
    from queuepool.worker.lane_board import LaneSlotWriter  # imported here: few pools run jobs side by side

    return partial(LaneSlotWriter, most=settings.concurrency)


def boot(
    settings: PoolSettings,
    signals: WorkerSignals,
    alarm: Alarm,
    unlogged: Collection[type[Event]] = (),
    noted: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> None:
    """Import the user's modules; what they dispatch goes to this pool's connection. Raises ``BootFailure``.

    ``noted``: takes note of each module when its import begins.
    """
    connecting.configure(settings.connection)
    signals.let_end()
    import_jobs(noted(settings.modules), noted(settings.listeners))
    _restore(signals, alarm)
    log.adopt(settings)
    log.listen(LISTENERS, unlogged)


def _restore(signals: WorkerSignals, alarm: Alarm) -> None:
    """Restore our handlers, the alarm, and what the modules have removed from Python's library.

    Stops and deadlines must take effect whatever the modules did to signals.
    """
    originals.give_back()
    signals.listen()
    alarm.prepare()


class ModuleFiles:
    """With ``reload``: the files that a process has imported, for the steward. A forked worker has its template's."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._count = 0
        #: each with the Unix time from which it is imported
        self._began: dict[str, float] = {}

    def tell(self, slot: Slot, began: float) -> None:
        """Pass on those imported since ``began`` (Unix seconds), too, if there are any."""
        if self._count == len(sys.modules):
            return
        self._count = len(sys.modules)
        self._began = dict.fromkeys(imported(), began) | self._began
        try:
            publish_files(self._board, slot, self._began)
        except OSError as error:
            _log.warning("cannot pass the modules' files to the steward: %s", error)

    def watch(self, slot: Slot) -> None:
        """Also pass on those that jobs import."""
        LISTENERS.add(Looping, lambda event: self.tell(slot, time.time()))
