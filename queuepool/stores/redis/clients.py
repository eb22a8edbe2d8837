"""Which client a connection's settings need: of one server, of a cluster, or of what sentinels call the primary."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from queuepool.config import sentinels
from queuepool.config.connections import home_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import is_cluster
from queuepool.stores.redis.client import RedisClient


def client_class(
    url: str, settings: ConnectionSettings, reply_timeout: float, prefix: str = ""
) -> Callable[..., RedisClient]:
    """What makes a client; with a ``reply_timeout`` it waits for replicas, if the settings say so."""
    kind: Any = _kind_of(url)
    about: dict[str, Any] = {"prefix": prefix or home_of(settings)} if is_cluster(url) else {}
    if settings.wait_replicas and reply_timeout:
        from queuepool.stores.redis.replicas import Replicas, replicated  # imported here: few wait for replicas

        about |= {"replicas": Replicas(settings.wait_replicas, reply_timeout / 2)}
        kind = replicated(kind)
    return partial(kind, **about)


def _kind_of(url: str) -> type[RedisClient]:
    if is_cluster(url):
        from queuepool.stores.redis.cluster import ClusterClient

        return ClusterClient
    if sentinels.is_of_sentinels(url):
        from queuepool.stores.redis.primary import PrimaryClient  # imported here: few have sentinels

        return PrimaryClient
    return RedisClient
