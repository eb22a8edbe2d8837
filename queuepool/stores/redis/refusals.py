"""Translates a server's refusals and redis-py's exceptions into our errors; refuses clusters and Sentinels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import redis

from queuepool.errors import LoginRefused, RefusesNew, StoreDenied, StoreDown, StoreError, StoreUnfit, TagRetired
from queuepool.stores import certificates
from queuepool.stores.redis.scripts import script

#: redis-py's classes for temporary errors; it removes the code from their text
_GONE = (
    redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, redis.exceptions.MasterDownError,
)  # fmt: skip
#: redis-py's classes for errors that only a cluster's node returns
_CLUSTERS = (
    redis.exceptions.AskError, redis.exceptions.TryAgainError, redis.exceptions.ClusterDownError,
    redis.exceptions.ClusterCrossSlotError,
)  # fmt: skip
#: words in the errors of a server that may soon recover
_PASSING = (
    "LOADING", "MASTERDOWN", "READONLY", "MISCONF", "NOREPLICAS", "BUSY", "UNBLOCKED", "max number of clients",
    "LATE",
)  # fmt: skip

_KINDS = {
    "cluster": "this is a Redis Cluster node, and clusters are not supported yet: name a standalone server",
    "sentinel": "this is a Sentinel, which holds no jobs and is not supported yet: name the server that it monitors",
}
_CLUSTER_MESSAGES = re.compile("cluster mode|cluster node|hash to the same slot|Hash slot not served|different slots")
_UNKNOWN = re.compile(r"unknown command [`'](\w+)")
#: how a server says what its user may not do in a script
_DENIED = re.compile("executing the script can't|ACL failure in script|NOPERM")


def translated(error: redis.RedisError, verb: str, names: Sequence[Any], source: str = "") -> StoreError:
    """A redis-py exception as one of ours; it never contains the URL, and so never the password.

    ``verb``: the command, or the script with this ``source``; ``names``: its keys or channels.
    """
    text = certificates.explained(" ".join(str(error).split()) or type(error).__name__)
    if text.startswith("RETIRED"):
        return TagRetired(text)
    if isinstance(error, redis.AuthenticationError):
        return LoginRefused(f"the server rejected the user or password: {text}")
    is_cluster = isinstance(error, _CLUSTERS) and not isinstance(error, redis.exceptions.MasterDownError)
    if found := _unfit_by(text, is_cluster=is_cluster):
        return found
    if isinstance(error, redis.exceptions.NoPermissionError) or _DENIED.search(text):
        return StoreDenied(denial(text, verb, names, source))
    if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in text:
        return RefusesNew(text)
    if isinstance(error, _GONE) or any(word in text for word in _PASSING):
        return StoreDown(text)
    return StoreError(text)


def denial(text: str, verb: str, names: Sequence[Any], source: str) -> str:
    """What the server's ACL forbids, by name. Before 7.2, servers name only the line of a command in a script."""
    if "key" in text or "channel" in text:
        return f"the user may not use a key or channel of {verb!r}: {' '.join(map(str, names))} (ACL)"
    commands = re.findall(r"the '(\S+)' command", text)
    line = re.search(r"@user_script:(\d+)", text)
    if line and source and not commands:
        commands = re.findall(r"redis\.p?call(?:\(|, )'(\w+)'", source.splitlines()[int(line[1]) - 1])
    if source and not commands:
        return f"the user may not run a command that {verb!r} needs (ACL): `queuepool check` names it"
    return f"the user may not run {' or '.join(map(repr, dict.fromkeys(commands or [verb])))} (ACL)"


def explained(text: str, name: str) -> str:
    """The text for a server's error that this script has caught."""
    return denial(text, name, (), script(name)[0]) if _DENIED.search(text) else text


def examine(mode: str) -> None:
    """Raise ``StoreUnfit`` if the server's ``redis_mode`` is unsuitable."""
    if mode in _KINDS:
        raise StoreUnfit(_KINDS[mode])


def _unfit_by(text: str, *, is_cluster: bool) -> StoreUnfit | None:
    """The error, if this text means an unfit server; ``is_cluster``: only a cluster's node raises such an error."""
    if is_cluster or _CLUSTER_MESSAGES.search(text):
        return StoreUnfit(_KINDS["cluster"])
    if unknown := _UNKNOWN.search(text):
        kinds = "is it a Sentinel, or a proxy? Or was the command renamed there?"
        return StoreUnfit(f"the server has no command {unknown[1]}: {kinds}")
    return None
