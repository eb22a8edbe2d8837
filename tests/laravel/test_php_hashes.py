"""The hash by which Laravel names locks, beside PHP's own and the package that others use for it."""

from __future__ import annotations

import json
import subprocess

import xxhash
from hypothesis import given
from hypothesis import strategies as st

from queuepool.jobs.laravel_limits import cleaned
from queuepool.payload.xxh3 import hexdigest
from tests.support.laravel_peer import require_php

#: characters: each way in which it hashes, and both sides of where one begins
SIZES = (0, 1, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 160, 239, 240, 241, 1024, 1025, 1088, 2049)
IN_PHP = "echo json_encode(array_map(fn ($text) => hash('xxh128', $text), json_decode($argv[1])));"


def test_it_is_the_hash_of_php():
    require_php()
    texts = [*(("App\\Listeners\\Receipt" * 100)[:size] for size in SIZES), "Zo\u00eb \U0001f600"]
    said = subprocess.run(["php", "-r", IN_PHP, json.dumps(texts)], capture_output=True, text=True, check=True)

    assert json.loads(said.stdout) == [hexdigest(text) for text in texts]


@given(st.text(max_size=300) | st.integers(0, 3000).map(lambda size: "ab\\" * size))
def test_it_is_the_hash_of_the_package(text):
    assert xxhash.xxh3_128_hexdigest(text.encode()) == hexdigest(text)


def test_any_text_has_a_hash():
    assert 32 == len(hexdigest("\ud800"))


#: Cache/RateLimiter.php, cleanRateLimiterKey (13.x)
CLEANED = """echo json_encode(array_map(
    fn ($key) => preg_replace('/&([a-z])[a-z]+;/i', '$1', htmlentities($key)), json_decode($argv[1])
));"""


def test_the_key_of_a_rate_limiter_is_cleaned_as_by_laravel():
    require_php()
    texts = [
        "plain:1",
        "Zo\u00eb & Co",
        "\"a\" 'b' <c>",
        "\u00bd \u00b2 \u0152 \u20ac \u03b1 \u2026",
        "\u4e2d &amp; \U0001f600",
    ]
    said = subprocess.run(["php", "-r", CLEANED, json.dumps(texts)], capture_output=True, text=True, check=True)

    assert json.loads(said.stdout) == [cleaned(text) for text in texts]
