"""What must be written when a job ends, besides its removal: computed from its payload and the settings alone.

So the steward, which has no handlers, reaches the same result as the worker that died.

The outcome is a job that tells Laravel how one of its jobs ended here, so that it continues the chain and counts the
batch. Only Laravel can do that: the next job's tries, timeout, lock and encryption are in PHP classes, and callbacks
are PHP closures. It resolves ``CLASS@METHOD`` and calls it with the payload's data (docs/laravel.md has the class).
"""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import BadArguments, NeedsLaravel
from queuepool.log.tracebacks import summary
from queuepool.payload.command import Commands, ObjectCommand, may_have_owner
from queuepool.payload.encrypter import encrypter_of
from queuepool.payload.envelope import CONTEXT, MAX_BYTES, OBJECT_JOB, Envelope, Payload, encode
from queuepool.payload.lease import NOTHING, Ending, Outcome, Unlock
from queuepool.payload.php_unserialize import PhpObject, PhpValue
from queuepool.payload.signing import Signer, signer_of
from queuepool.payload.unique_locks import is_own, names_of, said_in, without_lock
from queuepool.payload.wrappers import CLAIMANTS, Claim
from queuepool.settlement.verdict import Locks

SKIP_IF_CANCELLED = "Illuminate\\Queue\\Middleware\\SkipIfBatchCancelled"
#: the middleware that our workers carry out; ``jobs.php_middleware`` refuses what of it only PHP knows
_CARRIED_OUT = (
    SKIP_IF_CANCELLED,
    "Illuminate\\Queue\\Middleware\\WithoutOverlapping",
    "Illuminate\\Queue\\Middleware\\RateLimited",
    "Illuminate\\Queue\\Middleware\\RateLimitedWithRedis",
    "Illuminate\\Queue\\Middleware\\ThrottlesExceptions",
    "Illuminate\\Queue\\Middleware\\ThrottlesExceptionsWithRedis",
    "Illuminate\\Queue\\Middleware\\Skip",
)
#: a receipt has one of these if anything may follow from its job
_OBJECT_JOB, _CONTEXT = OBJECT_JOB.rpartition("\\")[2].encode(), CONTEXT.encode()
#: keys of a payload that concern its own job alone: Horizon's, and what Laravel does if a model is missing
_OF_THE_JOB = frozenset(("type", "tags", "silenced", "retry_of", "deleteWhenMissingModels"))
#: a Laravel worker that dies must not lose the rest of a chain
_OPTIONS = MappingProxyType({"maxTries": 5, "backoff": "1,5,30"})
#: most bytes of an outcome: even the largest job has one, and only Laravel reads it
_LIMIT = 4 * MAX_BYTES
#: most characters of an error in an outcome
_MOST = 4000
_UNKNOWN_ID = "only PHP knows the id of its unique lock, so the lock stays held: set outcomes"


