"""Redis servers that are unsuitable as a store: a node of a cluster, a Sentinel."""

from __future__ import annotations

import re

from queuepool.errors import StoreUnfit

_KINDS = {
    "cluster": "this is a node of a Redis Cluster, for which there is no client here yet: name a server of its own",
    "sentinel": "this is a Sentinel, which holds no jobs and is not asked yet: name the server that it watches",
}
_CLUSTER_MESSAGES = re.compile("cluster mode|cluster node|hash to the same slot|Hash slot not served|different slots")
_UNKNOWN = re.compile(r"unknown command [`'](\w+)")


def examine(mode: str) -> None:
    """Raise ``StoreUnfit`` if the server's ``redis_mode`` is unsuitable."""
    if mode in _KINDS:
        raise StoreUnfit(_KINDS[mode])


def by_message(text: str, *, is_cluster: bool) -> StoreUnfit | None:
    """The error for the text of a server's refusal, if any; ``is_cluster``: only a cluster's node refuses like that."""
    if is_cluster or _CLUSTER_MESSAGES.search(text):
        return StoreUnfit(_KINDS["cluster"])
    if unknown := _UNKNOWN.search(text):
        kinds = "is it a Sentinel, or a proxy? Or was the command renamed there?"
        return StoreUnfit(f"the server has no command {unknown[1]}: {kinds}")
    return None
