"""Does one thing with all jobs that were found, notes that in the journal, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from queuepool.errors import StoreError
from queuepool.operating.scopes import by_queue
from queuepool.search.bulk import Act, Bulk, Done
from queuepool.search.found import FoundJob
from queuepool.stores.factory import Stores
from queuepool.stores.records import Returned
from queuepool.unix.escape import counted

#: jobs in pages, and what is done with them
Errand = tuple[Iterable[Sequence[FoundJob]], Act]
#: why a failed member of a flow is not put back
FLOW_IS_GONE = "their flows are not kept any more; `queuepool retry --alone` runs them alone"
#: adds a line to the journal: the verb, its subject, and to how many things it was done
Note = Callable[[str, str, int | None], object]


def journaled(stores: Stores, by: str, verb: str, subject: str, count: int | None = None) -> str:
    """Add a line that ``by`` has done this. If there can be none, why, in words: what was done stays done.

    Call it once for all that one action has done, when it is done.
    """
    try:
        stores.journal.write(by, verb, subject, count)
    except StoreError as error:
        return str(error)
    return ""


def carry_out_all(bulk: Bulk, errands: Iterable[Errand], verb: str, place: str, note: Note) -> None:
    """Do it with all jobs. Raises what ends it early; what was done until then has its line, too."""
    try:
        for pages, act in errands:
            bulk.run(pages, act)
    finally:
        if bulk.done.count:
            note(verb, f"jobs{place}{by_queue(bulk.done.queues)}", bulk.done.count)


def told(done: Done, word: str, place: str) -> str:
    """What was done, as in ``2 jobs put back on connection default: high 2``."""
    return f"{counted(done.count, 'job')} {word}{place}{by_queue(done.queues)}"


def remarks_on(done: Done) -> Iterator[str]:
    """A line for each kind of jobs to which it was not done."""
    if gone := done.results[Returned.GONE]:
        yield f"note: {counted(gone, 'job')} had gone meanwhile"
    if held := done.results[Returned.HELD]:
        yield f"{counted(held, 'failed job')} left: other jobs hold their unique locks"
    if alone := done.results[Returned.ALONE]:
        yield f"{counted(alone, 'failed job')} left: {FLOW_IS_GONE}"
