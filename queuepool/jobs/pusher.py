"""Encodes jobs and pushes them, for all of a ``Queue``'s ways to push."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from queuepool.config import values
from queuepool.config.connections import lock_home_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import folds_keys, kind_of
from queuepool.errors import ConfigError
from queuepool.events.listeners import LISTENERS
from queuepool.jobs import at_import, context, diversion
from queuepool.jobs.door import Terms, terms_of
from queuepool.jobs.in_threads import with_pauses
from queuepool.jobs.job_options import Delay
from queuepool.payload.envelope import CONTEXT, OBJECT_JOB, Envelope, encode
from queuepool.payload.lease import Lock
from queuepool.payload.limits import job_word
from queuepool.payload.members import FLOW, PHP_MEMBER, NewFlow, NewMember
from queuepool.payload.on_push import stamper
from queuepool.payload.options import TRACK
from queuepool.payload.php_values import build_command
from queuepool.payload.signing import signer_of
from queuepool.payload.unique_locks import claimed, exact, lasting
from queuepool.stores.contract import NewJob, PushStore

if TYPE_CHECKING:
    from queuepool.payload.encrypter import Encrypter


class Pusher:
    """Pushes to ``pushes``, according to its connection's settings."""

    def __init__(self, settings: ConnectionSettings, pushes: PushStore, encryption: Encryption) -> None:
        self.pushes = pushes
        self._settings = settings
        self._encryption = encryption
        self._signer = signer_of(settings.signing, settings.signing_keys)

    def push(self, jobs: Sequence[tuple[str, object]], terms: Terms) -> list[str]:
        """The ids of the jobs, each a name and data; an empty one if the lock is held. Raises as ``Queue.push``."""
        names = [name for name, _ in jobs]
        written = jobs if terms.command is None else [(OBJECT_JOB, terms.command)]
        terms = self._told_apart(terms, written)
        envelope = self._envelope(names, terms)
        made = [encode(name, data, envelope) for name, data in with_pauses(written)]
        ids, pushes, diverted = [identity for identity, _ in made], self.pushes, diversion.active
        if diverted:
            pushes = diverted.pushes(self._settings, pushes, diversion.Push(ids, jobs, terms))
        if not pushes.push(terms.queue, _new_jobs(made, names, terms), terms.delay, terms.lock):
            return [""]
        if at_import.is_under_way:
            at_import.warn_of(names)
        emit_queued(zip(ids, names, strict=True), terms.queue, terms.delay)
        if diverted:
            diverted.run()
        return ids

    def push_raw(self, payload: bytes, queue: str, delay: Delay) -> None:
        """Push these bytes. Raises as ``Queue.push``."""
        if not isinstance(payload, bytes):
            raise TypeError(f"push_raw takes bytes, not {type(payload).__name__}")
        terms, pushes, diverted = terms_of("", queue, delay), self.pushes, diversion.active
        if diverted:
            pushes = diverted.pushes(self._settings, pushes, diversion.Push([""], [("", payload)], terms))
        pushes.push(queue, [NewJob(payload)], terms.delay)
        if diverted:
            diverted.run()

    def encoded(self, name: str, data: object, terms: Terms, extra: Mapping[str, object], job_id: str = "") -> bytes:
        """The payload of a job that a flow pushes later, with these further fields and this id, or a random one.

        Raises as ``Queue.push`` does.
        """
        envelope = self._envelope([name], terms._replace(delay=0.0))
        if terms.command is not None:
            name, data = PHP_MEMBER if FLOW in extra else OBJECT_JOB, terms.command
        return encode(name, data, envelope._replace(extra={**envelope.extra, **extra}), job_id)[1]

    def encrypted(self, command: Mapping[str, object]) -> Mapping[str, object]:
        """The data of a job that a Laravel worker runs as an object, encrypted. Raises ``ConfigError``."""
        return {**command, "command": self._encryption.command(str(command["command"]))}

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember], jobs: Sequence[tuple[str, object]]) -> None:
        """Write a flow with these members, the jobs each a name and data. Raises as ``Queue.push`` does."""
        pushes, diverted = self.pushes, diversion.active
        if diverted:
            pushed = [_pushed(*one) for one in zip(members, jobs, strict=True)]
            pushes = diverted.flow_pushes(self._settings, pushes, pushed)
        pushes.write_flow(flow, members)
        if at_import.is_under_way:
            at_import.warn_of([name for name, _ in jobs])
        if diverted:
            diverted.run()

    def laravels(self, lock: Lock | None) -> Lock | None:
        """The lock, to be taken where Laravel's cache keeps its locks."""
        settings = self._current
        return lock and lock._replace(is_elsewhere=lock_home_of(settings) != settings.url)

    def _told_apart(self, terms: Terms, jobs: Sequence[tuple[str, object]]) -> Terms:
        """The terms with a lock name that the store confuses with no other; a PHP class keeps the name from Laravel."""
        if terms.lock is None or "\\" in jobs[0][0] or not folds_keys(self._settings.url):
            return terms
        return terms._replace(lock=exact(terms.lock, jobs[0][0]))

    def _envelope(self, names: Sequence[str], terms: Terms) -> Envelope:
        is_object = terms.command is not None
        return Envelope(
            time.time(),
            round(terms.delay),
            terms.options,
            names[0] if is_object else None,
            self._extra(terms),
            stamper(terms.queue),
            self._encryption.data if terms.encrypted and not is_object else None,
            partial(self._signer.sign, terms.queue) if self._signer else None,
        )

    def _extra(self, terms: Terms) -> dict[str, object]:
        """The fields that few payloads have."""
        lock = terms.lock
        extra: dict[str, object] = {}
        if texts := claimed(context.texts(), lock, self._kind_of(lock)) if lock else context.texts():
            extra[CONTEXT] = texts
        if terms.track:
            extra[TRACK] = terms.track
        return extra | lasting(lock) if lock else extra

    def _kind_of(self, lock: Lock) -> str:
        """The kind of store that the lock is in."""
        settings = self._current
        return kind_of(lock_home_of(settings) if lock.is_elsewhere else settings.url)

    @property
    def _current(self) -> ConnectionSettings:
        return diversion.active.settings(self._settings) if diversion.active else self._settings


