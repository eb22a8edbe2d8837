"""Laravel's limits as middleware: the names of their keys, and what they refuse."""

from __future__ import annotations

import hashlib
import json
import math
from enum import StrEnum
from typing import Any

import pytest

from queuepool import job
from queuepool.errors import BadArguments, ConfigError, NeedsLaravel
from queuepool.jobs.current_job import Current
from queuepool.jobs.laravel_limits import LaravelRate, NoOverlap, Throttle
from queuepool.jobs.php_middleware import of_php
from queuepool.jobs.registry import REGISTRY
from queuepool.payload.envelope import OBJECT_JOB, decode
from queuepool.payload.php_unserialize import PhpObject
from queuepool.payload.xxh3 import hexdigest
from tests.support.each import each


class Colour(StrEnum):
    RED = "red"


SEND = "App\\Jobs\\Send"
PHP = "Illuminate\\Queue\\Middleware\\"


def running(order: object = 7, *, shown: str = SEND) -> Current:
    """An object job of PHP's, with this display name."""
    data = {"commandName": SEND, "command": f'O:{len(SEND)}:"{SEND}":0:{{}}'}
    fields = {"uuid": "u-1", "id": "i-1", "displayName": shown, "job": OBJECT_JOB, "data": data, "attempts": 1}
    found = Current(decode(json.dumps(fields).encode(), 1), "default")
    found.takes({"order": order})
    return found


def test_the_key_of_an_overlap_is_laravels():
    assert f"laravel-queue-overlap:{SEND}:7" == NoOverlap(by="{order}").key_of(running())
    assert f"laravel-queue-overlap:{SEND}:" == NoOverlap().key_of(running())
    assert "laravel-queue-overlap:order 7" == NoOverlap(by="order {order}", shared=True).key_of(running())
    assert f"own:{SEND}:7" == NoOverlap(by="{order}", prefix="own:").key_of(running())
    assert f"laravel-queue-overlap:{hexdigest('Send 7')}:7" == NoOverlap(by="{order}").key_of(running(shown="Send 7"))


def test_the_key_of_a_rate_is_the_digest_of_its_name_and_what_it_is_by():
    assert hashlib.md5(b"stripe7").hexdigest() == LaravelRate("stripe", 3, by="{order}").key_of(running())


def test_the_key_of_a_throttle_is_laravels():
    prefix = "laravel_throttles_exceptions:"

    assert f"{prefix}{hexdigest(SEND)}" == Throttle().key_of(running())
    assert f"{prefix}{hexdigest('Send 7')}" == Throttle().key_of(running(shown="Send 7"))
    assert f"{prefix}u-1" == Throttle(by_job=True).key_of(running())
    assert f"{prefix}a Zoe" == Throttle(by="& {order}").key_of(running("Zoë"))


@each(("value", "written"), [(True, "1"), (False, ""), (7.0, "7"), (-7, "-7"), ("7.0", "7.0"), (Colour.RED, "red")])
def test_a_value_is_written_as_php_writes_it(value, written):
    assert f"laravel-queue-overlap:{SEND}:{written}" == NoOverlap(by="{order}").key_of(running(value))


@each(
    ("order", "words"),
    [
        (None, "NoOverlap\\(by='{order}'\\) cannot be filled in: None is neither a text nor a whole number"),
        (1.5, "1.5 is neither a text nor a whole number"),
        (PhpObject(SEND, {}), "is neither a text nor a whole number"),
        ("x" * 10_240, "it has 10240 characters, a key has room for 150"),
        ("a\0b", "it has characters that no key can hold"),
        ("a\nb", "it has characters that no key can hold"),
    ],
)
def test_a_value_that_no_key_can_hold_fails_its_job(order, words):
    with pytest.raises(BadArguments, match=words):
        NoOverlap(by="{order}").key_of(running(order))


