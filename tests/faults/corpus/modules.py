"""Source texts of modules that do not import, or do harm when they are imported."""

from __future__ import annotations

_IMPORT = "from queuepool import Job, job\n"

#: what one that does not import is told with: exit code 1, the traceback once, the last line ours
BROKEN: dict[str, tuple[str, str]] = {
    "B084 missing": ("", "there is no broken in /"),
    "B084 syntax error": ("def oops(:\n", "SyntaxError: invalid syntax"),
    "B084 raises": ("raise RuntimeError('not today')", "RuntimeError: not today"),
    "B084 exits": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "B084 raises what cannot be shown": (
        "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute", "Mute: <exception str() failed>"
    ),
    "B084 recurses": ("def f(): f()\nf()", "RecursionError"),
    # `async def` is no fault: it runs on the worker's loop.
    "B085 two jobs of one name": (
        f"{_IMPORT}job('twin')(lambda: None)\njob('twin')(lambda: None)", "two jobs are registered as 'twin'"
    ),
    "B085 name of spaces": (f"{_IMPORT}job(' ')(lambda: None)", "a job needs a name"),
    "B085 not callable": (f"{_IMPORT}job('five')(5)", "'five' is not a function"),
    "B085 generator": (f"{_IMPORT}@job('gen')\ndef gen(): yield", "calling it would do nothing"),
    "B085 async generator": (f"{_IMPORT}@job('gen')\nasync def gen(): yield", "'gen' is a generator"),
    "B085 generator of a class": (
        f"{_IMPORT}class Gen(Job, name='gen'):\n    def handle(self): yield", "'gen' is a generator"
    ),
    "B085 wishes that cannot be": (f"{_IMPORT}@job('a', tries=-1)\ndef a(): ...", "tries cannot be -1"),
    "B085 wishes of the wrong kind": (f"{_IMPORT}@job('a', timeout=[5])\ndef a(): ...", "timeout cannot be [5]"),
    "B085 wishes that do not exist": (f"{_IMPORT}@job('a', trys=1)\ndef a(): ...", "'trys': did you mean 'tries'?"),
}  # fmt: skip

#: what one does when it is imported, that must not spoil its worker
HOSTILE: dict[str, str] = {
    "B084 prints ten megabytes": "print('x' * 10_000_000, flush=True)",
    # Harmless: modules are imported after the fork, so there is nothing to warn of.
    "B084 starts a thread": "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
    "B084 ignores signals": "import signal\nfor s in (15, 2, 3, 10, 12): signal.signal(s, signal.SIG_IGN)",
    "B084 blocks signals": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    "B084 ignores the alarm": "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)",
    "B084 closes its streams": "import os; os.close(0); os.close(1)",
    "B084 forks": "import os; os.fork()",
}
