"""A pool with encrypted jobs: nothing of them is anywhere in clear, and a wrong key loses nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.security.test_secrets import dumped
from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.pools import RunningPool, Site

SECRET, KEY = "pl41n-of-the-job", b"0123456789abcdef" * 2
WRITTEN = f"base64:{base64.b64encode(KEY).decode()}"
MAIL = "App\\Jobs\\SecretMail"


@pytest.fixture
def keyed(connection: ConnectionSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site whose pool has the key from its environment."""
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_APP_KEY", WRITTEN)
    settings = replace(connection, app_key=KEY)
    queue = Queue(settings)
    yield Site(settings, tmp_path, queue)
    queue.close()


@pytest.mark.by_turns("style")
@pytest.mark.parametrize("style", ["-v", "--json"])
def test_nothing_of_an_encrypted_job_is_anywhere_in_clear(keyed, server: redis.Redis, style):
    place = ["--runtime-dir", str(keyed.path / "run")]
    for mode in ("ok", "raise", "kill", "hang_in_c"):
        options = {"timeout": 1} if mode == "hang_in_c" else None
        keyed.queue.push("do", {"mode": mode, "tag": SECRET}, options=options, encrypted=True)
    keyed.queue.push_object(MAIL, {"to": "a@b.c", "template": SECRET}, encrypted=True)
    keyed.queue.push_object(MAIL, {"to": "a@b.c", "more": SECRET}, encrypted=True)
    pool = RunningPool(keyed, keyed.flags(*place, "--max-crashes", "1", "--workers", "2", style), "")
    shown: dict[str, list[str]] = {"titles": [], "files": []}
    try:

        def has_failed() -> bool:
            shown["titles"] += pool.titles().values()
            shown["files"] += texts_in(keyed.path / "run")
            return (keyed.queue.stores.failed.count(), keyed.queue.size()) == (4, 0)  # the good ones may be last

        eventually(has_failed)
        shown["status"] = [keyed.run("status", *place, "--json").stdout]
        shown["failed"] = [keyed.run("failed", *keyed.where, "--json").stdout]
        shown["store"] = list(dumped(server))
        shown["check"] = [keyed.run("check", *keyed.flags(), check=False).stdout]
    finally:
        pool.end()
    shown["log"] = [pool.log()]

    assert {SECRET} == {line["tag"] for line in keyed.trail(event="start")}
    assert [SECRET] == [line["template"] for line in keyed.trail(mode="SecretMail")]
    assert [] == [where for where, texts in shown.items() if any(SECRET in text for text in texts)]
    assert [] == [where for where, texts in shown.items() if any(WRITTEN in text for text in texts)]
    assert [] == [where for where, texts in shown.items() if not any(len(text) > 50 for text in texts)]


def texts_in(folder: Path) -> Iterator[str]:
    """What the pool keeps now: the board, traces, notes for other processes."""
    for path in folder.rglob("*"):
        with suppress(OSError):  # it may be gone
            yield path.read_bytes().decode("latin-1")


@pytest.mark.by_turns("keys")
@pytest.mark.parametrize("keys", [{}, {"APP_KEY": f"base64:{base64.b64encode(b'x' * 32).decode()}"}])
def test_a_job_waits_among_the_failed_ones_for_its_key(keyed, peer: Peer, monkeypatch, keys):
    peer.run("push-object", "a@b.c", SECRET, encrypted=True, app_key=base64.b64encode(KEY).decode())
    keyed.queue.push("do", {"mode": "ok", "tag": SECRET}, encrypted=True)
    monkeypatch.delenv("QUEUEPOOL_CONNECTION_APP_KEY")
    for name, value in keys.items():
        monkeypatch.setenv(f"QUEUEPOOL_CONNECTION_{name}", value)
    log = keyed.work().stderr
    rows = json.loads(keyed.run("failed", *keyed.where, "--json").stdout)

    words = "it cannot be decrypted with these keys" if keys else "it is encrypted, and there is no key: set app_key"

    assert [True, True] == [words in str(row) for row in rows]
    assert (True, False, False) == (words in log, SECRET in log, SECRET in str(rows))

    monkeypatch.setenv("QUEUEPOOL_CONNECTION_APP_KEY", f"base64:{base64.b64encode(b'y' * 32).decode()}")
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_PREVIOUS_KEYS", WRITTEN)
    keyed.run("retry", "all", *keyed.where)
    keyed.work()

    assert [SECRET] == [line["template"] for line in keyed.trail(mode="SecretMail")]
    assert [SECRET] == [line["tag"] for line in keyed.trail(event="end", mode="ok")]
    assert 0 == keyed.queue.stores.failed.count()


def test_a_pool_with_a_bad_key_does_not_start(site, monkeypatch):
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_APP_KEY", "too-short-a-key")
    done = site.run("start", *site.flags(), check=False)

    problem = "a key has 15 bytes, and AES-256-CBC takes 32: copy it from Laravel's .env, base64:..."
    assert (78, f"QUEUEPOOL_CONNECTION_APP_KEY: {problem}\n") == (done.returncode, done.stderr)


@pytest.mark.thorough("the tests above have an encrypted job that runs")
def test_an_encrypted_job_runs_beside_others(keyed):
    for number in range(5):
        keyed.queue.push("beside", {"mode": "ok", "tag": f"{SECRET} {number}"}, encrypted=True)
    keyed.queue.push("beside", {"mode": "raise", "tag": SECRET}, options={"maxTries": 1}, encrypted=True)
    with keyed.pool("--concurrency", "10", "--modules", "tests.support.besideapp") as pool:
        eventually(lambda: 5 == len(keyed.trail(event="end")) and keyed.queue.stores.failed.count())

    assert SECRET not in pool.log()