@each(
    ("make", "words"),
    [
        (lambda: LaravelRate("stripe", 0), "most cannot be 0: it is a whole number from 1"),
        (lambda: LaravelRate("stripe", -1), "most cannot be -1"),
        (lambda: LaravelRate("stripe", True), "most cannot be True"),
        (lambda: LaravelRate("stripe", 3, per=0), "per cannot be 0: a window lasts a second at least"),
        (lambda: LaravelRate("", 3), "a rate needs a name of 1 to 150 printable characters, not ''"),
        (lambda: LaravelRate("a\0", 3), "a rate needs a name"),
        (lambda: Throttle(0), "most cannot be 0"),
        (lambda: NoOverlap(expires_after=0), "expires_after must be above 0"),
    ],
)
def test_wrong_numbers_are_refused_where_the_limit_is_made(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_an_argument_that_the_job_has_not_is_refused_where_the_job_is_defined():
    def send(order: int) -> None: ...

    with pytest.raises(ConfigError, match="its NoOverlap takes 'tenant', which is not an argument of the job"):
        job("test.refused", around=[NoOverlap(by="{tenant.id}-{order}")])(send)
    assert REGISTRY.known("test.refused") is None


def php(name: str, **own: Any) -> PhpObject:
    return PhpObject(PHP + name, own)


def test_middleware_of_php_has_the_keys_that_it_has_there():
    overlap, throttle = of_php(
        SEND, [php("WithoutOverlapping", key="{7}", releaseAfter=0, expiresAfter=0, prefix="own:", shareKey=True),
               php("ThrottlesExceptions", maxAttempts=2, decaySeconds=60, key="k", byJob=False, prefix="p:")], (),
    )  # fmt: skip

    assert "own:{7}" == overlap.key_of(running())
    assert "p:k" == throttle.key_of(running())
    [in_redis] = of_php(SEND, [php("ThrottlesExceptionsWithRedis", key="Zoë's", prefix="p:", connectionName=None)], ())
    assert "p:Zoë's" == in_redis.key_of(running()), "only those in the cache are cleaned"
    assert 1 == len(of_php(SEND, [php("Skip", skip=True), php("Skip", skip=False), php("SkipIfBatchCancelled")], ()))
    assert [] == of_php(SEND, [php("RateLimited", limiterName="stripe")], [LaravelRate("stripe", 3)])
    rate = php("RateLimitedWithRedis", limiterName="stripe", shouldRelease=True, connectionName=None)
    assert [] == of_php(SEND, [rate], [LaravelRate("stripe", 3, in_redis=True)])


@each(
    ("one", "words"),
    [
        (php("RateLimited", limiterName="stripe"), "whose numbers are in PHP: declare around=.LaravelRate\\('stripe'"),
        (php("RateLimitedWithRedis", limiterName="known"), "declare around=.LaravelRate\\('known', …, in_redis=True"),
        (
            php("RateLimitedWithRedis", limiterName="known", connectionName="other"),
            "RateLimitedWithRedis on the connection 'other': only that of the jobs is known here",
        ),
        (php("ThrottlesExceptions", whenCallback=php("Closure")), "ThrottlesExceptions with a closure"),
        (php("ThrottlesExceptionsWithRedis", connectionName="other"), "WithRedis on the connection 'other'"),
        (php("WithoutOverlapping", key=php("Key")), "WithoutOverlapping with a key that is not a text"),
        (php("WithoutOverlapping", key="k", expiresAfter=math.inf), "WithoutOverlapping with the expiresAfter inf"),
        (php("WithoutOverlapping", key="k", releaseAfter=2**40), "with the releaseAfter 1099511627776"),
        (php("WithoutOverlapping", key="k", releaseAfter=PhpObject("DateTime", {})), "with the releaseAfter PhpObject"),
        (php("ThrottlesExceptions", decayMinutes=1e9), "with the decayMinutes 1000000000.0"),
        (php("ThrottlesExceptions", maxAttempts=math.nan), "with the maxAttempts nan"),
        (php("RateLimited", limiterName="known", shouldRelease=False), "declare LaravelRate\\('known', …, skips=True"),
        (php("RateLimited", limiterName="known", releaseAfter=30), "LaravelRate\\('known', …, release_after=30\\)"),
    ],
)
def test_what_only_php_knows_of_its_middleware_is_refused(one, words):
    with pytest.raises(NeedsLaravel, match=words):
        of_php(SEND, [one], [LaravelRate("known", 3)])


def test_a_rate_of_php_is_that_of_the_handler_if_both_do_the_same_with_a_job_beyond_it():
    left_out = php("RateLimited", limiterName="stripe", shouldRelease=False, releaseAfter=None)
    later = php("RateLimited", limiterName="paypal", shouldRelease=True, releaseAfter=30)

    declared = [LaravelRate("stripe", 3, skips=True), LaravelRate("paypal", 3, release_after="30s")]
    assert [] == of_php(SEND, [left_out, later], declared)
