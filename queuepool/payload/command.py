"""Laravel's object jobs: their arguments, and what else PHP expects of the worker that runs them.

Source: Bus/Queueable.php, Bus/Batchable.php, Queue/CallQueuedHandler.php (8.83 to 13.x).

Some carry another object: queued listeners, mailables, notifications, broadcast events. All jobs of such a kind share
one class of Laravel's; the application's own class is their display name.
Source: Events/CallQueuedListener.php, Mail/SendQueuedMailable.php, Notifications/SendQueuedNotifications.php,
Broadcasting/BroadcastEvent.php (8.83 to 13.x).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from queuepool.errors import BadArguments
from queuepool.payload.encrypter import MARK, NO_KEY, CannotDecrypt, Encrypter, decrypted
from queuepool.payload.envelope import OBJECT_JOBS, Payload
from queuepool.payload.php_unserialize import PhpDataRefused, PhpObject, PhpValue, parse, parse_object
from queuepool.payload.wrappers import CLAIMANTS, LISTENER, UNIQUE_BROADCAST, Claim, Offer

_Properties: TypeAlias = "Mapping[str, PhpValue]"
_MODEL = "Illuminate\\Contracts\\Database\\ModelIdentifier"
#: Laravel's bookkeeping and the job's settings, which are not arguments
_NOT_ARGUMENTS = frozenset((
    "job", "connection", "queue", "delay", "afterCommit", "middleware",
    "chained", "chainConnection", "chainQueue", "chainCatchCallbacks", "batchId", "fakeBatch",
    "messageGroup", "deduplicator", "debounceOwner", "uniqueLockOwner", "uniqueFor",
    "tries", "timeout", "backoff", "maxExceptions", "failOnTimeout", "retryUntil", "deleteWhenMissingModels",
    "shouldBeEncrypted",
))  # fmt: skip
#: the key in which a command names the owner of its lock, and its value if there is none
_OWNER, _NOBODY = '"uniqueLockOwner";s:', '"uniqueLockOwner";s:0:'
#: what PHP has when nothing is set
_EMPTY: tuple[object, ...] = (None, "", False, [], {})


class ObjectCommand(NamedTuple):
    """An object job. What a Python worker cannot carry out is only described."""

    class_name: str
    arguments: dict[str, PhpValue]
    #: how many jobs follow in its chain
    chained: int = 0
    #: whether its chain has failure callbacks
    catches: bool = False
    #: the id of its batch; empty if it has none
    batch: str = ""
    #: whether a later dispatch may have replaced it
    debounced: bool = False
    middleware: tuple[PhpValue, ...] = ()
    #: whether it has no chain, no batch, no debounce and no middleware
    is_alone: bool = True
    #: the owner of its unique lock, set at its dispatch (from 13.24); empty if unknown
    owner: str = ""
    #: the unique lock that it claims to hold, if it carries another object
    claim: Claim | None = None


class Commands:
    """Reads commands; keeps the last one, as an attempt needs it several times.

    Without an ``encrypter`` there is no key, and encrypted commands are refused.
    """

    def __init__(self, encrypter: Encrypter | None = None) -> None:
        self._encrypter = encrypter
        self._last: tuple[Payload, ObjectCommand] | None = None

    def of(self, payload: Payload) -> ObjectCommand:
        """The command of an object job. Raises ``BadArguments``."""
        last = self._last  # read once: two threads may ask
        if last is None or last[0] is not payload:
            last = self._last = payload, command_of(payload.data, self._encrypter)
        return last[1]

    def data_of(self, payload: Payload) -> Any:
        """A handler's arguments: an object job's properties, any other job's data. Raises ``BadArguments``."""
        if payload.options.job in OBJECT_JOBS:
            return self.of(payload).arguments
        data = payload.data
        return decrypted(payload.name, data, self._encrypter) if type(data) is dict and MARK in data else data


