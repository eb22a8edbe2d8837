"""Laravel's context in a payload: values that follow a request into its jobs, each serialized by PHP on its own.

    "illuminate:log:context": {"data": {NAME: serialize(VALUE)}, "hidden": {NAME: serialize(VALUE)}}

Source: Log/Context/Repository.php, dehydrate (11.x to 13.x).
"""

from __future__ import annotations

from queuepool.payload.php_unserialize import PhpDataRefused, PhpValue, parse


def values_of(context: object, part: str) -> dict[str, PhpValue]:
    """The values of one part of a context, ``data`` or ``hidden``; those that cannot be read are left out."""
    texts = context.get(part) if isinstance(context, dict) else None
    found: dict[str, PhpValue] = {}
    for name, text in texts.items() if isinstance(texts, dict) else ():
        if isinstance(text, str):
            try:
                found[name] = parse(text)
            except PhpDataRefused:
                continue
    return found
