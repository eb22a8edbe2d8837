"""Phrases that read as translated do not come back into the source and its pages."""

from __future__ import annotations

import re

from tests.unit.test_architecture import PACKAGE, paths

#: each with what a native engineer writes
_PHRASES = {
    r"(?<!there )\b(is|was) no (?!longer\b|more\b|reason\b|exception\b|substitute\b)[a-z]\w*": "is not a",
    r"\bmade anew\b": "created again",
    r"\b(comes?|came|coming) to work\b": "becomes ready",
    r"\b(die|dies|died|dying) of\b": "was killed by, crashed in",
    r"\bas of ``": "as in",
    r"\banother's\b": "that of another one",
    r"\bso that none\b(?! of)": "so that no ...",
}


def test_neither_source_nor_pages_read_as_translated():
    sources = [*paths(), *PACKAGE.rglob("*.lua")]
    pages = [path for path in (PACKAGE.parent / "docs").glob("*.md") if path.name != "attacks.md"]  # a log of the past

    assert [] == [f"{path.name}: {found}" for path in [*sources, *pages] for found in findings(path.read_text())]


def test_a_phrase_is_found_across_lines():
    assert ["is no job: is not a"] == findings("# A payload that cannot be one is no\n# job.")
    assert [] == findings("# There is no job, and it is no\n# longer here")


def findings(text: str) -> list[str]:
    """Each such phrase in a text whose lines may be comments, and what to write instead."""
    plain = re.sub(r"\s*\n\s*(#:?|--)?\s*", " ", text)
    found = [
        (one, instead) for phrase, instead in _PHRASES.items() for one in re.finditer(phrase, plain, re.IGNORECASE)
    ]
    return [f"{one[0]}: {instead}" for one, instead in found]
