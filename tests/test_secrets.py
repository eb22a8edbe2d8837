"""What is secret stays so: in files that others can read it is refused, and what we write never shows it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from eventually import eventually
from pools import RunningPool, Site

from queuepool.client import Queue
from queuepool.config import load
from queuepool.errors import ConfigError
from queuepool.settings import ConnectionSettings

PASSWORD, KEY = "pa55w0rd-of-redis", "s1gn1ng-key-0123456789"
SECTION = "[connection]\n{}\n"
OPEN_LINES = [
    f"url = redis://:{PASSWORD}@h", f"url = unix://u:{PASSWORD}@/run/redis.sock", f"control_url = rediss://u:{PASSWORD}@h/1",
    f"signing_keys = k1:{KEY}", f"signing_keys = k1:{KEY}, k2:{KEY}",
]  # fmt: skip


def written(path: Path, text: str, mode: int) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, {}, {})
    return str(caught.value)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o606, 0o664])
@pytest.mark.parametrize("line", OPEN_LINES)
def test_B072_a_secret_that_every_user_can_read_is_refused_with_the_remedy(tmp_path, line, mode):
    path = written(tmp_path / "pool.ini", SECTION.format(line), mode)
    said = refusal(path)

    assert f"{path}:2: [connection] {line.partition(' ')[0]}: holds " in said
    assert f"that every user can read: chmod 600 {path}" in said
    assert (PASSWORD in said, KEY in said) == (False, False)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o660])
@pytest.mark.parametrize("line", OPEN_LINES)
def test_a_secret_that_its_owner_and_a_group_can_read_is_taken(tmp_path, line, mode):
    assert load(written(tmp_path / "pool.ini", SECTION.format(line), mode), {}, {})


@pytest.mark.parametrize("line", ["url = redis://h:1/0", "url = redis://user@h", "signing_keys ="])
def test_a_file_without_a_secret_may_be_read_by_everybody(tmp_path, line):
    assert load(written(tmp_path / "pool.ini", SECTION.format(line), 0o644), {}, {})


def test_a_file_of_keys_that_every_user_can_read_is_refused(tmp_path):
    keys = written(tmp_path / "keys", f"k1:{KEY}\n", 0o644)
    path = written(tmp_path / "pool.ini", SECTION.format(f"signing_keys = {keys}"), 0o644)
    said = refusal(path)
    keys.chmod(0o640)

    assert said.endswith(f"signing_keys: {keys} holds keys that every user can read: chmod 600 {keys}")
    assert (("k1", KEY),) == load(path, {}, {}).connections["default"].signing_keys


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_keys_of_another_user_is_refused(tmp_path):
    keys = written(tmp_path / "keys", f"k1:{KEY}\n", 0o600)
    os.chown(keys, 12345, -1)

    assert "belongs to another user (uid 12345)" in refusal(
        written(tmp_path / "p", f"[connection]\nsigning_keys={keys}", 0o600)
    )


@pytest.mark.timeout(10)
@pytest.mark.parametrize("what", ["missing", "fifo", "folder", "binary", "empty", "huge"])
def test_a_file_of_keys_that_is_none_is_refused_without_hanging(tmp_path, what):
    path = tmp_path / "keys"
    match what:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "binary" | "empty" | "huge":
            path.write_bytes(
                {"binary": b"k1:\xff\0\xfe" + KEY.encode(), "empty": b"# none\n", "huge": b"x" * 2**21}[what]
            )
            path.chmod(0o600)

    said = refusal(written(tmp_path / "pool.ini", f"[connection]\nsigning_keys = {path}\n", 0o600))
    assert "pool.ini:2: [connection] signing_keys: " in said
    assert KEY not in said


def test_a_refused_configuration_is_a_line_and_exit_code_78(site):
    path = written(site.path / "pool.ini", SECTION.format(OPEN_LINES[0]), 0o644)
    done = site.run("start", "-c", str(path), check=False)

    assert (78, "") == (done.returncode, done.stdout)
    assert [f"{path}:2: [connection] url: holds a password that every user can read: chmod 600 {path}"] == (
        done.stderr.splitlines()
    )


# Nowhere to be seen


@pytest.fixture
def guarded(connection: ConnectionSettings, server: redis.Redis, redis_socket: str, tmp_path: Path) -> Iterator[Site]:
    """A site whose pool has a password and a signing key from its environment."""
    server.acl_setuser("someone", True, passwords=[f"+{PASSWORD}"], keys=["*"], channels=["*"], commands=["+@all"])
    url = f"unix://someone:{PASSWORD}@{redis_socket}"
    settings = replace(connection, url=url, signing="require", signing_keys=(("k1", KEY),))
    queue = Queue(settings)
    yield Site(settings, tmp_path, queue)
    queue.close()
    server.acl_deluser("someone")


def test_no_secret_is_shown_by_a_pool_in_good_days_and_bad(guarded, server, monkeypatch):
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_URL", guarded.connection.url)
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_SIGNING", "require")
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_SIGNING_KEYS", f"k1:{KEY}")
    place = ["--runtime-dir", str(guarded.path / "run")]
    flags = ["--prefix", guarded.connection.prefix, "--modules", "poolapp"]
    for mode in ("ok", "raise", "kill"):
        guarded.push(mode)
    guarded.queue.push_raw(b'{"id":"a","job":"do","attempts":0}')
    pool = RunningPool(guarded, [*place, *flags, "-v"], "")
    try:
        eventually(lambda: guarded.queue.stores.failed.count() == 2 and guarded.queue.sizes().quarantined)
        pool.wait_until_ready()
        server.acl_setuser("someone", True, passwords=[f"-{PASSWORD}", "+another"])
        server.execute_command("CLIENT", "KILL", "USER", "someone")
        eventually(lambda: "store lost" in pool.log())
        shown = {
            "titles": " ".join(pool.titles().values()),
            "command lines": " ".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in pool.seen),
            "files": " ".join(path.read_bytes().decode("latin-1") for path in (guarded.path / "run").rglob("*.*")),
            "status": guarded.run("status", *place, "--json").stdout,
            "check": "".join(told(guarded.run("check", *flags, check=False))),
            "size": "".join(told(guarded.run("size", *flags[:2], check=False))),
            "store": " ".join(dumped(server)),
        }
        server.acl_setuser("someone", True, passwords=[f"+{PASSWORD}"])
        eventually(lambda: "store regained" in pool.log())
    finally:
        pool.end()
    shown["log"] = pool.log()

    assert [] == [where for where, text in shown.items() if PASSWORD in text or KEY in text]
    assert [] == [where for where, text in shown.items() if len(text) < 50]


def told(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    return done.stdout, done.stderr


def dumped(server: redis.Redis) -> Iterator[str]:
    """All that the store holds."""
    readers = {
        b"string": server.get, b"hash": server.hgetall,
        b"list": lambda key: server.lrange(key, 0, -1), b"zset": lambda key: server.zrange(key, 0, -1),
    }  # fmt: skip
    for key in server.scan_iter():
        yield f"{key!r} {readers[server.type(key)](key)!r}"


@pytest.mark.parametrize("where", ["url", "control_url"])
def test_no_repr_of_settings_shows_a_password(where):
    settings = load(None, {f"connection.{where}": f"redis://u:{PASSWORD}@h:1/0"}, {})

    assert PASSWORD not in repr(settings)
