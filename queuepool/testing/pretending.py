"""``as_current``: ``current()`` in a plain call of a handler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from queuepool.errors import BadPayload
from queuepool.jobs.current_job import Current, running, set_current
from queuepool.payload.envelope import CONTEXT, payload_of
from queuepool.payload.php_values import PhpValue, serialize


@dataclass(slots=True)
class _Pretended(Current):
    is_stopping: bool = False

    @property
    def stopping(self) -> bool:
        return self.is_stopping


@contextmanager
def as_current(
    *,
    job_id: str = "test",
    name: str = "test",
    queue: str = "default",
    attempt: int = 1,
    stopping: bool = False,
    context: Mapping[str, PhpValue] = MappingProxyType({}),
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Current]:
    """Let ``current()`` return a job of this id, name, queue and attempt in the block, as in a worker.

    Returns it: its ``verdict`` shows what the handler has decided, as ``Release(10)``, ``Fail(error)`` or ``Delete()``;
    ``None`` = nothing. ``context``: what the job came with. ``extra``: further fields of its payload. Raises
    ``ValueError`` for an attempt below 1, and for an id or name that no job can have.
    """
    if isinstance(attempt, bool) or not isinstance(attempt, int) or attempt < 1:
        raise ValueError(f"attempt cannot be {attempt!r}: the first is 1")
    texts = {key: serialize(value) for key, value in context.items()}
    fields = {**extra, "job": name, "uuid": job_id, "id": job_id, "attempts": attempt}
    try:
        payload = payload_of({**fields, CONTEXT: {"data": texts, "hidden": {}}} if texts else fields, b"")
    except BadPayload as error:
        wrong = {"id": ("job_id", job_id), "job": ("name", name)}.get(error.reason, (error.reason, None))
        raise ValueError("{} cannot be {!r}".format(*wrong)) from None
    outer = running()
    set_current(made := _Pretended(payload, queue, is_stopping=stopping))
    try:
        yield made
    finally:
        set_current(outer)
