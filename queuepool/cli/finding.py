"""The flags by which jobs are found, and what verbs do with all that were found: count, ask, do it, report."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.options import Verb, option, parsed
from queuepool.cli.output import counted
from queuepool.config import values
from queuepool.errors import StoreError
from queuepool.operating.carrying_out import Errand, carry_out_all, remarks_on, told
from queuepool.operating.scopes import by_queue
from queuepool.search.bulk import Bulk
from queuepool.search.facets import Facets
from queuepool.search.filters import Condition, Filter, checked_path, moment, short
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.stores.factory import Stores
from queuepool.stores.records import Returned
from queuepool.unix.exit_codes import FAILED, OK

_WORD = parsed(short)
_MOMENT = parsed(lambda raw: moment(raw, time.time()))
_FILTERS: list[Callable[[Verb], Verb]] = [
    option("--name", metavar="NAME", type=_WORD, help="Only this job; App.* is each whose name begins so"),
    click.option(
        "--where", metavar="PATH=VALUE", type=parsed(Condition.parsed), multiple=True,
        help="Only with this argument, as order.customer=4711; may be given again, and all must hold",
    ),
    option("--tag", metavar="TAG", type=_WORD, help="Only with this tag, or with one that begins so (vip*)"),
    option("--error", metavar="TEXT", type=_WORD, help="Only failed with this text in the first line of the error"),
    option("--since", metavar="TIME", type=_MOMENT, help="Only pushed, or failed, since: 2h (ago), or ISO 8601 in UTC"),
    option("--until", metavar="TIME", type=_MOMENT, help="Only pushed, or failed, until then"),
    option("--search", metavar="TEXT", type=_WORD, help="Only with this text anywhere in the payload or error"),
]  # fmt: skip
BY = option(
    "--by", metavar="WHAT", type=parsed(checked_path),
    help="Count them by name, queue, state, error, tag, or the argument at this path",
)  # fmt: skip
COUNT = click.option("--count", "is_count", is_flag=True, help="Only count them")


def limited(default: int) -> Callable[[Verb], Verb]:
    """The flag for how many are shown."""
    words = f"Show at most so many, 0 = all  [default: {default or 'all'}]"
    return option("--limit", metavar="N", type=parsed(values.count), default=default, help=words)


def states_of(*known: str) -> Callable[[str], tuple[str, ...]]:
    """A parser of some of these states, separated by commas."""

    def parse(raw: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(word.strip() for word in raw.split(",")))
        for state in found:
            if state not in known:
                raise ValueError(f"{values.shown(state)} is not one of {', '.join(known)}")
        return found

    return parse


def filtered(verb: Verb) -> Verb:
    """Adds the flags of filters; the verb gets a ``Filter`` as ``wanted``."""

    @functools.wraps(verb)
    def with_filter(*args: Any, **given: Any) -> int | None:
        texts = {key: given.pop(key) or "" for key in ("name", "tag", "error", "search")}
        wanted = Filter(where=given.pop("where"), since=given.pop("since"), until=given.pop("until"), **texts)
        return verb(*args, **given, wanted=wanted)

    found: Verb = with_filter
    for add in reversed(_FILTERS):
        found = add(found)
    return found


def show_facets(facets: Facets, most: int, as_json: bool) -> None:
    """Print them, the most frequent ones first; without a property, only how many jobs there are."""
    if not facets.by:
        total = facets.found.total()
        if as_json:
            output.document(output.versioned({"jobs": total}))
        else:
            output.say(str(total))
        return
    rows = [{"value": value, "jobs": jobs} for value, jobs in facets.found.most_common(most or None)]
    output.listing(rows, as_json)
    if left := len(facets.found) - len(rows):
        output.complain(f"note: {counted(left, 'value')} more: --limit 0 shows all")


def note_closed(look: Look) -> None:
    """Mention the jobs into which could not be looked."""
    if look.closed:
        jobs = counted(look.closed, "job")
        output.complain(
            f"note: the arguments of {jobs} cannot be read: they are damaged, or encrypted with another key"
        )


class Question:
    """What is asked before much is done, as in "Drop 3 jobs?"; ``otherwise`` is said after a no."""

    def __init__(self, verb: str, noun: str, otherwise: str) -> None:
        self._verb = verb
        self._noun = noun
        self._otherwise = otherwise
        self._parts: list[str] = []

    def count(self, place: str, pages: Iterable[Sequence[FoundJob]]) -> None:
        """Count the jobs of one place."""
        queues = Counter[str]()
        for page in pages:
            queues.update(job.queue for job in page)
            output.progress(f"{counted(queues.total(), self._noun)} found")
        output.progress("")
        if queues:
            self._parts.append(f"{counted(queues.total(), self._noun)}{place}{by_queue(queues)}")

    @property
    def is_any(self) -> bool:
        """Whether any were found."""
        return bool(self._parts)

    def is_declined(self) -> bool:
        """Ask, if there are any. Raises ``UsageError`` where there is no terminal to ask at."""
        jobs = " and ".join(self._parts)
        if not jobs:
            return False
        if not output.has_terminal():
            raise click.UsageError(refusal(self._verb, jobs))
        return output.is_declined(f"{self._verb} {jobs}?", self._otherwise)


def refusal(verb: str, jobs: str) -> str:
    """Why it is not done without a question, and what it would do."""
    return f"this would {verb.lower()} {jobs}: there is no terminal to ask at, give --yes"


def carry_out(stores: Stores, verb: str, errands: Iterable[Errand], done: str, place: str) -> int:
    """Do it, and report with how many jobs it was done, also if it is interrupted, and in the journal.

    ``done``: as in "put back". Returns the exit code. Raises what ended it early.
    """
    bulk = Bulk(lambda so_far: output.progress(f"{counted(so_far.count, 'job')} {done}"))
    try:
        carry_out_all(bulk, errands, verb, place, functools.partial(note, stores))
    except (KeyboardInterrupt, StoreError) as error:
        unknown = ", and perhaps some of the batch under way" if isinstance(error, StoreError) else ""
        output.progress("")
        output.complain(f"not finished: {told(bulk.done, done, place)}{unknown}")
        raise
    output.progress("")
    output.say(told(bulk.done, done, place))
    for remark in remarks_on(bulk.done):
        output.complain(remark)
    # Why some were refused, only their verb can tell.
    left = (Returned.HELD, Returned.REFUSED, Returned.ALONE)
    return FAILED if any(bulk.done.results[one] for one in left) else OK
