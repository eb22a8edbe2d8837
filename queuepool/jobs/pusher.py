"""Encoding jobs and pushing them, for all the ways in which a ``Queue`` pushes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from queuepool.config.connections import lock_home_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import folds_keys, kind_of
from queuepool.jobs import at_import, context, diversion
from queuepool.jobs.delay import Delay
from queuepool.jobs.door import terms_of
from queuepool.jobs.encryption import Encryption
from queuepool.jobs.following import first_states
from queuepool.jobs.in_threads import with_pauses
from queuepool.jobs.job_options import Seconds
from queuepool.jobs.queued import emit_queued
from queuepool.payload.ending import Lock
from queuepool.payload.envelope import CONTEXT, encode
from queuepool.payload.on_push import stamper
from queuepool.payload.options import TRACK
from queuepool.payload.signing import signer_of
from queuepool.payload.unique_locks import claimed, exact, lasting

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
        terms = terms_of(display_name or (jobs[0][0] if jobs else ""), queue, delay, track, options)
        seconds, lock = terms.delay, self._told_apart(lock, jobs)
        about: dict[str, Any] = {
            "options": terms.options,
            "display_name": display_name,
            "created_at": time.time(),
            "extra": self._extra(lock, terms.track),
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
        if not _store(pushes, queue, made, seconds, lock, names if terms.track else ()):
            return [""]
        if at_import.is_under_way:
            at_import.warn_of(names)
        emit_queued(zip(ids, names, strict=True), queue, seconds)
        if diverted:
            diverted.run()
        return ids

    def push_raw(self, payload: bytes, queue: str, delay: Delay) -> None:
        """Push these bytes. Raises as ``Queue.push``."""
        if not isinstance(payload, bytes):
            raise TypeError(f"push_raw takes bytes, not {type(payload).__name__}")
        seconds, pushes, diverted = terms_of("", queue, delay).delay, self.pushes, diversion.active
        if diverted:
            push = diversion.Push([""], [("", payload)], queue, seconds, {}, False, None)
            pushes = diverted.pushes(self._settings, pushes, push)
        pushes.push(queue, [payload], seconds)
        if diverted:
            diverted.run()

    def laravels(self, lock: Lock | None) -> Lock | None:
        """The lock, to be taken where Laravel's cache has its own."""
        settings = self._current
        return lock and lock._replace(is_elsewhere=lock_home_of(settings) != settings.url)

    def _told_apart(self, lock: Lock | None, jobs: list[tuple[str, object]]) -> Lock | None:
        """The lock by a name that the store takes for no other; that of a PHP class, which Laravel gives, as it is."""
        if lock is None or "\\" in jobs[0][0] or not folds_keys(self._settings.url):
            return lock
        return exact(lock, jobs[0][0])

    def _extra(self, lock: Lock | None, track: float) -> dict[str, object]:
        """The fields of a payload that few have."""
        texts = claimed(context.texts(), lock, self._kind_of(lock)) if lock else context.texts()
        known: dict[str, object] = {key: value for key, value in ((CONTEXT, texts), (TRACK, track)) if value}
        return known | lasting(lock) if lock else known

    def _kind_of(self, lock: Lock) -> str:
        """The kind of store that the lock is in."""
        settings = self._current
        return kind_of(lock_home_of(settings) if lock.is_elsewhere else settings.url)

    @property
    def _current(self) -> ConnectionSettings:
        return diversion.active.settings(self._settings) if diversion.active else self._settings


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
