"""Is the pool live, started, ready? For container probes and monitors, which ask every few seconds.

It reads the pool's lock and some numbers of its board, and imports nothing of queuepool, as that would take longer than
the answer. The offsets of these numbers are documented in docs/services.md; a test compares them with the package.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time

USAGE = """\
Usage: queuepool-probe live|started|ready [--dir DIR] [--pool NAME] [--max-age SECONDS]

Say whether the local pool is
  live      its master runs, and its loop has come round within the last --max-age seconds
  started   its modules have been imported, even if no store has answered yet
  ready     it is live and running, and a worker waits for jobs or runs one, as in queuepool status

  --dir DIR          the pool's runtime_dir  [default: $QUEUEPOOL_POOL_RUNTIME_DIR, else the default place]
  --pool NAME        [default: default]
  --max-age SECONDS  [default: 15]

Exits with 0 for yes, 1 for no, 2 for a wrong command line, and 3 if no such pool runs here.
"""
YES, NO, WRONG, NONE = 0, 1, 2, 3

MAGIC = 0x71756575_0000000D
#: bytes of the header; the slots follow it
HEADER = 4096
#: offsets of whole numbers in the header, and in a slot
CAPACITY, MASTER_PID, MASTER_START_TIME, STATE, TARGET, USED = 8, 16, 24, 32, 40, 72
ROLE, DEAD, SLOT_STATE = 0, 48, 72
#: offsets of seconds in the header
STORE_LOST, BEAT, READY = 232, 3672, 3680
#: what STATE and SLOT_STATE say, by number; and the role of a worker
STATES = ("starting", "running", "idle", "busy", "paused", "draining", "stopping", "failing")
WORKER = 1
#: seconds for which the store may be away
STORE_PATIENCE = 60.0
#: most slots of a board, and most boards of a directory
MOST = 4096
#: the kernel's struct flock: kind, whence, start, length, pid
_FLOCK = struct.Struct("hhlli0l")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Refused(Exception):
    """The answer is not yes, for this reason."""

    def __init__(self, reason: str, code: int = NO) -> None:
        super().__init__(reason)
        self.code = code


def main() -> int:
    """The console script: writes the answer in a line and returns the exit code."""
    try:
        _write(1, answer(sys.argv[1:]))
    except Refused as refusal:
        _write(2, str(refusal))
        return refusal.code
    except (OSError, struct.error) as error:
        _write(2, f"the board cannot be read: {error}")
        return NO
    return YES


def answer(arguments: list[str]) -> str:
    """A yes in words. Raises ``Refused``, and ``OSError`` or ``struct.error`` for a board that cannot be read."""
    if set(arguments) & {"-h", "--help"}:
        return USAGE.rstrip()
    question, options = _parsed(arguments)
    name, max_age = options.get("--pool", "default"), _positive(options.get("--max-age", "15"))
    if not name or "/" in name or name.startswith("."):
        raise Refused(f"--pool {name!r} is not the name of a pool", WRONG)
    board = _board(_folder(options.get("--dir") or os.environ.get("QUEUEPOOL_POOL_RUNTIME_DIR", "").strip(), name))
    try:
        return f"pool {name}: {_QUESTIONS[question](board, max_age)}"
    except Refused as refusal:
        raise Refused(f"pool {name}: {refusal}", refusal.code) from None
    finally:
        os.close(board)


def _write(fd: int, line: str) -> None:
    try:
        os.write(fd, f"{line}\n".encode("utf-8", "backslashreplace"))
    except OSError:  # closed, or a pipe without a reader: the exit code is the answer
        return


def _parsed(arguments: list[str]) -> tuple[str, dict[str, str]]:
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    question, flags = (words or [""])[0], words[1:]
    if question not in _QUESTIONS or len(flags) % 2 or set(flags[::2]) - {"--dir", "--pool", "--max-age"}:
        raise Refused(USAGE.rstrip(), WRONG)
    return question, dict(zip(flags[::2], flags[1::2], strict=True))


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise Refused(f"--max-age {text!r} is not a number of seconds above 0", WRONG)
    return value


def _folder(given: str, name: str) -> str:
    """The pool's own directory. It must be ours alone, as another user could write anything there."""
    places = _places(given, name)
    folder = next(filter(os.path.lexists, places), "")
    if not folder:
        raise Refused(f"pool {name} does not run here: there is no {places[0]}", NONE)
    about, user = os.lstat(folder), os.getuid()
    if about.st_mode & 0o170077 != 0o040000 or user not in (0, about.st_uid):
        raise Refused(f"{folder} is not a directory of yours with mode 0700")
    return folder


def _places(given: str, name: str) -> list[str]:
    """Where the directory may be: as runtime_dir says, else the default places."""
    if given:
        return [f"{given}/{name}"]
    if os.getuid() == 0:
        return [f"/run/queuepool/{name}"]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return [f"{runtime}/queuepool/{name}"]
    temporary = (os.environ.get("TMPDIR", "/tmp"), "/tmp", "/dev/shm")
    return [f"{parent}/queuepool-{os.getuid()}/{name}" for parent in temporary]


