"""Where the unique locks are that waiting jobs tell of, and those that they do not tell of: for ``check --peek``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from queuepool.config.connections import lock_urls_of
from queuepool.config.urls import kind_of, masked
from queuepool.errors import StoreError
from queuepool.payload.ending import Unlock
from queuepool.payload.unique_locks import PREFIX, names_of
from queuepool.stores.control import lock_prefix_of
from queuepool.stores.factory import Stores


class Found(NamedTuple):
    """A lock that is held: its name, what comes before it in its key, and where."""

    name: str
    prefix: str
    url: str


class LockSearch:
    """Reads all unique locks of the places that are known, once, whatever prefix they have."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        settings = stores.settings
        #: the prefix that a lock needs, for each place in which it is released
        self._usual = {url: lock_prefix_of(settings, kind_of(url)) for url in (settings.url, *lock_urls_of(settings))}

    def name(self, locks: Sequence[Unlock]) -> str:
        """That of these names of one lock by which it is held; the first if it is not."""
        held = {one.name for one in self._held}
        return next((lock.name for lock in locks if lock.name in held), locks[0].name)

    def problem(self, locks: Sequence[Unlock]) -> str:
        """Why none of these, which are the names of one lock, will be released; empty if one will be."""
        held = [one for one in self._held if one.name in {lock.name for lock in locks}]
        if any(self._usual.get(one.url) == one.prefix for one in held):
            return ""
        if not held:
            places = " and ".join(map(masked, self._usual))
            return f"is not held at {places}: Laravel has it elsewhere (lock_url), or its time is over"
        [one, *_] = held
        return (
            f"is held as {one.prefix + one.name!r} at {masked(one.url)}, where nobody looks for it: {self._advice(one)}"
        )

    def of_class(self, job: str, display_name: str) -> str:
        """The name of a lock that is held by a job of this class; empty if there is none."""
        starts = [name.removesuffix(":") for name in names_of(job, display_name, "")]
        held = (one.name for one in self._held if one.name.startswith(tuple(starts)))
        return next((name for name in held if any(_is_of(name, start) for start in starts)), "")

    def _advice(self, found: Found) -> str:
        if found.url not in self._usual:
            return "set lock_url, to the URL that control_url has"
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
            return ()  # a user without the right to look; what is wrong with the store, other findings say


def _at(url: str, keys: Iterable[str]) -> Iterator[Found]:
    for key in keys:
        prefix, mark, rest = key.partition(PREFIX)
        yield Found(mark + rest, prefix, url)


def _is_of(name: str, start: str) -> bool:
    """Whether the name goes on after that of the class: ``App\\Jobs\\Sync`` begins ``App\\Jobs\\SyncOrder``, too."""
    return name.startswith(start) and not re.match(r"[A-Za-z_\\]", name[len(start) :])
