"""``each``: a table of cases as one test.

For cases that take a millisecond. An item of pytest's costs more than that, in every process that collects it.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Like ``pytest.mark.parametrize``, but one test: it runs every case, and names all that fail.

    The cases share the fixtures of the test, and it has their marks.
    """
    words = [names] if isinstance(names, str) else names
    table = [case if hasattr(case, "values") and hasattr(case, "marks") else _plain(case, words) for case in cases]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def of_all(**fixtures: Any) -> None:
            errors = [(case, _error(test, fixtures | dict(zip(words, case.values, strict=True)))) for case in table]
            _require_none({_name(case, words): error for case, error in errors if error})

        others = [one for name, one in inspect.signature(test).parameters.items() if name not in words]
        of_all.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]
        return _marked(of_all, [mark for case in table for mark in case.marks])

    return decorate


def _plain(case: Any, words: Sequence[str]) -> Any:
    return pytest.param(case) if len(words) == 1 else pytest.param(*case)


def _marked(test: Test, marks: Iterable[pytest.MarkDecorator]) -> Test:
    for mark in marks:
        assert mark.name in ("fault", "bad_input"), "any other mark of one case would change the others"
        mark(test)
    return test


def _error(test: Test, arguments: dict[str, Any]) -> BaseException | None:
    try:
        test(**arguments)
    except (Exception, pytest.fail.Exception) as error:
        return error
    return None


def _name(case: Any, words: Sequence[str]) -> str:
    return case.id or ", ".join(f"{word}={_short(value)}" for word, value in zip(words, case.values, strict=True))


def _short(value: Any) -> str:
    return getattr(value, "__name__", None) or _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def _require_none(errors: dict[str, BaseException]) -> None:
    if errors:
        texts = [f"{name}: {type(error).__name__}: {error}" for name, error in errors.items()]
        # The traceback is that of the first one.
        raise AssertionError("\n".join([f"{len(texts)} of the cases failed", *texts])) from next(iter(errors.values()))
