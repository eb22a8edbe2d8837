"""Secrets are refused in files that others can read, and never appear in what the program writes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from queuepool.config.loader import load
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError
from queuepool.jobs.client import Queue
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site

PASSWORD, KEY = "pa55w0rd-of-redis", "s1gn1ng-key-0123456789"
SECTION = "[connection]\n{}\n"
OPEN_LINES = [
    f"url = redis://:{PASSWORD}@h", f"url = unix://u:{PASSWORD}@/run/redis.sock", f"control_url = rediss://u:{PASSWORD}@h/1",
    f"signing_keys = k1:{KEY}", f"signing_keys = k1:{KEY}, k2:{KEY}",
]  # fmt: skip


def written(path: Path, text: str, mode: int) -> Path:
    path.unlink(missing_ok=True)  # the last one may not be ours to write
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, {}, {})
    return str(caught.value)


@pytest.mark.bad_input("B072")
@each("mode", [0o644, 0o604, 0o606, 0o664])
@each("line", OPEN_LINES)
def test_a_secret_that_every_user_can_read_is_refused_with_the_remedy(tmp_path, line, mode):
    path = written(tmp_path / "pool.ini", SECTION.format(line), mode)
    said = refusal(path)

    assert f"{path}:2: [connection] {line.partition(' ')[0]}: holds " in said
    assert f"that every user can read: chmod 600 {path}" in said
    assert (PASSWORD in said, KEY in said) == (False, False)


@each("mode", [0o600, 0o400, 0o640, 0o660])
@each("line", OPEN_LINES)
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
def test_whose_a_file_is_does_not_matter(tmp_path):
    keys = written(tmp_path / "keys", f"k1:{KEY}\n", 0o600)
    path = written(tmp_path / "pool.ini", f"[connection]\nsigning_keys = {keys}\nurl = redis://:{PASSWORD}@h", 0o640)
    for file in (keys, path):
        os.chown(file, 12345, -1)

    assert (("k1", KEY),) == load(path, {}, {}).connections["default"].signing_keys


@pytest.mark.parametrize("line", ["url = redis://u:${PW}@h", "signing_keys = k1:${KEY}"])
def test_a_file_that_only_names_a_secrets_variable_may_be_read_by_everybody(tmp_path, line):
    path = written(tmp_path / "pool.ini", SECTION.format(line), 0o644)

    assert load(path, {}, {"PW": PASSWORD, "KEY": KEY})


#: a container's secrets: everybody may read them, and nobody can change that
MOUNTED = """
mount -t tmpfs tmpfs {folder} && cp {file} {keys} {folder} && chmod 644 {folder}/* || exit 99
mount -o remount,ro {folder} || exit 99
exec {python} -m queuepool check -c {folder}/pool.ini
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_secrets_on_a_read_only_mount_work_with_one_warning_each(tmp_path, redis_socket, server):
    mount = tmp_path / "mount"
    mount.mkdir()
    server.acl_setuser("mounted", True, passwords=[f"+{PASSWORD}"], keys=["*"], channels=["*"], commands=["+@all"])
    keys = written(tmp_path / "keys", f"k1:{KEY}\n", 0o600)
    lines = f"url = unix://mounted:{PASSWORD}@{redis_socket}\nsigning_keys = {mount}/keys"
    file = written(tmp_path / "pool.ini", SECTION.format(lines), 0o600)
    script = MOUNTED.format(folder=mount, file=file, keys=keys, python=sys.executable)
    command = ["unshare", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    server.acl_deluser("mounted")
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("mounts are not permitted here")

    assert "unix://***@" in done.stdout
    assert [True, True] == [
        "every user can read; its mount is read-only: mount it with mode 0400" in line
        for line in done.stderr.splitlines()
    ]
    assert f"{mount}/pool.ini:2: [connection] url: holds a password" in done.stderr
    assert f"{mount}/keys holds keys" in done.stderr
    assert PASSWORD not in done.stderr + done.stdout


@pytest.mark.timeout(60)
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
    flags = ["--prefix", guarded.connection.prefix, "--modules", "tests.support.poolapp"]
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