def _pushed(member: NewMember, job: tuple[str, object]) -> diversion.Push:
    return diversion.Push([str(json.loads(member.payload)["id"])], [job], Terms(member.queue, member.delay))


def _new_jobs(made: Sequence[tuple[str, bytes]], names: Sequence[str], terms: Terms) -> list[NewJob]:
    """The jobs of these ids and payloads, with their first states if they are tracked."""
    if not terms.track:
        if terms.places:
            each = zip(made, terms.places, strict=True)
            return [NewJob(payload, None, job_word(identity), asked) for (identity, payload), asked in each]
        return [NewJob(payload) for _, payload in made]
    from queuepool.settlement.states import pushed  # imported here: few programs follow their jobs

    return [
        NewJob(payload, pushed(identity, name, terms.queue, terms.delay))
        for (identity, payload), name in zip(made, names, strict=True)
    ]


# The event of a push.


def emit_queued(pushed: Iterable[tuple[str, str]], queue: str, delay: float) -> None:
    """``JobQueued`` for each id and name; nothing is imported or built without listeners."""
    if LISTENERS.is_empty:
        return
    from queuepool.events import JobQueued  # imported here: most programs have no listeners

    for identity, name in pushed if LISTENERS.wants(JobQueued) else ():
        LISTENERS.emit(JobQueued(identity, name, queue, delay))


# The producer's side of encrypted jobs. The encryption library is loaded for the first of them.


class Encryption:
    """Encrypts for one connection. Its methods raise ``ConfigError`` without a key."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings

    def command(self, text: str) -> str:
        """A serialized PHP object, as Laravel encrypts it."""
        return self._encrypter.encrypt(text)

    def data(self, data: object) -> dict[str, str]:
        """A job's data, for queuepool's workers."""
        from queuepool.payload.encrypter import encrypted

        return encrypted(data, self._encrypter)

    @cached_property
    def _encrypter(self) -> Encrypter:
        from queuepool.payload.encrypter import encrypter_of

        if encrypter := encrypter_of(self._settings.cipher, self._settings.app_keys):
            return encrypter
        raise ConfigError(f"connection {self._settings.name}", "encrypted jobs need app_key")


# The data of a job that a Laravel worker runs as an object.


def data_of(
    class_name: str,
    properties: Mapping[str, Any],
    protected: Collection[str],
    private: Collection[str],
    encryption: Encryption | None,
) -> dict[str, object]:
    """The data as Laravel writes it, encrypted with ``encryption``.

    Raises ``PhpDataRefused``, and ``ValueError`` or ``TypeError`` for arguments of wrong types.
    """
    if not isinstance(class_name, str):
        raise ValueError(f"{class_name!r} is not the full name of a PHP class like App\\Jobs\\Sync")
    if not isinstance(properties, Mapping):
        raise TypeError(f"{class_name}: its properties must be a dict, not {type(properties).__name__}")
    command = build_command(values.php_class(class_name), properties, protected, private)
    return {"commandName": class_name, "command": encryption.command(command) if encryption else command}
