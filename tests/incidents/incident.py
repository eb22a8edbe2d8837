"""An incident: what has happened, the one or two commands that answer it, what each must show, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.incidents.console import Told
from tests.incidents.scene import Scene

#: commands that may be needed
_MOST = 2
#: a line with those that were folded from it, or that belong to it
_ENTRY = re.compile(r"\n(?!  )")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has answered. ``only``: the page shows the lines that have one of these texts, by default all."""

    told: Told
    only: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """What matters of it; an ellipsis stands for the rest."""
        if not self.only:
            return self.told.text
        kept: list[str] = []
        for entry in _ENTRY.split(self.told.text):
            words = " ".join(entry.split())
            if any(text in words for text in self.only):
                kept.append(entry)
            elif kept[-1:] != ["…"]:
                kept.append("…")
        return "\n".join(kept)


@dataclass(frozen=True, slots=True)
class Incident:
    """``play`` sets the scene, and yields each answer; ``happened`` and ``then`` are in Markdown."""

    title: str
    happened: str
    play: Callable[[Scene], Iterator[Answer]]
    then: str


def answer(
    scene: Scene, line: str, *words: str, code: int = 0, without: Sequence[str] = (), only: Sequence[str] = ()
) -> Answer:
    """What the operator gets to see: it must exit with ``code``, and show all these words and none of the others."""
    told = scene.web1.console.types(line)
    shown = f"{line}: exit code {told.code}\n{told.text}"
    assert told.code == code, f"not {code}: {shown}"
    assert [] == told.lacks(words), f"lacks {told.lacks(words)}: {shown}"
    assert list(without) == told.lacks(without), f"has one of {without}: {shown}"
    return Answer(told, only)


def answers_of(incident: Incident, scene: Scene) -> list[Answer]:
    """Play it."""
    found = list(incident.play(scene))
    assert 1 <= len(found) <= _MOST, f"{incident.title}: {len(found)} commands"
    return found
