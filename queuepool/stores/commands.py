"""Commands of operators to pools on any host, and the pools' answers: texts in books in the pools' store.

A command is for one instance of a pool. Its steward takes it out of the store before it carries it out, so that this
happens at most once: if the steward dies in between, no answer comes. A command is valid for ``LASTS`` seconds by the
store's clock, so the clocks of hosts do not matter. If the connection has signing keys, everything is signed; a text
that is copied back into the store is refused, by its id and by its time.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.payload.signing import Signer
from queuepool.stores.contract import NO_SECOND
from queuepool.stores.values import MAX_NOTE, MAX_TAKEN, Values

#: seconds for which a command may be carried out, and for which its text and the answers are kept
LASTS, _KEPT = 10.0, 60.0
#: most commands that wait for one pool, and most answers that wait for one operator
_MOST_COMMANDS, _MOST_ANSWERS = 100, 10_000
#: most characters of the name of a command's sender
_MOST_OF_SENDER = 200
#: the purpose of a command's signature
_PURPOSE = "command"
#: most bytes of an answer's words in JSON, and of those of all pools together, as they may come all at once
MAX_WORDS, MAX_OF_ALL_WORDS = MAX_NOTE - 1024, MAX_TAKEN - 64 * 1024


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """``verb`` with its ``details``, for the pool ``to``, by its instance; sent ``at``, in the store's Unix seconds."""

    to: str
    verb: str
    details: Mapping[str, Any]
    #: ``user@host``
    by: str
    at: float
    #: of all commands that one call of a verb has sent: it names the book in which the answers are expected
    batch: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> RemoteCommand:
        """Raises ``BadPayload`` for anything else."""
        match facts:
            case {
                "to": str(to), "verb": str(verb), "details": dict(details), "by": str(by), "at": float() | int() as at,
                "batch": str(batch), "id": str(id_),
            } if 0 <= at < NO_SECOND and _is_id(batch) and _is_id(id_):  # fmt: skip
                return cls(to, verb, details, by[:_MOST_OF_SENDER], float(at), batch, id_)
        raise BadPayload("not a command")


class CommandOutcome(StrEnum):
    """What became of a command."""

    DONE = "done"
    #: nothing was done
    REFUSED = "refused"
    #: nothing was done: the pool does not run the job
    NOT_HERE = "not here"
    #: an older version's word for ``UNKNOWN``
    FAILED = "failed"
    #: its master was told, and may do it yet
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What became of the command ``id``, in words."""

    id: str
    outcome: CommandOutcome
    words: str


class NoCommand(NamedTuple):
    """A text that cannot be carried out, and why not; ``command`` if it looks like one, only to be answered."""

    reason: str
    command: RemoteCommand | None = None


class CommandPost:
    """Sends commands and answers over the store of one connection; ``signer`` is that of its payloads, if any."""

    def __init__(self, values: Values, announce: Callable[[], None], signer: Signer | None) -> None:
        self._values = values
        self._announce = announce
        self._signer = signer

    # An operator's side

    def send(self, commands: Sequence[RemoteCommand]) -> list[str]:
        """Send them; returns what ``withdraw`` needs of each."""
        texts = [self._sealed(command) for command in commands]
        for command, text in zip(commands, texts, strict=True):
            self._values.note(_inbox(command.to), text, _MOST_COMMANDS, _KEPT)
        self._announce()
        return texts

    def withdraw(self, command: RemoteCommand, text: str) -> bool:
        """Take it back; ``False`` if its pool has already taken it."""
        return self._values.drop_note(_inbox(command.to), text)

    def answers(self, batch: str) -> Iterator[CommandAnswer]:
        """The answers that have come since the last call."""
        if not self._values.notes(_answers(batch), 1):  # most looks find none, and need no transaction
            return
        for text in self._values.take_notes(_answers(batch), _MOST_ANSWERS):
            match _object_in(text):
                case {"id": str(id_), "outcome": str(outcome), "words": str(words)} if outcome in list(CommandOutcome):
                    yield CommandAnswer(id_, CommandOutcome(outcome), words)

    # A pool's side

    def take(self, instance: str) -> Iterator[RemoteCommand | NoCommand]:
        """What was sent to this pool, in order; of a flood, only the last part."""
        for text in self._values.take_notes(_inbox(instance), _MOST_COMMANDS):
            try:
                yield self._opened(text)
            except BadPayload as refusal:
                yield NoCommand(refusal.reason, _unverified(text))

    def answer(self, command: RemoteCommand, outcome: CommandOutcome, words: str) -> None:
        """Answer the operator."""
        text = json.dumps(asdict(CommandAnswer(command.id, outcome, _fitted(words))))
        self._values.note(_answers(command.batch), text, _MOST_ANSWERS, _KEPT)

    def _sealed(self, command: RemoteCommand) -> str:
        body = json.dumps(asdict(command))
        return json.dumps(self._signer.seal(_PURPOSE, body) if self._signer else {"body": body})

    def _opened(self, text: bytes) -> RemoteCommand:
        sealed = strict_json.read_object(text)
        body = self._signer.opened(_PURPOSE, sealed) if self._signer else sealed.get("body")
        if not isinstance(body, str):
            raise BadPayload("not a command")
        return RemoteCommand.from_json(strict_json.read_object(body.encode("utf-8", "replace")))


def _unverified(text: bytes) -> RemoteCommand | None:
    try:
        body = strict_json.read_object(text).get("body")
        if not isinstance(body, str):
            return None
        return RemoteCommand.from_json(strict_json.read_object(body.encode("utf-8", "replace")))
    except BadPayload:
        return None


def _inbox(instance: str) -> str:
    return f"commands:{instance}"


def _answers(batch: str) -> str:
    return f"answers:{batch}"


def _fitted(words: str) -> str:
    """As much of them as an answer holds."""
    room = MAX_WORDS + 2  # the quotes
    if len(json.dumps(words)) <= room:
        return words
    sizes = accumulate(len(json.dumps(letter)) - 2 for letter in words)
    return words[: sum(1 for _ in takewhile(lambda size: size <= MAX_WORDS, sizes))]


def _is_id(text: str) -> bool:
    """Whether it looks like an id of ours: it becomes part of a key."""
    return 0 < len(text) <= 32 and set(text) <= set("0123456789abcdef")


def _object_in(text: bytes) -> Mapping[str, Any]:
    try:
        return strict_json.read_object(text)
    except BadPayload:
        return {}
