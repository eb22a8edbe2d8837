"""For an application's tests: see what is dispatched, run it in the test's own process, pretend to be in a job.

    from queuepool.testing import as_current, drain, fake, run_now

No server, no worker, no signal handler: jobs wait in a temporary SQLite file. One ``fake`` or ``run_now`` is in force
at a time, for the whole process.
"""

from importlib import import_module
from types import MappingProxyType

TYPE_CHECKING = False  # as in the package itself
if TYPE_CHECKING:
    from queuepool.settlement.verdict import Delete, Fail, Release
    from queuepool.testing.attempts import Attempt, Ran, RanNow
    from queuepool.testing.diverted import fake
    from queuepool.testing.pretending import as_current
    from queuepool.testing.pushes import PushedJob, Pushes
    from queuepool.testing.running import drain, run_now
    from queuepool.testing.temporary import make_tables, next_times

__all__ = [
    "Attempt", "Delete", "Fail", "PushedJob", "Pushes", "Ran", "RanNow", "Release", "as_current", "drain", "fake",
    "make_tables", "next_times", "run_now",
]  # fmt: skip

#: the module of each name, imported at first use: pytest imports this package for its plugin in every run
_MODULES = MappingProxyType({
    "Delete": "settlement.verdict", "Fail": "settlement.verdict", "Release": "settlement.verdict",
    "Attempt": "testing.attempts", "Ran": "testing.attempts", "RanNow": "testing.attempts",
    "PushedJob": "testing.pushes", "Pushes": "testing.pushes", "as_current": "testing.pretending",
    "drain": "testing.running", "fake": "testing.diverted", "make_tables": "testing.temporary",
    "next_times": "testing.temporary", "run_now": "testing.running",
})  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"queuepool.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
