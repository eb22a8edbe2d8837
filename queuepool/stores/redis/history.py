"""The history in Redis: a hash for each bucket, which expires; the contract is ``stores.history.History``."""

from __future__ import annotations

from queuepool.stores.history import MAX_BYTES, MAX_TEXTS, Found, Kept
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys

#: buckets that one request reads
_BATCH = 20


class RedisHistory:
    """The history on one connection."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def keep(self, grain: str, bucket: int, writer: str, text: str, lifetime: float) -> None:
        self._client.script("keep_history", [self._keys.history(grain, bucket)], [writer, text, int(lifetime)])

    def sweep(self) -> None:
        """Redis does it."""

    def kept(self, grain: str, buckets: range) -> Found:
        texts, ignored = [], 0
        for first in range(0, len(buckets), _BATCH):
            batch = buckets[first : first + _BATCH]
            names = [self._keys.history(grain, bucket) for bucket in batch]
            left_out, *answers = self._client.script("read_history", names, [MAX_BYTES, MAX_TEXTS])
            ignored += left_out
            for bucket, words in zip(batch, answers, strict=True):
                pairs = zip(words[::2], words[1::2], strict=True)
                texts += [Kept(bucket, writer.decode("utf-8", "replace"), text) for writer, text in pairs]
        return Found(texts, ignored)
