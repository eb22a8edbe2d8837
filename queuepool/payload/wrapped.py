"""Laravel's jobs that carry another object: queued listeners, mailables, notifications, broadcast events.

All jobs of a kind have one class; the application's own class is their display name.
Source: Events/CallQueuedListener.php, Mail/SendQueuedMailable.php, Notifications/SendQueuedNotifications.php,
Broadcasting/BroadcastEvent.php (8.83 to 13.x).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from queuepool.payload.php_unserialize import PhpDataRefused, PhpObject, PhpValue, parse
from queuepool.payload.wrappers import CLAIMANTS, LISTENER, UNIQUE_BROADCAST, Claim, Offer

_Properties: TypeAlias = "Mapping[str, PhpValue]"
_MODEL = "Illuminate\\Contracts\\Database\\ModelIdentifier"


def offer_of(job: PhpObject) -> Offer | None:
    """What a job that carries another object offers to its handler; ``None`` for any other job."""
    make = _OFFERS.get(job.class_name)
    return Offer(make(job.properties)) if make else None


def claim_of(job: PhpObject) -> Claim | None:
    """The unique lock that a queued listener (from 12.50), or a unique broadcast, says that it holds.

    Source: Events/Dispatcher.php, propagateListenerOptions; Bus/UniqueLock.php, getKey (13.x).
    """
    own = job.properties
    is_unique = own.get("shouldBeUnique") is True or job.class_name == UNIQUE_BROADCAST
    if job.class_name not in CLAIMANTS or not is_unique:
        return None
    return Claim(_as_text(own.get("uniqueId")), own.get("shouldBeUniqueUntilProcessing") is True)


def _as_text(value: PhpValue) -> str | None:
    """What PHP makes of it within a text; ``None`` for an object, whose ``__toString`` is in PHP."""
    if value is None or isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, float):
        return f"{value:.14g}"
    return str(value) if isinstance(value, (str, int)) else None


def _of_listener(job: _Properties) -> dict[str, PhpValue]:
    data = _listed(job.get("data"))
    return {**_of_event(data[0] if data else None), "method": job.get("method"), "data": data}


def _of_mailable(job: _Properties) -> dict[str, PhpValue]:
    return {"mailable": _opened(job.get("mailable"))}


def _of_notification(job: _Properties) -> dict[str, PhpValue]:
    return {
        "notification": _opened(job.get("notification")),
        "notifiables": _notifiables(job.get("notifiables")),
        "channels": job.get("channels"),
    }


def _of_broadcast(job: _Properties) -> dict[str, PhpValue]:
    return _of_event(job.get("event"))


def _of_event(event: PhpValue) -> dict[str, PhpValue]:
    return {"event": _opened(event), "event_class": event.class_name if isinstance(event, PhpObject) else None}


def _opened(value: PhpValue) -> PhpValue:
    """An object's properties; any other value as it stands."""
    return _mapping(value.properties) if isinstance(value, PhpObject) else value


def _mapping(properties: _Properties) -> dict[int | str, PhpValue]:
    return {str(name): value for name, value in properties.items()}


def _listed(data: PhpValue) -> list[PhpValue]:
    """A listener's arguments, which old versions serialized once more. Raises ``PhpDataRefused``."""
    found = parse(data) if isinstance(data, str) else data
    if isinstance(found, dict):
        return list(found.values())
    if not isinstance(found, list):
        raise PhpDataRefused("a listener without a list of arguments")
    return found


def _notifiables(value: PhpValue) -> PhpValue:
    """Each of those that are notified: a model as its class and key, another object as its properties."""
    if not isinstance(value, PhpObject):
        return value
    if value.class_name == _MODEL:
        keys = value.properties.get("id")
        return [{**_mapping(value.properties), "id": key} for key in (keys if isinstance(keys, list) else [keys])]
    items = value.properties.get("items")  # of a Collection
    return [_opened(item) for item in items] if isinstance(items, list) else [_opened(value)]


_OFFERS: Mapping[str, Callable[[_Properties], dict[str, PhpValue]]] = MappingProxyType({
    LISTENER: _of_listener,
    "Illuminate\\Mail\\SendQueuedMailable": _of_mailable,
    "Illuminate\\Notifications\\SendQueuedNotifications": _of_notification,
    "Illuminate\\Broadcasting\\BroadcastEvent": _of_broadcast,
    UNIQUE_BROADCAST: _of_broadcast,
})  # fmt: skip
