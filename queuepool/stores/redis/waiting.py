"""A reserve that waits at the server: sent behind a BLPOP in one write, it is carried out as soon as that is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.payload.lease import Lease
from queuepool.stores.contract import Reservation
from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.connections import PendingReplies
from queuepool.stores.redis.wire import reservation


class ReserveBehindWait:
    """The replies to a BLPOP and a reserve; where jobs are done, there is another reserve before, which takes none.

    The contract is ``stores.contract.WaitingReserve``. A server that closes a client's connection before serving it
    does not carry out the commands behind.
    """

    def __init__(
        self,
        client: RedisClient,
        replies: PendingReplies,
        queues: Sequence[str],
        tag: int,
        done: Sequence[Lease],
        keys: Sequence[str],
        args: Sequence[Any],
        leave_out: Callable[[StoreDenied], object] | None = None,
    ) -> None:
        """``leave_out``: told if the records of the done jobs, which were sent with them, are denied."""
        self.was_cut_off = False
        self._client = client
        self._replies = replies
        self._queues = queues
        self._tag = tag
        self._done = done
        self._keys = keys
        self._args = args
        self._leave_out = leave_out

    def deleted(self) -> Reservation:
        try:
            answer = self._client.reply(self._replies, "reserve", *self._keys)
        except StoreDenied as denied:
            if self._leave_out:
                self._leave_out(denied)
            raise
        self._replies.look()
        return reservation(answer, "reserve", self._queues, self._tag, self._done)

    def wait(self) -> None:
        self._client.await_replies(self._replies)

    def read(self) -> Reservation | None:
        if not self._replies.come_within(0.0):
            self.give_up()
            return None
        refusal = self._refusal()
        answer = self._client.script_reply(self._replies, "reserve", self._keys, self._args)
        found = reservation(answer, "reserve", self._queues, self._tag, ())
        if refusal and not found.leases:
            raise refusal
        return found

    def give_up(self) -> None:
        self._client.give_up(self._replies)

    def _refusal(self) -> StoreError | None:
        """Why the server did not wait; the commands behind were carried out all the same."""
        try:
            self._client.reply(self._replies, "blpop")
        except StoreError as error:
            if self._replies.are_over:
                self.was_cut_off = isinstance(error, StoreDown)
                raise
            return error
        return None
