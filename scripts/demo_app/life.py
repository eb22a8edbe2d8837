"""Push the jobs of a small shop, in waves, until it is ended."""

from __future__ import annotations

import time
from itertools import count

import shop

from queuepool import Flow, connect

#: seconds between two waves, and waves after which a mailing begins, and the pictures of a season come
_PAUSE, _MAILING, _SEASON = 0.5, 240, 50
_COUNTRIES = ("DE", "FR", "US", "DE", "FR", "DE", "NO")


def begin() -> None:
    """What a shop has lying about on a bad day."""
    queue = connect()
    mailing(150)
    shop.charge.bulk([_order(number) for number in range(1, 121)])
    for number in range(1, 13):
        shop.mail.later(60.0 * number, 4000 + number, "Your basket is waiting")
    for number in range(3):
        queue.push("legacy.export", {"year": 2020 + number}, queue="exports")  # no pool serves it
    queue.push_raw(b'{"order": 4711, "note": "this is no job')


def wave(number: int) -> None:
    """What comes within half a second."""
    shop.charge.bulk([_order(121 + 2 * number + one) for one in range(2)])
    shop.mail.dispatch(1000 + number, "Thank you for your order")
    shop.invoice.dispatch(9000 + number, 1000 + number)
    if number % 6 == 0:
        shop.resize.dispatch(f"shoe-{number}.jpg", [320, 640, 1280, 1920])
    if number % _SEASON == 0:
        season(number // _SEASON)
    if number % _MAILING == 0:
        mailing(500)


def season(number: int) -> None:
    """Pictures side by side, then the page that shows them, then a mailing; or one letter if there is no page."""
    flow = Flow(f"season {number}")
    pictures = [flow.add(shop.resize.call(f"look-{number}-{one}.jpg", [320, 640])) for one in range(4)]
    page = flow.add(shop.publish.call(number), after=pictures)
    flow.add(shop.mail.call(5000, "The new season"), after=page)
    flow.add(shop.mail.call(1, "There is no new season"), after=page, on="failure")
    flow.dispatch()


def mailing(customers: int) -> None:
    shop.mail.bulk([{"customer": 5000 + one, "subject": "Spring sale"} for one in range(customers)])


def _order(number: int) -> dict[str, object]:
    return {"order": number, "country": _COUNTRIES[number % len(_COUNTRIES)], "amount": 10 + number % 90}


begin()
for each in count(1):
    wave(each)
    time.sleep(_PAUSE)
