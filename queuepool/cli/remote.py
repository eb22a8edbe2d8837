"""Verbs for pools on any host: a command goes through the store to each pool that is meant, and each pool answers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from queuepool.board.about import operator
from queuepool.cli import output
from queuepool.cli.options import Where
from queuepool.cli.targets import Elsewhere
from queuepool.cli.waiting import within
from queuepool.errors import StoreDenied, StoreError
from queuepool.operating.notices import PublishedPool, latest_of, names_of_pools
from queuepool.stores.commands import LASTS, MAX_OF_ALL_WORDS, MAX_WORDS, CommandOutcome, RemoteCommand
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.control import instance_in
from queuepool.stores.factory import Stores
from queuepool.unix.exit_codes import FAILED, NOT_RUNNING, OK

#: seconds after which a command is certainly taken or never carried out, and in which one that was taken is answered
_TAKEN_WITHIN, _ANSWERED_WITHIN = LASTS + 1.0, LASTS + 7.0
#: seconds between looks for answers, and for pools that have ended
_POLL, _END_POLL = 0.1, 0.5
#: most pools that are named where none is meant
_MOST_NAMED = 20


def command(
    where: Where,
    elsewhere: Elsewhere,
    verb: str,
    details: Mapping[str, Any] | None = None,
    *,
    takes: float = 0.0,
    end_within: float = 0.0,
) -> int:
    """Send it to each pool that is meant, and print the answer of each; returns the exit code.

    ``takes``: seconds that a pool may need for it, besides the usual ones; ``end_within``: seconds to wait until the
    pools have ended, too.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(Stores(connection, by_hand=True))) for connection in where.connections()]
        posts = [_Post(stores, where.pool_name, elsewhere) for stores in opened]
        _drop_repeated(posts)
        if not _are_there(posts, elsewhere):
            return NOT_RUNNING
        # The answers of all may come at once.
        room = MAX_OF_ALL_WORDS // max(sum(len(post.meant) for post in posts), 1)
        for post in posts:
            post.send(verb, {**(details or {}), "room": min(room, MAX_WORDS)})
        begun = time.monotonic()
        within(_TAKEN_WITHIN, lambda: not [post for post in posts if not post.has_answers()], poll=_POLL)
        for post in posts:
            post.withdraw()
        rest = begun + _ANSWERED_WITHIN + takes - time.monotonic()
        within(rest, lambda: not [post for post in posts if not post.has_answers()], poll=_POLL)
        for post in posts:
            post.give_up()
        if end_within:
            within(end_within, lambda: not [post for post in posts if not post.have_ended()], poll=_END_POLL)
            for post in posts:
                post.tell_running(end_within)
        return max(post.code for post in posts)


def _drop_repeated(posts: Sequence[_Post]) -> None:
    """Each pool is told once, though several connections of the configuration may lead to its store."""
    seen = set[str]()
    for post in posts:
        post.meant = [pool for pool in post.meant if pool.instance not in seen]
        seen |= {pool.instance for pool in post.meant if pool.instance}


def _are_there(posts: Sequence[_Post], elsewhere: Elsewhere) -> bool:
    """Whether each target names a pool; reports those that do not, and then nothing is sent."""
    known = [pool for post in posts for pool in post.known]
    missing = [target for target in elsewhere.targets if not any(target.means(pool) for pool in known)]
    for target in missing:
        output.complain(f"no pool {target} has published a notice; there are: {_listed(known)}")
    if not missing and not any(post.meant for post in posts):
        output.complain("no pool has published a notice")
        return False
    return not missing


def _listed(pools: Sequence[PublishedPool]) -> str:
    names = sorted(f"{pool.host}/{pool.name}" for pool in pools)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}" if names else "none"


