"""A look at the jobs that wait: which of Laravel's features they use, and whether these are configured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from queuepool.cli.output import counted
from queuepool.config.connections import lock_urls_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of, masked
from queuepool.errors import CLOSURE, BadArguments, BadPayload, ConfigError, StoreError, UnknownJob
from queuepool.jobs.registry import Registry
from queuepool.payload.command import ObjectCommand, is_encrypted
from queuepool.payload.context import texts_of
from queuepool.payload.encrypter import MARK
from queuepool.payload.envelope import OBJECT_JOB, Payload, decode
from queuepool.payload.lease import Unlock
from queuepool.payload.unique_locks import HIDDEN, PREFIX, names_of
from queuepool.settlement.endings import Endings, commands_of
from queuepool.stores.control import lock_prefix_of
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Finding, Grade


class Peek:
    """Judges payloads as a worker with this registry would, by the same rules, and takes none."""

    def __init__(self, stores: Stores, registry: Registry) -> None:
        connection: ConnectionSettings = stores.settings
        commands = commands_of(connection)
        self._stores = stores
        self._registry = registry
        self._endings = Endings(connection, commands)
        self._locks = LockSearch(stores)
        self._strict = Endings(replace(connection, foreign="refuse"), commands)

    def findings(self, queue: str, most: int) -> Iterator[Finding]:
        """What the first payloads of the queue use; equal ones make one finding. Raises ``StoreError``."""
        payloads = self._stores.queue.first(queue, most)
        judged = Counter(one for raw in payloads for one in self._judged(raw))
        used = sum(count for (grade, _), count in judged.items())
        plain = f"{counted(len(payloads), 'job')} read" + ("" if used else ", none uses a feature of Laravel's workers")
        yield Finding(Grade.OK, f"queue {queue}", plain)
        for (grade, words), count in judged.items():
            yield Finding(grade, f"queue {queue}", f"{counted(count, 'job')}: {words}")

    def _judged(self, raw: bytes) -> Iterable[tuple[Grade, str]]:
        """The findings about one payload: none if it uses none of the features."""
        try:
            payload = decode(raw, 0)
        except BadPayload as error:
            return [(Grade.FAIL, f"{error}: it goes to the quarantine")]
        try:
            self._find(payload.name)
            self._endings.commands.data_of(payload)
        except (UnknownJob, BadArguments) as error:
            return [(Grade.FAIL, str(error))]
        if refusal := self._endings.refusal(payload):
            return [(Grade.FAIL, str(refusal))]
        return self._usable(payload)

    def _find(self, name: str) -> None:
        """Raises ``UnknownJob``; without any modules only for closures, which never run in Python."""
        if self._registry.names() or name == CLOSURE:
            self._registry.find(name)

    def _usable(self, payload: Payload) -> Iterator[tuple[Grade, str]]:
        """The features of a job that may run."""
        features = list(self._features(payload))
        for warning in filter(None, (self._endings.warning(payload), self._lock_problem(payload))):
            yield Grade.WARN, f"{payload.name}: {warning}"
        if self._strict.refusal(payload):
            yield Grade.WARN, f"{payload.name}: {', '.join(features)}: dropped by foreign = ignore"
        elif features:
            yield Grade.OK, f"{payload.name}: {', '.join(features)}"
        if self._endings.batch_of(payload) and not self._knows_batches():
            yield Grade.WARN, f"{payload.name}: it cannot see its batch while it runs: set batches_url"

    def _lock_problem(self, payload: Payload) -> str:
        """What is wrong with its unique lock, as far as the stores show it; empty if nothing is."""
        locks = self._endings.after(payload).unlocks
        if locks and (problem := self._locks.problem(locks)):
            return f"its unique lock {self._locks.name(locks)!r} {problem}"
        if self._endings.held_locks(payload) or payload.options.job != OBJECT_JOB or self._says_id(payload.name):
            return ""
        other = self._locks.of_class(payload.name, payload.options.display_name)
        return other and f"the unique lock {other!r} is held, and this payload names none: give its handler unique_id"

    def _says_id(self, name: str) -> bool:
        handler = self._registry.known(name)
        return handler is not None and handler.options.unique_id is not None

    def _knows_batches(self) -> bool:
        try:
            return bool(self._stores.batches)
        except ConfigError:
            return False

    def _features(self, payload: Payload) -> Iterator[str]:
        if payload.options.job == OBJECT_JOB:
            yield from _features_of(self._endings.commands.of(payload), self._stores.settings.outcomes)
        if _is_encrypted(payload.data):
            yield "encrypted (a key fits)"
        held = self._endings.held_locks(payload) if not self._endings.warning(payload) else ()
        if held:
            is_ours = held[0] in self._endings.after(payload).unlocks
            released = "" if self._lock_problem(payload) else f" (released {'here' if is_ours else 'by Laravel'})"
            yield f"unique lock {self._locks.name(held)!r}{released}"
        if {*texts_of(payload.context)["data"], *texts_of(payload.context)["hidden"]}.difference(HIDDEN):
            yield "context"


def _features_of(command: ObjectCommand, outcomes: str) -> Iterator[str]:
    goes_on = f" (continued through queue {outcomes})" if outcomes else ""
    if command.chained:
        yield f"chain{goes_on}"
    if command.catches:
        yield f"catch callbacks{goes_on}"
    if command.batch:
        yield f"batch{goes_on}"
    if command.debounced:
        yield "debounced"
    if command.middleware:
        yield "middleware"


def _is_encrypted(data: object) -> bool:
    if not isinstance(data, dict):
        return False
    command = data.get("command")
    return MARK in data or (isinstance(command, str) and is_encrypted(command))


class Found(NamedTuple):
    """A lock that is held: its name, the part of its key before that, and where it is."""

    name: str
    prefix: str
    url: str


class LockSearch:
    """Finds the unique locks of waiting jobs: reads those of all known places once, whatever their prefix."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        settings = stores.settings
        #: the prefix that a lock must have to be released, by place
        self._usual = {url: lock_prefix_of(settings, kind_of(url)) for url in (settings.url, *lock_urls_of(settings))}

    def name(self, locks: Sequence[Unlock]) -> str:
        """Which of these names of one lock is held; the first if none is."""
        held = {one.name for one in self._held}
        return next((lock.name for lock in locks if lock.name in held), locks[0].name)

    def problem(self, locks: Sequence[Unlock]) -> str:
        """Why none of these, which are the names of one lock, will be released; empty if one will be."""
        held = [one for one in self._held if one.name in {lock.name for lock in locks}]
        if any(self._usual.get(one.url) == one.prefix for one in held):
            return ""
        if not held:
            places = " and ".join(map(masked, self._usual))
            return f"is not held at {places}: Laravel has it elsewhere (lock_url), or it has expired"
        [one, *_] = held
        place = f"{one.prefix + one.name!r} at {masked(one.url)}"
        return f"is held as {place}, where no worker looks for it: {self._advice(one)}"

    def of_class(self, job: str, display_name: str) -> str:
        """The name of a lock that is held by a job of this class; empty if there is none."""
        starts = [name.removesuffix(":") for name in names_of(job, display_name, "")]
        held = (one.name for one in self._held if one.name.startswith(tuple(starts)))
        return next((name for name in held if any(_is_of(name, start) for start in starts)), "")

    def _advice(self, found: Found) -> str:
        if found.url not in self._usual:
            return "set lock_url to the URL in control_url"
        settings = self._stores.settings
        if kind_of(found.url) == kind_of(settings.control_url or settings.url):
            return f"set restart_key = {found.prefix}illuminate:queue:restart"
        return f"its prefix should be {self._usual[found.url]!r}, from prefix and restart_key"

    @cached_property
    def _held(self) -> list[Found]:
        settings = self._stores.settings
        urls = dict.fromkeys((*self._usual, settings.control_url))
        return [one for url in urls if url for one in _at(url, self._keys_at(url))]

    def _keys_at(self, url: str) -> Iterable[str]:
        try:
            return self._stores.locks_at(url).all_keys()
        except StoreError:
            return ()  # a user who may not read them; other findings report what is wrong with the store


def _at(url: str, keys: Iterable[str]) -> Iterator[Found]:
    for key in keys:
        prefix, mark, rest = key.partition(PREFIX)
        yield Found(mark + rest, prefix, url)


def _is_of(name: str, start: str) -> bool:
    """Whether the name goes on after that of the class: ``App\\Jobs\\Sync`` begins ``App\\Jobs\\SyncOrder``, too."""
    return name.startswith(start) and not re.match(r"[A-Za-z_\\]", name[len(start) :])
