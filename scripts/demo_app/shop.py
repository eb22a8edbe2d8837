"""The jobs of a small shop, for the demo in the browser: quick and slow ones, some that fail."""

from __future__ import annotations

import time
from decimal import Decimal

from queuepool import current, job

#: what is added to a price, by country; an order from elsewhere fails
RATES = {"DE": Decimal("1.19"), "FR": Decimal("1.20"), "US": Decimal("1.00")}


@job(queue="mail", tries=3, backoff=[5, 30])
def mail(customer: int, subject: str) -> None:
    """Its server is busy now and then."""
    time.sleep(0.1)
    if customer % 41 == 0 and current().attempts < 3:
        raise ConnectionError("421 too many connections from this host")


@job()
def charge(order: int, country: str, amount: int) -> str:
    time.sleep(0.05)
    if order % 53 == 0:
        raise ValueError(f"order {order} has no customer")
    return str(RATES[country] * amount)


@job(queue="images", timeout=60)
def resize(image: str, widths: list[int]) -> None:
    """Tells how far it is."""
    for done, width in enumerate(widths, 1):
        time.sleep(width / 400)
        current().progress(done / len(widths), f"{done} of {len(widths)} sizes of {image}")


@job()
def publish(season: int) -> None:
    """Follows all pictures of a season; now and then it has no room for them."""
    time.sleep(0.3)
    if season % 2 == 0:
        raise OSError("no space left on device")


@job(queue="invoices")
def invoice(order: int, customer: int) -> None:
    time.sleep(0.2)


@job()
def sync_stock() -> None:
    time.sleep(3)


@job()
def close_books() -> None:
    time.sleep(1)
