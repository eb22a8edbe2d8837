"""Check what ``wait_replicas`` asks for: how many replicas answer, what that protects from, and what it costs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from statistics import median

from queuepool.config.values import ALL
from queuepool.errors import StoreDenied, StoreError
from queuepool.stores.factory import Stores, keys_of
from queuepool.stores.finding import Grade
from queuepool.stores.redis.replicas import followers

#: writes by which the price is measured, and milliseconds that replicas have for each
_WRITES, _WITHIN = 9, 1000


def inspect_replicas(stores: Stores) -> Iterator[tuple[Grade, str]]:
    """The findings about the replicas; none if nothing waits for them."""
    wanted = stores.settings.wait_replicas
    if not wanted:
        return
    there = _there(stores)
    if there is None and wanted == ALL:
        yield Grade.FAIL, "wait_replicas = all counts replicas by INFO, which the user may not run (ACL): add +info"
        return
    needed = max(there or 0, 1) if wanted == ALL else int(wanted)
    try:
        reached, price = _waited(stores, needed)
    except StoreError as error:
        yield Grade.FAIL, f"wait_replicas = {wanted} needs WAIT, which the server refuses: {error}"
        return
    if there is not None:
        there = max(there, reached)  # before the first write none has confirmed anything
    yield from _findings(f"wait_replicas = {wanted}", needed, there, reached, price)


def _there(stores: Stores) -> int | None:
    """How many replicas follow; ``None`` if the user may not ask."""
    try:
        return followers(stores.client.blocking("INFO", "replication"))
    except StoreDenied:
        return None


def _waited(stores: Stores, needed: int) -> tuple[int, float]:
    """How many replicas had the last of some writes, and the median of the seconds that they took."""
    key = f"{keys_of(stores.settings).beginnings[0]}check:{secrets.token_hex(6)}:text"
    reached, times = 0, list[float]()
    for _ in range(_WRITES):
        stores.client.command("SET", key, 1, "EX", 60)
        began = time.perf_counter()
        reached = int(stores.client.command("WAIT", needed, _WITHIN))
        times.append(time.perf_counter() - began)
        if reached < needed:
            break
    return reached, median(times)


def _findings(what: str, needed: int, there: int | None, reached: int, price: float) -> Iterator[tuple[Grade, str]]:
    known = "unknown" if there is None else there
    if reached < needed:
        words = f"{what}: {needed} must answer, and {reached} do: until then nothing is pushed or run"
        yield Grade.FAIL, f"{words} (replicas: {known})"
        return
    words = f"{needed} of {known} have all that is pushed, reserved or settled, {price * 1000:.2f} ms later"
    yield Grade.OK, f"{what}: {words}"
    if there is None:
        yield (
            Grade.WARN,
            f"{what}: how many replicas there are is unknown, as the user may not run INFO (ACL): add +info",
        )
    elif needed < there:
        words = "a crash of the primary then loses nothing, but a failover by hand or by mistake may: set all"
        yield Grade.WARN, f"{what} of {there}: {words}"
    else:
        yield Grade.WARN, f"{what}: if one of these {there} is lost, nothing is pushed or run until it is back"
