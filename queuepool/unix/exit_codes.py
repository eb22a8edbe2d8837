"""Every exit code, of commands and of a pool's processes. 64 and above are those of sysexits.h."""

from __future__ import annotations

#: a command, or a pool: done as asked, or not
OK, FAILED = 0, 1
#: click's, for a command line that is wrong
USAGE = 2
#: of ``status`` and of whatever needs a pool that runs; as init scripts have it
NOT_RUNNING = 3
#: of ``status``: the master does not answer
NOT_MOVING = 4
NO_ROOM, ALREADY_RUNNING, CONFIG = 73, 75, 78
#: as shells say it of signals
INTERRUPTED, BROKEN_PIPE = 130, 141

#: a worker: left in order; its modules did not import; it had grown too large
LEFT, BOOT, MEMORY = 0, 3, 12
#: a process that ended by an exception of ours (EX_SOFTWARE)
BROKEN = 70