class Endings:
    """What follows from the ends of one connection's jobs."""

    def __init__(self, connection: ConnectionSettings, commands: Commands) -> None:
        self._connection = connection
        self.commands = commands
        self._signer = signer_of(connection.signing, connection.signing_keys)
        places = connection.url, connection.lock_url, connection.control_url
        self._reachable = {kind_of(url) for url in places if url}

    @staticmethod
    def may_follow(receipt: bytes) -> bool:
        """Whether anything may follow, by a glance at a job's bytes."""
        return _OBJECT_JOB in receipt or _CONTEXT in receipt

    def refusal(self, payload: Payload) -> NeedsLaravel | None:
        """Why a worker must not begin an object job although it has a handler. Raises ``BadArguments``."""
        always, lacking = self._lacking(payload) if self._connection.foreign != "ignore" else ([], [])
        return NeedsLaravel(payload.name, lacking, by_outcome=not always) if lacking else None

    def dropped(self, payload: Payload) -> str:
        """What ``foreign = ignore`` drops of an object job that runs; empty if nothing."""
        try:
            _, lacking = self._lacking(payload) if self._connection.foreign == "ignore" else ([], [])
        except BadArguments:
            return ""
        return f"it {' and '.join(lacking)}: dropped by foreign = ignore" if lacking else ""

    def _lacking(self, payload: Payload) -> tuple[list[str], list[str]]:
        """What cannot be carried out even with an outcome, and all that cannot now. Raises ``BadArguments``."""
        if payload.options.job != OBJECT_JOB or (command := self.commands.of(payload)).is_alone:
            return [], []
        always = _always_lacking(command)
        return always, always if self._connection.outcomes else [*always, *_lacking_without_outcomes(command)]

    def batch_of(self, payload: Payload, *, if_skipped: bool = False) -> str:
        """The id of an object job's batch; empty if it has none. Raises ``BadArguments``.

        ``if_skipped``: only if the job asks to be skipped once its batch is cancelled.
        """
        if payload.options.job != OBJECT_JOB:
            return ""
        command = self.commands.of(payload)
        is_skipped = SKIP_IF_CANCELLED in map(_class_of, command.middleware)
        return command.batch if is_skipped or not if_skipped else ""

    def warning(self, payload: Payload) -> str:
        """What is lost although the job may run; empty if nothing is."""
        if not _may_say_more(payload) or self._connection.outcomes:
            return ""
        lock = self._lock(payload)
        if lock is None:
            return _UNKNOWN_ID if _is_id_unknown(self.claim(payload)) else ""
        if lock.store in self._reachable:
            return ""
        return (
            f"its unique lock {lock.name!r} is in the cache store {lock.store!r}, which is out of reach: it stays held"
        )

    def after(self, payload: Payload, error: BaseException | None = None, locks: Locks = None) -> Ending:
        """What to write with the end of this job, which succeeded, or failed for good with ``error``.

        ``locks`` is from its policy.
        """
        if locks is None and not _may_say_more(payload):
            return NOTHING
        held = self.held_locks(payload, locks)
        within_reach = tuple(lock for lock in held if not lock.store or lock.store in self._reachable)
        stays = len(within_reach) < len(held) or (locks is None and _is_id_unknown(self.claim(payload)))
        if not held and not stays and locks is None and not self._must_tell(payload, error):
            return NOTHING  # the case of nearly all object jobs
        # Before 11.39 a payload does not say whether it has a lock, and only Laravel can tell.
        unlocked = not stays and (locks is not None or bool(self.named_locks(payload)))
        return Ending(self._outcome(payload, error, unlocked=unlocked, must=stays), within_reach)

    def held_locks(self, payload: Payload, locks: Locks = None) -> tuple[Unlock, ...]:
        """The unique locks to release: those that the policy names, else those that the payload does.

        Several are the names that one lock may have.
        """
        if locks is not None:
            return tuple(map(Unlock, locks))
        return self.named_locks(payload) or self._guessed(payload)

    def named_locks(self, payload: Payload) -> tuple[Unlock, ...]:
        """The lock that the context names; of a job that carries another object, the names its lock may have."""
        lock = self._lock(payload)
        if lock:
            return (lock,)
        claim = self.claim(payload)
        if claim is None or claim.identity is None:
            return ()
        return self._locks(payload, claim.identity)

    def claim(self, payload: Payload) -> Claim | None:
        """The unique lock of a job that carries another object; ``None`` for all other jobs."""
        command = self._read(payload) if _class_in(payload) in CLAIMANTS else None
        return command.claim if command else None

    def _outcome(self, payload: Payload, error: BaseException | None, *, unlocked: bool, must: bool) -> Outcome | None:
        queue, class_name = self._connection.outcomes, self._connection.outcome_class
        if not queue or payload.options.job != OBJECT_JOB or not (must or self._must_tell(payload, error)):
            return None
        raw = outcome_of(payload, queue, class_name, error, unlocked=unlocked, signer=self._signer)
        return Outcome(queue, raw)

    def _must_tell(self, payload: Payload, error: BaseException | None) -> bool:
        """Whether Laravel has anything left to do for an ended object job, and can be told."""
        if not self._connection.outcomes:
            return False
        try:
            command = self.commands.of(payload)
        except BadArguments:
            return True  # perhaps only Laravel can read it, or the worker that ran it
        if error is None:
            return bool(command.chained or command.batch)
        return bool(command.catches or command.batch or self._connection.php_failed)

    def _guessed(self, payload: Payload) -> tuple[Unlock, ...]:
        """The likely names of a lock of which the payload gives only the owner, as ``Schedule::job()`` does.

        The class is taken to have no ``uniqueId()``. The owner protects other jobs' locks from a wrong guess.
        """
        command = self._read(payload) if may_have_owner(payload.data) else None
        if command is None or not command.owner or command.claim:
            return ()
        return self._locks(payload, str(command.arguments.get("uniqueId", "")))

    def _locks(self, payload: Payload, identity: str) -> tuple[Unlock, ...]:
        """The lock, under each name that it may have."""
        names = names_of(_class_in(payload), payload.options.display_name, identity)
        return tuple(Unlock(name, self._owner(payload)) for name in names)

    def _lock(self, payload: Payload) -> Unlock | None:
        """The job's own lock in its context, not one inherited from the job that dispatched it."""
        lock = said_in(payload.context)
        if lock is None:
            return None
        names = payload.name, payload.options.display_name, _class_in(payload)
        return lock if is_own(lock, names, self._owner(payload)) else None

    def _owner(self, payload: Payload) -> str:
        command = self._read(payload)
        return command.owner if command else ""

    def _read(self, payload: Payload) -> ObjectCommand | None:
        """The command of an object job; ``None`` for any other job, and for one that cannot be read."""
        try:
            return self.commands.of(payload) if payload.options.job == OBJECT_JOB else None
        except BadArguments:
            return None


