"""Incidents after a deploy."""

from __future__ import annotations

from collections.abc import Iterator

from tests.incidents.incident import Answer, Incident, answer
from tests.incidents.scene import Scene

_INVOICES = 40


def _does_not_boot(scene: Scene) -> Iterator[Answer]:
    code = scene.web1.shop.read_text()
    scene.web1.shop.write_text(f"{code}\nimport stripe_v9\n")
    cause = "the new code does not become ready: cannot import shop: "
    causes = [*(f"web1/{pool}: {cause}" for pool in ("billing", "web")), "stripe_v9"]
    yield answer(scene, "queuepool reload --wait --everywhere", *causes, *_renewed("web2"), code=1)
    scene.web1.shop.write_text(code)
    yield answer(scene, "queuepool reload --wait --everywhere", *_renewed("web1"), *_renewed("web2"))


def _renewed(host: str) -> list[str]:
    return [f"{host}/{pool}: 2 of 2 workers run the new code" for pool in ("billing", "web")]


def _has_other_arguments(scene: Scene) -> Iterator[Answer]:
    orders = ({"order": number, "currency": "EUR"} for number in range(_INVOICES))
    scene.push("shop.invoice", orders, queue="invoices")
    scene.waits_for("queuepool failed --error currency --count", str(_INVOICES))
    yield answer(scene, "queuepool failed --by error", "bad arguments for shop.invoice")
    scene.deploys("def invoice(order: int)", 'def invoice(order: int, currency: str = "EUR")')
    back = f"{_INVOICES} jobs put back on connection postgres: invoices {_INVOICES}"
    yield answer(scene, "queuepool retry --error currency --yes", back)


DOES_NOT_BOOT = Incident(
    "The new code cannot be imported",
    "A deploy has brought an import of a module that is not installed on web1.",
    _does_not_boot,
    "The old workers go on meanwhile. Put the old code back or install what is missing, and reload again: "
    "the second answer above is the one after that.",
)
HAS_OTHER_ARGUMENTS = Incident(
    "Producers push what the workers do not take yet",
    "The web servers were deployed before the pools, and push an argument `currency` that the workers do not know.",
    _has_other_arguments,
    "Deploy the pools, with `queuepool reload --wait --everywhere`, and only then retry. "
    "[The order of a deploy](operations.md#the-order-of-a-deploy) avoids it.",
)
