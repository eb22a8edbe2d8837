"""Sends a command to pools of any host over one store, and reports what each of them answers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from queuepool.errors import StoreDenied, StoreError
from queuepool.operating.notices import PublishedPool, latest_of, names_of_pools
from queuepool.operating.rollouts import Rollout
from queuepool.stores.commands import LASTS, CommandOutcome, RemoteCommand
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.control import instance_in
from queuepool.stores.factory import Stores

#: seconds after which a command is certainly taken or never carried out, and in which one that was taken is answered
TAKEN_WITHIN, ANSWERED_WITHIN = LASTS + 1.0, LASTS + 7.0
#: of a pool that has published nothing since it restarts
_UNSEEN = Rollout(False, "it has published nothing since", "")


class Reply(NamedTuple):
    """What became of a command to one pool; ``pool`` is its name, empty if it has none.

    ``is_elsewhere``: it does not have the job that was meant; if another pool has it, nothing is wrong.
    ``is_lost``: it was not told, as it publishes nothing any more.
    """

    pool: str
    words: str
    is_done: bool = False
    is_elsewhere: bool = False
    is_lost: bool = False

    def __str__(self) -> str:
        return f"{self.pool}: {self.words}" if self.pool else self.words


class Post:
    """The commands of one call on one connection; ``tell`` is called with each reply."""

    def __init__(
        self, stores: Stores, by: str, means: Callable[[PublishedPool], bool], tell: Callable[[Reply], object],
        pool_name: str | None = None,
    ) -> None:  # fmt: skip
        self._stores = stores
        self._by = by
        self._tell_of = tell
        #: the pools of all hosts on this connection; those of one name, if there is one
        self.known = [pool for pool in self._pools() if pool_name in (None, pool.name)]
        self.meant = [pool for pool in self.known if means(pool)]
        self._names = names_of_pools(self.known)
        self._batch = secrets.token_hex(8)
        self._sent: dict[str, tuple[RemoteCommand, str]] = {}
        #: those that do what they were told
        self._doing: list[str] = []
        #: of those that restart: when the notice was published that was seen first, and how far each has come
        self._first_at: dict[str, float] = {}
        self._rollouts: dict[str, Rollout] = {}
        #: why the store could not be asked when it was last asked
        self._problem = ""

    def send(self, verb: str, details: Mapping[str, Any]) -> None:
        """Send it to the pools that are meant and can get it."""
        by, at = self._by, self._stores.queue.now()
        commands = []
        for pool in self.meant:
            if pool.is_lost:
                words = f"lost: it has published nothing for {pool.age:.0f} s, so it was not told"
                self._fail(pool.instance, words, is_lost=True)
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
        """Whether all of them have answered; tells of those answers that have come."""
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
                    sent.to, f"not reached: it has looked for no command for {TAKEN_WITHIN:.0f} s; nothing was done"
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
        """Whether the pools that were told to end have ended; tells of those that have."""
        try:
            gone = {instance_in(one) for one in self._stores.control.left()}
        except StoreError as error:
            for one in self._doing:
                self._fail(one, f"whether it has ended cannot be seen: {error}")
            self._doing = []
            return True
        for one in [one for one in self._doing if one in gone]:
            self._doing.remove(one)
            self._tell_of(Reply(self._names[one], "stopped", is_done=True))
        return not self._doing

    def tell_running(self, waited: float) -> None:
        """Report the pools that have not ended."""
        for one in self._doing:
            self._fail(one, f"still runs after {waited:g} s")

    def are_renewed(self) -> bool:
        """Whether the new code works in the pools that restart; tells of those in which it does, or will not."""
        with suppress(StoreError):  # it may be back in time
            pools = {pool.instance: pool for pool in self._pools()}
            for one in list(self._doing):
                found = self._rollouts[one] = self._rollout(one, pools.get(one))
                if not (found.is_done or found.problem):
                    continue
                self._doing.remove(one)
                if found.is_done:
                    self._tell_of(Reply(self._names[one], found.words, is_done=True))
                else:
                    self._fail(one, found.problem)
        return not self._doing

    def tell_late(self) -> None:
        """Report the pools in which it does not work yet."""
        for one in self._doing:
            self._fail(one, f"timed out, {self._rollouts.get(one, _UNSEEN).words}")

    def _rollout(self, instance: str, pool: PublishedPool | None) -> Rollout:
        if pool is None:
            return Rollout(False, "", "it has ended")
        if pool.is_lost:
            return Rollout(False, "", f"lost: it has published nothing for {pool.age:.0f} s")
        # The first one may be from before the restart.
        is_first = pool.facts["at"] == self._first_at.setdefault(instance, pool.facts["at"])
        return _UNSEEN if is_first or pool.overview is None else Rollout.of(pool.overview)

    def _pools(self) -> list[PublishedPool]:
        return latest_of(self._stores.control.pools(NOTICE_KEPT), self._stores.queue.now())

    def _tell(self, instance: str, outcome: CommandOutcome, words: str) -> None:
        if outcome is CommandOutcome.DONE:
            self._doing.append(instance)
            self._tell_of(Reply(self._names[instance], words, is_done=True))
        elif outcome is CommandOutcome.NOT_HERE:
            self._tell_of(Reply(self._names[instance], f"{outcome.value}: {words}", is_elsewhere=True))
        else:
            self._fail(instance, f"{outcome.value}: {words}")

    def _fail(self, instance: str, words: str, *, is_lost: bool = False) -> None:
        self._tell_of(Reply(self._names.get(instance, "") if instance else "", words, is_lost=is_lost))
