"""Tell once, of all pools on one store, that one of them is lost."""

from __future__ import annotations

from contextlib import suppress

from queuepool.board.overview import ran_in
from queuepool.errors import StoreDenied
from queuepool.events import PoolLost
from queuepool.steward.side_stores import Emitter
from queuepool.stores.contract import NOTICE_KEPT, NOTICE_LASTS
from queuepool.stores.control import ControlKeys, instance_in, newest_of
from queuepool.stores.values import AlertClaim, Values

#: seconds between looks, of which one pool on the store takes each; and most jobs of a lost pool that are named
_PERIOD, _MOST_NAMED = 10.0, 10
#: the key of who looks, and the owner of the key that a loss was told
_LOOK, _TOLD = "look:pools", "told"


class WatchPools:
    """Looks for pools that have published nothing for half a minute and were not stopped; emits ``PoolLost``."""

    def __init__(self, instance: str, control: ControlKeys, values: Values, emitter: Emitter) -> None:
        self._instance = instance
        self._control = control
        self._values = values
        self._emitter = emitter

    def run(self, now: float) -> float:
        with suppress(StoreDenied):  # a user who may not take keys leaves it to others
            # Not renewed: with each look it is anybody's.
            if self._values.claim_alert(_LOOK, self._instance, 0.9 * _PERIOD) is AlertClaim.TAKEN:
                self._look()
        return _PERIOD

    def _look(self) -> None:
        notices = self._control.pools(NOTICE_KEPT)
        newest = max((notice["at"] for notice in notices), default=0.0)  # ours at least is of now
        for (host, pool, instance), notice in newest_of(notices).items():
            silent = newest - notice["at"]
            if silent > NOTICE_LASTS and instance and self._is_first_to_tell(instance):
                self._emitter.emit(PoolLost(pool, host, instance_in(notice), silent, ran_in(notice, _MOST_NAMED)))

    def _is_first_to_tell(self, instance: str) -> bool:
        return self._values.claim_alert(_told_key(instance), _TOLD, 2 * NOTICE_KEPT) is AlertClaim.TAKEN


def forget_loss(values: Values, instance: str) -> None:
    """The pool is back: its next loss is told again."""
    with suppress(StoreDenied):
        values.release_alert(_told_key(instance), _TOLD)


def _told_key(instance: str) -> str:
    return f"gone:{instance}"