def command_of(data: object, encrypter: Encrypter | None = None) -> ObjectCommand:
    """The command in an object job's ``data``, decrypted if necessary. Raises ``BadArguments``."""
    fields: Mapping[str, Any] = data if isinstance(data, dict) else {}
    name, text = str(fields.get("commandName", "an object job")), fields.get("command")
    if not isinstance(text, str):
        raise BadArguments(name, "its data has no command")
    try:
        return _described(parse_object(_decrypted(text, encrypter) if is_encrypted(text) else text))
    except (PhpDataRefused, CannotDecrypt) as error:
        raise BadArguments(name, error) from error


def may_have_owner(data: object) -> bool:
    """Whether an object job's ``data`` may name the owner of its unique lock; a quick test before reading it."""
    command = data.get("command") if isinstance(data, dict) else None
    return isinstance(command, str) and (is_encrypted(command) or (_OWNER in command and _NOBODY not in command))


def is_encrypted(command: str) -> bool:
    """Whether Laravel would decrypt this command first. Source: CallQueuedHandler.php, getCommand (8.83)."""
    return not command.startswith("O:")


def _decrypted(command: str, encrypter: Encrypter | None) -> str:
    if encrypter is None:
        raise CannotDecrypt(NO_KEY)
    return encrypter.decrypt(command)


def _described(job: PhpObject) -> ObjectCommand:
    own = job.properties
    offer = offer_of(job)
    arguments = offer or {name: value for name, value in own.items() if name not in _NOT_ARGUMENTS}
    if len(arguments) == len(own):  # a class with SerializesModels omits what is not set
        return ObjectCommand(job.class_name, arguments)
    batch, owner = own.get("batchId"), own.get("uniqueLockOwner")
    parts = (
        len(_items(own.get("chained"))),
        own.get("chainCatchCallbacks") not in _EMPTY,
        batch if isinstance(batch, str) else "",
        own.get("debounceOwner") not in _EMPTY,
        _items(own.get("middleware")),
    )
    owned = owner if isinstance(owner, str) else ""
    return ObjectCommand(job.class_name, arguments, *parts, not any(parts), owned, claim_of(job))


def _items(value: PhpValue) -> tuple[PhpValue, ...]:
    """A PHP array's values; none for anything else."""
    if isinstance(value, dict):
        return tuple(value.values())
    return tuple(value) if isinstance(value, list) else ()


def offer_of(job: PhpObject) -> Offer | None:
    """What a job that carries another object offers to its handler; ``None`` for any other job."""
    make = _OFFERS.get(job.class_name)
    return Offer(make(job.properties)) if make else None


def claim_of(job: PhpObject) -> Claim | None:
    """The unique lock that a queued listener (from 12.50) or a unique broadcast claims to hold.

    Source: Events/Dispatcher.php, propagateListenerOptions; Bus/UniqueLock.php, getKey (13.x).
    """
    own = job.properties
    is_unique = own.get("shouldBeUnique") is True or job.class_name == UNIQUE_BROADCAST
    if job.class_name not in CLAIMANTS or not is_unique:
        return None
    return Claim(_as_text(own.get("uniqueId")), own.get("shouldBeUniqueUntilProcessing") is True)


def _as_text(value: PhpValue) -> str | None:
    """The value as PHP converts it to a string; ``None`` for an object, whose ``__toString`` only PHP can call."""
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
    """An object's properties; any other value unchanged."""
    return _mapping(value.properties) if isinstance(value, PhpObject) else value


def _mapping(properties: _Properties) -> dict[int | str, PhpValue]:
    return {str(name): value for name, value in properties.items()}


def _listed(data: PhpValue) -> list[PhpValue]:
    """A listener's arguments, which old versions serialized twice. Raises ``PhpDataRefused``."""
    found = parse(data) if isinstance(data, str) else data
    if isinstance(found, dict):
        return list(found.values())
    if not isinstance(found, list):
        raise PhpDataRefused("a listener without a list of arguments")
    return found


def _notifiables(value: PhpValue) -> PhpValue:
    """Those to be notified: each model as its class and key, any other object as its properties."""
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
