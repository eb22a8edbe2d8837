"""Encoding jobs and pushing them, for all the ways in which a ``Queue`` pushes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import folds_keys, kind_of
from queuepool.jobs import at_import, context, diversion
from queuepool.jobs.delay import Delay, seconds_until
from queuepool.jobs.encryption import Encryption
from queuepool.jobs.following import first_states
from queuepool.jobs.in_threads import with_pauses
from queuepool.jobs.job_options import Seconds, Wired
from queuepool.jobs.push_options import fields_of
from queuepool.jobs.queued import emit_queued
from queuepool.payload.ending import Lock
from queuepool.payload.envelope import CONTEXT, encode
from queuepool.payload.exact_locks import exact, lasting
from queuepool.payload.on_push import stamper
from queuepool.payload.options import TRACK
from queuepool.payload.signing import signer_of
from queuepool.payload.unique_locks import claimed

if TYPE_CHECKING:
    from queuepool.stores.contract import Pushes


class Pusher:
    """Pushes to ``pushes``, as the settings of its connection say."""

    def __init__(self, settings: ConnectionSettings, pushes: Pushes, encryption: Encryption) -> None:
        self.pushes = pushes
        self._settings = settings
        self._encryption = encryption
        self._signer = signer_of(settings.signing, settings.signing_keys)

    def push(
        self,
        jobs: list[tuple[str, object]],
        queue: str,
        delay: Delay,
        options: Mapping[str, object] | None,
        *,
        display_name: str | None = None,
        encrypted: bool = False,
        lock: Lock | None = None,
        track: Seconds = 0,
        as_given: tuple[Sequence[tuple[str, object]], bool] | None = None,
    ) -> list[str]:
        """The ids of the jobs, each a name and data; an empty one if the lock is held. Raises as ``Queue.push``.

        ``as_given``: for tests, the jobs before they were serialized, and whether they are encrypted.
        """
        seconds, lock = seconds_until(delay), self._told_apart(lock, jobs)
        about: dict[str, Any] = {
            "options": fields_of(options) if options and not isinstance(options, Wired) else options,
            "display_name": display_name,
            "created_at": time.time(),
            "extra": self._extra(lock, seconds_until(track)),
            "stamp": stamper(queue),
            "encrypt": self._encryption.data if encrypted else None,
            "sign": partial(self._signer.sign, queue) if self._signer else None,
        }
        made = [encode(name, data, delay=round(seconds), **about) for name, data in with_pauses(jobs)]
        names = [display_name or name for name, _ in jobs]
        ids, pushes, diverted = [identity for identity, _ in made], self.pushes, diversion.active
        if diverted:
            given, is_encrypted = as_given or (jobs, encrypted)
            fields = about["options"] or {}
            push = diversion.Push(ids, given, queue, seconds, fields, is_encrypted, lock.name if lock else None)
            pushes = diverted.pushes(self._settings, pushes, push)
        if not _store(pushes, queue, made, seconds, lock, names if track else ()):
            return [""]
        if at_import.is_under_way:
            at_import.warn_of(names)
        emit_queued(zip(ids, names, strict=True), queue, seconds)
        if diverted:
            diverted.run()
        return ids

    def push_raw(self, payload: bytes, queue: str, delay: float) -> None:
        """Push these bytes. Raises ``StoreError``."""
        pushes, diverted = self.pushes, diversion.active
        if diverted:
            push = diversion.Push([""], [("", payload)], queue, delay, {}, False, None)
            pushes = diverted.pushes(self._settings, pushes, push)
        pushes.push(queue, [payload], delay)
        if diverted:
            diverted.run()

    def _told_apart(self, lock: Lock | None, jobs: list[tuple[str, object]]) -> Lock | None:
        """The lock by a name that the store takes for no other; that of a PHP class, which Laravel gives, as it is."""
        if lock is None or "\\" in jobs[0][0] or not folds_keys(self._settings.url):
            return lock
        return exact(lock, jobs[0][0])

    def _extra(self, lock: Lock | None, track: float) -> dict[str, object]:
        """The fields of a payload that few have."""
        texts = claimed(context.texts(), lock, self._kind) if lock else context.texts()
        known: dict[str, object] = {key: value for key, value in ((CONTEXT, texts), (TRACK, track)) if value}
        return known | lasting(lock) if lock else known

    @property
    def _kind(self) -> str:
        """The kind of store that a lock is in."""
        settings = diversion.active.settings(self._settings) if diversion.active else self._settings
        return kind_of(settings.url)


def _store(
    pushes: Pushes,
    queue: str,
    made: list[tuple[str, bytes]],
    delay: float,
    lock: Lock | None,
    tracked: Sequence[str],
) -> bool:
    """Push these ids and payloads; ``False``: the lock is held. ``tracked``: the jobs' names if they are."""
    payloads = [payload for _, payload in made]
    if tracked:
        return pushes.push_tracked(queue, payloads, delay, first_states(made, tracked, queue, delay), lock)
    if lock:
        return pushes.push_unique(queue, payloads[0], delay, lock)
    pushes.push(queue, payloads, delay)
    return True
