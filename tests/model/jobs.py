"""A payload as the scripts see it: bytes with a count in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Job:
    """``attempts`` as they are written, between all the other bytes; '' where the payload has none.

    ``odd``: why it cannot be a job.
    """

    head: bytes
    attempts: bytes = b""
    tail: bytes = b""
    odd: str = ""

    @property
    def raw(self) -> bytes:
        return self.head + self.attempts + self.tail

    def begun(self) -> Job:
        """One attempt more; where there were none they come first."""
        if self.attempts:
            return self.counting(self.count + 1)
        rest = re.sub(rb"^\s*{\s*", b"", self.head)
        return Job(b'{"attempts":', b"1", (b"" if rest.startswith(b"}") else b",") + rest)

    def unbegun(self) -> Job:
        return self.counting(max(self.count - 1, 0))

    def counting(self, attempts: int) -> Job:
        return replace(self, attempts=b"%d" % attempts)

    @property
    def count(self) -> int:
        """Null is none, and so is what is below zero; a text may be a count."""
        words = self.attempts.strip(b'"')
        return 0 if words == b"null" else max(int(words), 0)

    def salted(self) -> Job:
        """With the space that tells it from its twin."""
        return replace(self, head=re.sub(rb"^(\s*.?)", rb"\1 ", self.head, count=1, flags=re.DOTALL))
