"""Every exit code, of commands and of a pool's processes. 64 to 78 are those of sysexits.h."""

from __future__ import annotations

#: a command or a pool succeeded, or failed
OK, FAILED = 0, 1
#: click's, for a wrong command line
USAGE = 2
#: ``status`` and every command that needs a running pool, as in init scripts
NOT_RUNNING = 3
#: ``status``: the master does not answer
NOT_MOVING = 4
#: ``status --all``: a pool that was not stopped publishes nothing any more
LOST = 5
NO_ROOM, ALREADY_RUNNING, CONFIG = 73, 75, 78
#: 128 plus the signal's number, as in shells
INTERRUPTED, BROKEN_PIPE = 130, 141

#: a worker: exited cleanly; its modules did not import; it exceeded its memory limit
LEFT, BOOT, MEMORY = 0, 3, 12
#: a process that an exception of ours ended (EX_SOFTWARE)
BROKEN = 70