def _class_in(payload: Payload) -> str:
    """The class of an object job, even if the job is named after what it carries; empty for any other job."""
    found = payload.data.get("commandName") if isinstance(payload.data, dict) else None
    return found if isinstance(found, str) else ""


def _is_id_unknown(claim: Claim | None) -> bool:
    """Whether the payload says that the job holds a lock, but not under which id."""
    return claim is not None and claim.identity is None


def _may_say_more(payload: Payload) -> bool:
    """Whether the payload can name a chain, a batch or a lock; for most jobs no more needs to be checked."""
    return payload.context is not None or payload.options.job == OBJECT_JOB


def _always_lacking(command: ObjectCommand) -> list[str]:
    lacking = ["was debounced"] if command.debounced else []
    strange = [name for one in command.middleware if (name := _class_of(one)) not in _CARRIED_OUT]
    return [*lacking, f"has the middleware {', '.join(strange)}"] if strange else lacking


def _lacking_without_outcomes(command: ObjectCommand) -> list[str]:
    found = [f"is followed by {command.chained} more of its chain"] if command.chained else []
    if command.catches:
        found.append("has callbacks for a failure of its chain")
    return [*found, "belongs to a batch"] if command.batch else found


def _class_of(value: PhpValue) -> str:
    return value.class_name if isinstance(value, PhpObject) else repr(value)[:40]


def commands_of(connection: ConnectionSettings) -> Commands:
    """The reader of object jobs; it decrypts with the connection's keys, if there are any."""
    return Commands(encrypter_of(connection.cipher, connection.app_keys))


def outcome_of(
    payload: Payload, queue: str, class_name: str, error: BaseException | None, *, unlocked: bool, signer: Signer | None
) -> bytes:
    """The payload to push to ``queue``: the job succeeded, or was lost if there is an ``error``.

    It has the job's own uuid, by which Laravel counts the job in its batch. ``unlocked``: the job's unique lock was
    released.
    """
    data = dict(payload.data) if isinstance(payload.data, dict) else {}
    data["unlocked"] = unlocked
    if error is not None:
        data["error"] = summary(error)[:_MOST].encode("utf-8", "replace").decode()
    envelope = Envelope(
        time.time(),
        options=_OPTIONS,
        display_name=f"{payload.options.display_name} (outcome)",
        extra=_inherited(payload),
        sign=partial(signer.sign, queue, limit=_LIMIT) if signer else None,
        limit=_LIMIT,
    )
    name = f"{class_name}@{'succeeded' if error is None else 'lost'}"
    return encode(name, data, envelope, uuid=payload.uuid or payload.id)[1]


def _inherited(payload: Payload) -> dict[str, object]:
    """What Laravel's next steps inherit from the job: its context, trace and tenant, and whatever else the application
    has put into the payload with ``Queue::createPayloadUsing``.

    Without the job's unique lock: the outcome does not hold it, and its children must not take it for theirs.
    """
    found = {key: value for key, value in payload.extra.items() if key not in _OF_THE_JOB}
    context = without_lock(payload.context)
    return found | {CONTEXT: context} if context else found
