"""Which notices a pool sends: one for an alert in all pools on the store, and again after a time while it is raised."""

from __future__ import annotations

import logging

from queuepool.board.alert_words import words_of
from queuepool.board.open_alerts import OpenAlert
from queuepool.board.status import iso
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.steward.alert_outbox import Outbox
from queuepool.stores.values import Claim, Values

#: seconds after which a pool asks again whether it may send the notices of an alert that another pool has
_ASK_AGAIN = 60.0
_log = logging.getLogger("queuepool")


class Refusals:
    """What the store refuses and keeps refusing: logged once. That it is away is reported by others."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._last = ""

    def note(self, error: StoreError) -> None:
        """Log the error, unless it is an outage or the last one again."""
        is_outage = isinstance(error, StoreDown) and not isinstance(error, StoreDenied)
        if not is_outage and str(error) != self._last:
            self._last = str(error)
            _log.warning("%s: %s", self._words, error)


class Notices:
    """Asks the store whose turn it is. Without the store, every pool sends its own notices.

    ``repeat``: seconds after which the notice of an alert that is still raised is sent again.
    """

    def __init__(self, values: Values, outbox: Outbox, pool: str, host: str, repeat: float) -> None:
        self._values = values
        self._outbox = outbox
        self._pool = pool
        self._host = host
        self._repeat = repeat
        self._is_away = False
        self._refused = Refusals("pools do not agree who sends a notice, so each sends its own")

    def begin(self, *, is_away: bool) -> None:
        """Begin a look; ``is_away``: the store is known to be away, so it is not asked."""
        self._is_away = is_away

    def send_if_due(self, alert: OpenAlert, now: float) -> OpenAlert:
        """Send the notice of a raised alert, if it is time and ours to send; returns what is to be remembered of it."""
        if now < alert.ask_at:
            return alert
        claim = self._claim(alert)
        is_new = claim in (Claim.TAKEN, None)
        if is_new:
            self._add(alert, "raised")
        pause = self._repeat if is_new else min(_ASK_AGAIN, self._repeat)
        return alert._replace(is_ours=claim is not Claim.OTHERS, is_alone=claim is None, ask_at=now + pause)

    def send_cleared(self, alert: OpenAlert, now: float) -> None:
        """Send the notice of the end of an alert, if its key is ours, or was until it ended by itself."""
        if alert.is_ours and (alert.is_alone or self._release(alert) or now >= alert.ask_at):
            self._add(alert, "cleared")

    def _claim(self, alert: OpenAlert) -> Claim | None:
        """Whose turn it is; ``None`` if the store does not say."""
        if not self._is_away:
            try:
                return self._values.claim_alert(_key_of(alert), self._owner, self._repeat)
            except StoreError as error:
                self._note(error)
        return None

    def _release(self, alert: OpenAlert) -> bool:
        """Whether the key was ours; ``True`` if the store does not say."""
        if not self._is_away:
            try:
                return self._values.release_alert(_key_of(alert), self._owner)
            except StoreError as error:
                self._note(error)
        return True

    def _note(self, error: StoreError) -> None:
        self._is_away = True  # the next alerts of this look do not wait for it too
        self._refused.note(error)

    @property
    def _owner(self) -> str:
        # The same after a restart: the pool then goes on with what it had begun.
        return f"{self._host}:{self._pool}"

    def _add(self, alert: OpenAlert, state: str) -> None:
        facts = {"kind": alert.kind, "subject": alert.subject, "value": alert.value, "limit": alert.limit}
        place = {"since": iso(alert.since), "pool": self._pool, "host": self._host}
        self._outbox.add({"state": state, **facts, **place, "text": words_of(alert)})


def _key_of(alert: OpenAlert) -> str:
    return f"{alert.kind}:{alert.subject}"
