"""Binds arguments to a signature; the error names all that do not fit, where Python's names the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from inspect import BoundArguments, Parameter, Signature
from typing import Any

_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_ANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def fitted(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """``signature.bind``. Raises ``TypeError``."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        missing, unknown = _missing(signature, args, kwargs), _unknown(signature, kwargs)
        if len(missing) + len(unknown) < 2:
            raise
        words = "; ".join(filter(None, [_words_on(missing), *(_words_on_unknown(one, missing) for one in unknown)]))
        raise TypeError(words) from error


def _missing(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    parameters = [one for one in signature.parameters.values() if one.kind not in _ANY]
    by_place = [one.name for one in parameters if one.kind in _BY_PLACE][: len(args)]
    return [
        one.name
        for one in parameters
        if one.default is one.empty and one.name not in by_place and one.name not in kwargs
    ]


def _unknown(signature: Signature, kwargs: Mapping[str, Any]) -> list[str]:
    parameters = signature.parameters.values()
    if any(one.kind is Parameter.VAR_KEYWORD for one in parameters):
        return []
    names = {one.name for one in parameters if one.kind in _BY_NAME}
    return [name for name in kwargs if name not in names]


def _words_on(missing: Sequence[str]) -> str:
    if len(missing) < 2:
        return "".join(f"missing a required argument: {one!r}" for one in missing)
    return f"missing required arguments: {', '.join(map(repr, missing))}"


def _words_on_unknown(name: str, missing: Sequence[str]) -> str:
    close = get_close_matches(name, missing, 1)
    return f"got an unexpected keyword argument {name!r}" + (f": did you mean {close[0]!r}?" if close else "")
