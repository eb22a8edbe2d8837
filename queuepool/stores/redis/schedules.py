"""Schedules' marks in a hash; the contract is ``stores.schedules.Schedules``."""

from __future__ import annotations

from collections.abc import Mapping

from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.schedules import MAX_MARK, MAX_OF_ALL, Due, Fired, Mark, Result, sound_marks


class RedisSchedules:
    """The schedules of one connection."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def begin(self, rules: Mapping[str, str], now: int) -> dict[str, Mark]:
        words = [word for pair in rules.items() for word in pair]
        texts = self._client.script("begin", [self._keys.schedules], [now, *words])
        return sound_marks(zip(rules, texts, strict=True))

    def fire(self, due: Due) -> Fired | None:
        names = [self._keys.schedules, self._keys.ready(due.queue), self._keys.notify(due.queue)]
        args = [due.name, due.at, due.payload]
        if due.lock:
            names.append(self._keys.lock(due.lock.name))
            args += due.lock.owner, due.lock.seconds
        answer = self._client.script("fire", names, args)
        before = Mark.from_text(answer[1]) if answer else None
        return Fired(Result(answer[0].decode()), before) if before else None

    def marks(self) -> dict[str, Mark]:
        words = self._client.script("read_texts", [self._keys.schedules], [MAX_MARK, MAX_OF_ALL])
        names = (name.decode("utf-8", "replace") for name in words[::2])
        return sound_marks(zip(names, words[1::2], strict=True))

    def forget(self, name: str) -> bool:
        return bool(self._client.command("HDEL", self._keys.schedules, name))