class _Post:
    """The commands of one call on one connection, and what becomes of each."""

    def __init__(self, stores: Stores, pool_name: str | None, elsewhere: Elsewhere) -> None:
        self._stores = stores
        notices = stores.control.pools(NOTICE_KEPT)
        #: the pools of all hosts on this connection, without those that ``--pool`` leaves out
        self.known = [pool for pool in latest_of(notices, stores.queue.now()) if pool_name in (None, pool.name)]
        self.meant = [pool for pool in self.known if elsewhere.means(pool)]
        self._names = names_of_pools(self.known)
        self._batch = secrets.token_hex(8)
        self._sent: dict[str, tuple[RemoteCommand, str]] = {}
        #: those that have been told to end
        self._ending: list[str] = []
        #: why the store could not be asked when it was last asked
        self._problem = ""
        self.code = OK

    def send(self, verb: str, details: Mapping[str, Any]) -> None:
        """Send it to the pools that are meant and can get it."""
        by, at = operator(), self._stores.queue.now()
        commands = []
        for pool in self.meant:
            if pool.is_lost:
                self._fail(pool.instance, f"lost: it has published nothing for {pool.age:.0f} s, so it was not told")
            elif not pool.instance:
                self._fail("", f"pool {pool.name} on {pool.host}: its version takes no commands")
            else:
                commands.append(RemoteCommand(pool.instance, verb, details, by, at, self._batch))
        try:
            texts = self._stores.commands.send(commands) if commands else []
        except StoreDenied:
            raise
        except StoreError as error:
            for one in commands:
                self._fail(one.to, f"not known whether it was told: {error}")
            return
        self._sent = {one.id: (one, text) for one, text in zip(commands, texts, strict=True)}

    def has_answers(self) -> bool:
        """Whether all of them have answered; prints those answers that have come."""
        if not self._sent:
            return True
        self._problem = ""
        try:
            for answer in self._stores.commands.answers(self._batch):
                if sent := self._sent.pop(answer.id, None):
                    self._tell(sent[0].to, answer.outcome, answer.words)
        except StoreDenied:
            raise
        except StoreError as error:  # it may be back before the pools are, and what they were told stands
            self._problem = str(error)
        return not self._sent

    def withdraw(self) -> None:
        """Take back what no pool has taken."""
        for sent, text in list(self._sent.values()):
            try:
                is_untaken = self._stores.commands.withdraw(sent, text)
            except StoreError:
                return  # it is told below that nothing is known of them
            if is_untaken:
                del self._sent[sent.id]
                self._fail(
                    sent.to, f"not reached: it has looked for no command for {_TAKEN_WITHIN:.0f} s; nothing was done"
                )

    def give_up(self) -> None:
        """Tell of those that have not answered: whether they have done it, or do it yet, only they know."""
        why = "it has taken the command and not answered"
        if self._problem:
            why = f"the store cannot be asked for its answer: {self._problem}"
        for sent, _ in self._sent.values():
            self._fail(sent.to, f"not known: {why}: queuepool status --all shows what it does")
        self._sent = {}

    def have_ended(self) -> bool:
        """Whether the pools that were told to end have ended; prints those that have."""
        try:
            gone = {instance_in(one) for one in self._stores.control.left()}
        except StoreError as error:
            for one in self._ending:
                self._fail(one, f"whether it has ended cannot be seen: {error}")
            self._ending = []
            return True
        for one in [one for one in self._ending if one in gone]:
            self._ending.remove(one)
            output.say(f"{self._names[one]}: stopped")
        return not self._ending

    def tell_running(self, waited: float) -> None:
        """Report the pools that have not ended."""
        for one in self._ending:
            self._fail(one, f"still runs after {waited:g} s")

    def _tell(self, instance: str, outcome: CommandOutcome, words: str) -> None:
        if outcome is CommandOutcome.DONE:
            output.show(f"{self._names[instance]}: {words}")
            self._ending.append(instance)
            return
        self._fail(instance, f"{outcome.value}: {words}")

    def _fail(self, instance: str, words: str) -> None:
        name = self._names.get(instance)
        output.complain(f"{name}: {words}" if instance and name else words)
        self.code = FAILED