def _board(folder: str) -> int:
    """A descriptor of the board of the master that holds the lock."""
    pid = _lock_holder(folder)
    # The lock does not name a master in another container.
    fd = _opened(folder, pid) if pid > 0 else _newest(list(filter(_is_board, _entries(folder))), folder)
    if os.pread(fd, 8, 0) != struct.pack("=q", MAGIC):
        os.close(fd)
        raise Refused(f"the board in {folder} is of another version of queuepool")
    return fd


def _lock_holder(folder: str) -> int:
    """The master's pid; not positive if it is in another container."""
    try:
        fd = os.open(f"{folder}/master.pid", _READ)
    except FileNotFoundError:
        raise Refused(f"no pool runs in {folder}", NONE) from None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    finally:
        os.close(fd)
    if kind == fcntl.F_UNLCK:
        raise Refused(f"no pool runs in {folder}: its master has ended", NONE)
    return int(pid)


def _opened(folder: str, pid: int) -> int:
    """This master's board: by its name, or else open in the master, if it was removed or is named by another pid."""
    try:
        return os.open(f"{folder}/board.{pid}-{_start_time(pid)}-{_system()}", _READ)
    except FileNotFoundError:
        return _newest(list(filter(_leads_to_board, _entries(f"/proc/{pid}/fd"))), folder)


def _start_time(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def _system() -> str:
    """This boot and this namespace of pids: elsewhere the pid is another process's."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read(8)}-{os.stat('/proc/self/ns/pid').st_ino}"


def _leads_to_board(link: str) -> bool:
    # A board that was removed is shown as deleted, by the name that its draft had.
    return _is_board(os.readlink(link).removesuffix(" (deleted)").removesuffix(".new"))


def _newest(boards: list[str], folder: str) -> int:
    """The board with the latest beat."""
    if not boards:
        raise Refused(f"there is no board in {folder}")
    return max((os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) for path in boards), key=_believable_beat)


def _entries(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.path for entry, _ in zip(entries, range(MOST), strict=False)]


def _is_board(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith("board.") and name.count(".") == 1  # those of files beside it have one more


def _believable_beat(fd: int) -> float:
    """Monotonic; 0.0 if there is none, or it lies in the future."""
    raw = os.pread(fd, 8, BEAT)
    beat = float(struct.unpack("=d", raw)[0]) if len(raw) == 8 else 0.0
    return beat if 0.0 < beat <= time.monotonic() else 0.0


def _live(fd: int, max_age: float) -> str:
    beat = _believable_beat(fd)
    age = time.monotonic() - beat
    if not beat:
        raise Refused("its board has no beat: a job has overwritten it, or its version has none")
    if age >= max_age:
        raise Refused(f"its master's loop last came round {age:.0f} s ago")
    return f"live, its master's loop came round {age:.1f} s ago"


def _started(fd: int, max_age: float) -> str:
    if not _number(fd, "d", READY):
        raise Refused("starting, no worker has imported the modules yet")
    return "started"


def _ready(fd: int, max_age: float) -> str:
    _live(fd, max_age)
    _started(fd, max_age)
    state, away = _state(fd, STATE), time.time() - (_number(fd, "d", STORE_LOST) or time.time())
    if _is_stopped(fd):
        raise Refused("not ready, its master is stopped by a signal")
    if state != "running":
        raise Refused(f"not ready, it is {state}")
    if not _number(fd, "q", TARGET):
        raise Refused("not ready, it was scaled to 0 workers")
    if away > STORE_PATIENCE:
        raise Refused(f"not ready, its store has been away for {away:.0f} s")
    workers = {_state(fd, slot + SLOT_STATE) for slot in _slots(fd) if _is_worker(fd, slot)}
    if "idle" not in workers and ("busy" not in workers or "paused" in workers):
        raise Refused("not ready, no worker takes jobs")
    return "ready"


def _is_stopped(fd: int) -> bool:
    """Whether the kernel has stopped the master. Never of another container's, whose pid is another process here."""
    try:
        with open(f"/proc/{int(_number(fd, 'q', MASTER_PID))}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] in (b"T", b"t") and int(fields[19]) == _number(fd, "q", MASTER_START_TIME)


def _slots(fd: int) -> range:
    """The offsets of the slots that have been used."""
    capacity, used = int(_number(fd, "q", CAPACITY)), int(_number(fd, "q", USED))
    step = (os.fstat(fd).st_size - HEADER) // capacity if 0 < capacity <= MOST else 0
    if step <= 0 or not 0 <= used <= capacity:
        raise Refused("its board is damaged")
    return range(HEADER, HEADER + step * (used or capacity), step)


def _is_worker(fd: int, slot: int) -> bool:
    return _number(fd, "q", slot + ROLE) == WORKER and not _number(fd, "q", slot + DEAD)


def _state(fd: int, offset: int) -> str:
    return dict(enumerate(STATES)).get(int(_number(fd, "q", offset)), "unknown")


def _number(fd: int, kind: str, offset: int) -> float:
    """Eight bytes as ``q``, a whole number, or ``d``, seconds."""
    return float(struct.unpack(f"={kind}", os.pread(fd, 8, offset))[0])


_QUESTIONS = {"live": _live, "started": _started, "ready": _ready}

if __name__ == "__main__":
    sys.exit(main())
