"""The configuration: what is read, what is refused, and in which words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

from queuepool.config.alerts import AlertSettings, Webhook
from queuepool.config.loader import Config, load, masked
from queuepool.config.settings import KEYS, SECTIONS, ConnectionSettings, PoolSettings, ScheduleSettings
from queuepool.config.urls import place_of
from queuepool.config.values import MemoryLimit
from queuepool.config.web import WebSettings
from queuepool.errors import ConfigError
from queuepool.jobs.connecting import connect
from tests.support.each import each

SHIPPED = Path(__file__).parents[2] / "conf" / "pool.ini"
SECRET = "s3cr3t"
Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "pool.ini"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o600)
        return path

    return write


def refusal(path: Path | None, flags: dict[str, str] | None = None, env: dict[str, str] | None = None) -> str:
    """The message, with the file's directory taken off."""
    with pytest.raises(ConfigError) as caught:
        load(path, flags or {}, env or {})
    return str(caught.value).replace(f"{path.parent}/" if path else "\0", "")


def flagged(**flags: str) -> Config:
    """What flags alone give; ``pool_workers`` is ``pool.workers``."""
    return load(None, {name.replace("_", ".", 1): value for name, value in flags.items()}, {})


# What is read


def test_without_a_file_everything_is_at_its_default():
    connection = ConnectionSettings(url=f"sqlite:///{Path.cwd()}/queuepool.db", embedded=True)
    config = load(None, {}, {})

    assert Config((PoolSettings(connection=connection),), {"default": connection}, None) == config


def test_every_key_reaches_its_setting(write, tmp_path):
    path = write(
        """
        [pool]
        queue = high, default
        workers = 2
        modules = app.jobs,app.more
        listeners = app.ears
        preload = yes
        timeout = 2m
        soft_timeout = 90
        boot_timeout = 20
        grace = 0.5
        tries = 3
        backoff = 1,5,1m
        max_crashes = 2
        memory = 1G
        memory_hard = 2GB
        sleep = 0.2
        rest = 0.1
        max_jobs = 100
        max_time = 1h
        force = yes
        stop_timeout = 30s
        give_up = 1m
        quiet = on
        json = 1
        log = /var/log/q.log
        runtime_dir = /run/q
        [connection]
        driver = sql
        url = postgresql://u@h:1/d
        prefix = laravel_database_
        retry_after = 10
        block_for = 1
        timeout = 0.5
        renew = true
        failed = sql
        failed_url = mysql://u@h:2/d
        restart_key = laravel_cache:illuminate:queue:restart
        control_url = unix:///run/r.sock?db=1
        signing = accept
        signing_keys = new:0123456789abcdef, old:fedcba9876543210
        app_key = base64:MDEyMzQ1Njc4OWFiY2RlZg==
        previous_keys = base64:ZmVkY2JhOTg3NjU0MzIxMA==, fedcba9876543211
        cipher = aes-128-gcm
        """
    )
    connection = ConnectionSettings(
        url="postgresql://u@h:1/d",
        prefix="laravel_database_",
        retry_after=10.0,
        block_for=1.0,
        timeout=0.5,
        failed="sql",
        failed_url="mysql://u@h:2/d",
        restart_key="laravel_cache:illuminate:queue:restart",
        control_url="unix:///run/r.sock?db=1",
        signing="accept",
        signing_keys=(("new", "0123456789abcdef"), ("old", "fedcba9876543210")),
        app_key=b"0123456789abcdef",
        previous_keys=(b"fedcba9876543210", b"fedcba9876543211"),
        cipher="AES-128-GCM",
    )
    pool = PoolSettings(
        connection=connection,
        queues=("high", "default"),
        workers=2,
        modules=("app.jobs", "app.more"),
        listeners=("app.ears",),
        preload=True,
        timeout=120.0,
        soft_timeout=90.0,
        boot_timeout=20.0,
        grace=0.5,
        tries=3,
        backoff=(1.0, 5.0, 60.0),
        max_crashes=2,
        memory=MemoryLimit(1024.0),
        memory_hard=2048.0,
        sleep=0.2,
        rest=0.1,
        max_jobs=100,
        max_time=3600.0,
        force=True,
        stop_timeout=30.0,
        give_up=60.0,
        quiet=True,
        json=True,
        log=Path("/var/log/q.log"),
        runtime_dir=Path("/run/q"),
    )

    assert Config((pool,), {"default": connection}, path) == load(path, {}, {})


def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(write):
    path = write("[pool]\nworkers = 5\ntries = 5\nmax_jobs = 5\n")
    env = {"QUEUEPOOL_POOL_WORKERS": "6", "QUEUEPOOL_POOL_TRIES": "6"}
    pool = load(path, {"pool.workers": "7"}, env).pools[0]

    assert (7, 6, 5, 3) == (pool.workers, pool.tries, pool.max_jobs, pool.max_crashes)


def test_flags_and_environment_apply_to_every_pool_and_connection(write):
    path = write("[pool:a]\nworkers = 1\nconnection = x\n[pool:b]\nconnection = y\n[connection:x]\n[connection:y]\n")
    config = load(path, {"pool.workers": "9", "connection.url": "redis://h"}, {"QUEUEPOOL_CONNECTION_PREFIX": "p_"})

    assert [9, 9] == [pool.workers for pool in config.pools]
    assert ["p_", "p_"] == [pool.connection.prefix for pool in config.pools]


def test_an_empty_variable_is_unset_and_other_variables_are_ignored():
    env = {"QUEUEPOOL_POOL_WORKERS": " ", "QUEUEPOOL_CONFIG": "x", "QUEUEPOOL_POOLS": "x", "POOL_WORKERS": "x"}

    assert load(None, {}, {}).pools == load(None, {}, env).pools


def test_the_plain_pool_is_a_pool_when_it_is_the_only_one(write):
    config = load(write("[pool]\nworkers = 2\n"), {}, {})

    assert [("default", 2)] == [(pool.name, pool.workers) for pool in config.pools]


def test_the_plain_pool_holds_the_defaults_of_the_named_ones(write):
    config = load(write("[pool:a]\ntries = 2\n[pool]\nworkers = 2\ntries = 9\n[pool:b]\n"), {}, {})

    assert [("a", 2, 2), ("b", 2, 9)] == [(pool.name, pool.workers, pool.tries) for pool in config.pools]


def test_a_pool_works_on_the_connection_it_names(write):
    path = write("[pool]\nconnection = b\n[connection]\nblock_for = 2\n[connection:a]\n[connection:b]\nurl=redis://b\n")
    config = load(path, {}, {})

    assert ["a", "b"] == list(config.connections)
    assert ConnectionSettings(name="b", url="redis://b", block_for=2.0) == config.pools[0].connection


def test_a_pool_that_does_not_say_works_on_the_only_connection(write):
    config = load(write("[connection:reports]\nrenew = yes\n"), {}, {})

    assert "reports" == config.pools[0].connection.name


def test_a_plain_connection_with_a_url_stays_the_default_beside_named_ones(write):
    config = load(write("[connection]\nurl = redis://a\n[connection:reports]\nurl = redis://b\n"), {}, {})

    assert "redis://a" == config.pools[0].connection.url
    assert ["default", "reports"] == list(config.connections)


def test_the_connections_cannot_be_changed():
    with pytest.raises(TypeError):
        load(None, {}, {}).connections["default"] = ConnectionSettings()


@each(
    "text",
    [
        "\ufeff[pool]\nworkers = 2\n",
        "[pool]\r\nworkers = 2\r\n",
        "[pool]\nworkers\t=\t2\t\n",
        "[pool]\nworkers = 2",
        "\n; a comment\n  # another = one\n[pool]\n  workers=2\n",
    ],
)
def test_a_file_of_any_editor_is_read(write, text):
    assert 2 == load(write(text), {}, {}).pools[0].workers


@each(
    ("raw", "value"),
    [(" 60 ", 60), ("60s", 60), ("2m", 120), ("1h", 3600), ("2d", 172800), ("0.5", 0.5), ("1.5m", 90), ("0", 0)],
)
def test_times_are_seconds_or_have_a_unit(raw, value):
    assert value == flagged(pool_timeout=raw).pools[0].timeout


@each(
    ("raw", "value"), [("0", 0), ("128", 128), ("128M", 128), ("128MB", 128), ("1G", 1024), ("1GB", 1024), ("16", 16)]
)
def test_memory_is_in_megabytes_or_has_a_unit(raw, value):
    assert MemoryLimit(value) == flagged(pool_memory=raw).pools[0].memory


@each(("raw", "value"), [("+64", 64), ("+1", 1), ("+1G", 1024), ("+0.5G", 512)])
def test_memory_may_be_given_above_the_size_after_boot(raw, value):
    assert MemoryLimit(value, is_above_boot=True) == flagged(pool_memory=raw).pools[0].memory


@each("raw", ["+0", "+", "++64", "+ 64", "+2000G"])
def test_a_bad_size_above_the_size_after_boot_is_refused(raw):
    assert "--memory: " in refusal(None, {"pool.memory": raw})


@each("raw", ["yes", "true", "on", "1", "YES"])
def test_every_way_to_say_yes_is_understood(raw):
    assert flagged(pool_force=raw).pools[0].force is True


@each("raw", ["no", "false", "off", "0", "No"])
def test_every_way_to_say_no_is_understood(raw):
    assert flagged(connection_renew=raw).pools[0].connection.renew is False


@each(("raw", "value"), [("1", 1), ("1024", 1024), ("auto", min(os.cpu_count() or 1, 1024))])
def test_workers_are_a_number_or_one_for_each_cpu(raw, value):
    assert value == flagged(pool_workers=raw).pools[0].workers


@each("name", ["a", "emails.high", "{tag}:x", "a-b_c", "q" * 200, ":reserved:x"])
def test_a_plain_queue_name_is_taken(name):
    assert (name,) == flagged(pool_queue=name).pools[0].queues


def test_a_thousand_queues_are_taken():
    assert 1000 == len(flagged(pool_queue=",".join(map(str, range(1000)))).pools[0].queues)


@each(
    "url",
    [
        "redis://h",
        "redis://h/",
        "redis://h:65535/99999",
        "redis://[::1]:6379/0",
        "rediss://u:p@h:1/2?ssl_cert_reqs=required",
        "redis+sentinel://u:p@h1:26379,h2,[::1]:26380/my.main/0?sentinel_user=s&sentinel_password=p%40ss",
        "rediss+sentinel://h1/main?sentinel_tls=0",
        "redis://:p%40ss%2F@h",
        "redis://:a%b&c=d;e@h",
        "unix:///run/redis.sock",
        "unix://u:p@/run/redis.sock?db=3",
        "unix:///" + "x" * 106,
    ],
)
def test_a_good_url_is_kept_as_it_is(url):
    assert url == flagged(connection_url=url).pools[0].connection.url


@each(
    ("url", "kept"),
    [
        ("valkey://h:1/2", "redis://h:1/2"),
        ("valkeys://h", "rediss://h"),
        ("valkey+sentinel://h1,h2/main", "redis+sentinel://h1,h2/main"),
        ("valkeys+sentinel://h1,h2/main/1", "rediss+sentinel://h1,h2/main/1"),
    ],
)
def test_valkey_is_reached_as_redis_is(url, kept):
    assert kept == flagged(connection_url=url).pools[0].connection.url


@each(
    ("one", "other", "is_same"),
    [
        ("redis+sentinel://a,b:26379/m", "rediss+sentinel://u:p@b,a/m/0?sentinel_tls=0", True),
        ("redis+sentinel://a,b/m", "redis+sentinel://a,b/m/1", False),
        ("redis+sentinel://a,b/m", "redis+sentinel://a,b/n", False),
    ],
)
def test_the_primary_of_sentinels_is_the_same_store_however_they_are_named(one, other, is_same):
    assert is_same == (place_of(one) == place_of(other))


@each("password", ["a%%b", "a#b", "a;b", "a ;b", "a #b", "a=b", "a\"b'c", "a b", "pässwörd", "[x]"])
def test_a_password_in_a_file_is_what_was_written(write, password):
    from redis.connection import parse_url

    url = load(write(f"[connection]\nurl = redis://:{password}@h:1/2\n"), {}, {}).pools[0].connection.url

    assert {"password": password, "host": "h", "port": 1, "db": 2} == parse_url(url)


# What is refused


#: besides those of the catalogue: see faults/corpus/configs.py
REFUSED_VALUES = [
    *[("pool", "timeout", raw) for raw in (".5", "5.", "1,5", "87601h", "3651d", "9" * 400)],
    *[("pool", "sleep", raw) for raw in ("-0.5", "soon")],
    *[("pool", "backoff", raw) for raw in ("", "1,", "1,,2", "1,x", "[1,5]")],
    *[("pool", "tries", raw) for raw in ("", "-1", "1.5", "３", "1_0")],
    *[("pool", "memory", raw) for raw in ("10 TB", "128m")],
    *[("pool", "force", raw) for raw in ("", "2", "maybe", "y")],
    *[("pool", "modules", raw) for raw in ("app/jobs.py", "app.", "1app", "app.class", "a,,b", "a b")],
    *[("pool", "connection", raw) for raw in ("nosuch", "", "a b")],
    *[("pool", "log", raw) for raw in ('"/var/log/q"',)],
    *[("connection", "driver", raw) for raw in ("sqlite", "Redis", "null")],
    *[("connection", "failed", raw) for raw in ("none", "postgresql")],
    *[("connection", "retry_after", raw) for raw in ("0", "-1", "")],
    *[("connection", "block_for", raw) for raw in ("0", "null")],
    *[("connection", "restart_key", raw) for raw in ("",)],
    *[("connection", "prefix", raw) for raw in ("'laravel_'", '"x"')],
]


@each(("section", "key", "raw"), REFUSED_VALUES)
def test_a_value_that_cannot_be_is_refused_with_its_place(write, section, key, raw):
    message = refusal(write(f"[{section}]\n\n{key} = {raw}\n"))

    assert message.startswith(f"pool.ini:3: [{section}] {key}: ")
    assert 1 == len(message.splitlines())
    assert 200 > len(message)


@each("raw", ["1m30", "inf", "1e3", "-1", ""])
def test_a_bad_time_is_answered_with_the_units(raw):
    assert "seconds (60, 0.5), or a unit: 60s, 2m, 1h, 1d" in refusal(None, {"pool.timeout": raw})


@each("raw", ["128K", "50%", "lots"])
def test_a_bad_size_is_answered_with_the_units(raw):
    assert "MB (128, 128M, 128MB) or GB (1G, 1GB)" in refusal(None, {"pool.memory": raw})


def test_memory_below_any_workers_baseline_is_refused():
    assert "--memory: '8' is below any worker's baseline (16 MB)" in refusal(None, {"pool.memory": "8"})


def test_hard_memory_below_memory_is_refused(write):
    message = refusal(write("[pool]\nmemory = 256\nmemory_hard = 128\n"))

    assert "pool.ini:3: [pool] memory_hard: 128 is below memory (256)" == message


@each(
    "line",
    [
        "[pool]\nworkers = 4 ; four",
        "[pool]\nworkers = 4\t# four",
        "[pool] ; the pool",
        "[pool]\nqueue = a ; b",
        "[pool]\nforce = yes ; always",
        "[connection]\nprefix =               ; Laravel: laravel_database_",
        "[connection]\ncontrol_url =          ; where that key lives",
        "[connection]\nurl = redis://h:1/2    ; the store",
    ],
)
def test_an_inline_comment_is_refused_as_such(write, line):
    assert refusal(write(f"{line}\n")).endswith(
        "inline comments are not supported: put the comment on a line of its own"
    )


@each(
    ("line", "expected"),
    [
        ("[pool]\nworker = 4", "pool.ini:2: [pool] worker: unknown key; did you mean 'workers'?"),
        ("[pool]\nWorkers = 4", "pool.ini:2: [pool] Workers: unknown key; did you mean 'workers'?"),
        ("[pool]\nmax-jobs = 4", "pool.ini:2: [pool] max-jobs: unknown key; did you mean 'max_jobs'?"),
        ("[pool:a]\nqueues = b", "pool.ini:2: [pool:a] queues: unknown key; did you mean 'queue'?"),
        ("[pool]\nurl = redis://h", "pool.ini:2: [pool] url: unknown key; it belongs in [connection]"),
        ("[pool]\ninclude = other.ini", "pool.ini:2: [pool] include: unknown key"),
        ("[Pool]", "pool.ini:1: [Pool]: unknown section; did you mean [pool]?"),
        ("[pol:web]", "pool.ini:1: [pol:web]: unknown section; did you mean [pool:web]?"),
        ("[conection]\nurl = x", "pool.ini:1: [conection]: unknown section; did you mean [connection]?"),
    ],
)
def test_an_unknown_key_or_section_is_refused_with_what_was_meant(write, line, expected):
    assert expected == refusal(write(f"{line}\n"))


@each(
    ("text", "expected"),
    [
        ("[pool]\ntries = 1\ntries = 2\n", "pool.ini:3: [pool] tries: is already in line 2"),
        ("[pool]\n[connection]\n[pool]\n", "pool.ini:3: [pool]: is already in line 1"),
        ("[pool:a]\n[pool:a]\n", "pool.ini:2: [pool:a]: is already in line 1"),
        ("workers = 1\n[pool]\n", "pool.ini:1: workers: stands before the first section"),
        ("[pool]\nworkers\n", "pool.ini:2: is not `key = value` (a value cannot span several lines)"),
        ("[pool]\nmodules = a,\n  b\n", "pool.ini:3: is not `key = value`"),
        ("[pool\n", "pool.ini:1: a section is written [pool] or [pool:NAME], without spaces"),
        ("[pool: a]\n", "pool.ini:1: a section is written [pool] or [pool:NAME], without spaces"),
        ("[pool] workers\n", "pool.ini:1: [pool]: nothing may follow a section's name"),
        ("[pool:]\n", "pool.ini:1: [pool:]: a name is up to 64"),
        ("[pool:..]\n", "pool.ini:1: [pool:..]: a name is up to 64"),
        ("[cache]\n", "pool.ini:1: [cache]: unknown section; there are [pool], [pool:NAME]"),
        ("", "pool.ini: no [pool] section"),
        ("; nothing\n\n", "pool.ini: no [pool] section"),
    ],
)
def test_a_malformed_file_is_refused_with_the_line(write, text, expected):
    assert expected in refusal(write(text))


@each(
    ("data", "expected"),
    [
        (b"[pool]\nworkers = \0\n", "pool.ini:2: contains a NUL byte"),
        (b"[pool]\n\n; caf\xe9\n", "pool.ini:3: is not UTF-8"),
        ("[pool]\n".encode("utf-16"), "pool.ini:1: contains a NUL byte"),
        (b"[connection]\nprefix = a\x07b\n", "pool.ini:2: [connection] prefix: contains a tab, a line break or"),
        (b"[pool]\nqueue = a,\tb\n", "pool.ini:2: [pool] queue: contains a tab, a line break or"),
        (b"[pool]\nworkers = 4\xc2\xa0\n", "pool.ini:2: [pool] workers: '4\\xa0' is neither a number"),
        (b"[pool]\n" + b"; filler\n" * 120_000, "pool.ini: is larger than 1 MB, the most that is read"),
    ],
)
def test_bytes_that_are_no_configuration_are_refused(write, data, expected):
    assert expected in refusal(write(data))


def test_a_password_that_every_user_can_read_is_refused(write):
    path = write(f"[connection]\nurl = redis://:{SECRET}@h\n")
    path.chmod(0o644)
    message = refusal(path)

    assert "pool.ini:2: [connection] url: holds a password that every user can read: chmod 600 pool.ini" == message


@each(("mode", "url"), [(0o640, "redis://:p@h"), (0o644, "redis://h:1/2"), (0o644, "unix:///a@b")])
def test_a_file_without_an_open_secret_is_taken(write, mode, url):
    path = write(f"[connection]\nurl = {url}\n")
    path.chmod(mode)

    assert url == load(path, {}, {}).pools[0].connection.url


BAD_URLS = [
    f"redis://:p@{SECRET}@h",
    f"redis://:{SECRET}@s@h:1/0",
    f"redis://:{SECRET}/x@h",
    f"redis://:{SECRET}?x@h",
    f"redis://:{SECRET}",
    f"redis://:{SECRET}/0",
    f":{SECRET}@h",
    f"//:{SECRET}@h",
    f"http://:{SECRET}@h",
    f"redis//:{SECRET}@h",
    f"REDIS://:{SECRET}@h",
    f"redis://:{SECRET}@h:0",
    f"redis://:{SECRET}@h:70000",
    f"redis://:{SECRET}@h:abc",
    f"redis://:{SECRET}@h:６３",
    f"redis://:{SECRET}@h/-1",
    f"redis://:{SECRET}@h/100000",
    f"redis://:{SECRET}@h/0/x",
    f"redis://:{SECRET}@h/x",
    f"redis://:{SECRET}@::1:6379",
    f"redis://:{SECRET}@[::1",
    f"redis://:{SECRET}@[:::1]",
    f"redis://:{SECRET}@a b",
    f"redis://:{SECRET}@h#x",
    f"redis://:{SECRET}@",
    f"redis://:{SECRET}@h?junk=1",
    f"redis://h?password={SECRET}",
    f"rediss://:{SECRET}@h?ssl_cert_reqs=none",
    f"redis+sentinel://:{SECRET}@h1,h2",
    f"redis+sentinel://:{SECRET}@h1,h2/",
    f"redis+sentinel://:{SECRET}@h1,,h2/main",
    f"redis+sentinel://:{SECRET}@h1,h2:0/main",
    f"redis+sentinel://:{SECRET}@h1/main/x",
    f"redis+sentinel://h1/main?sentinel_password={SECRET}@x",
    f"redis+sentinel://h1/main?password={SECRET}",
    f"redis-sentinel://:{SECRET}@h1/main",
    f"unix://:{SECRET}@h/run/x.sock",
    f"unix://:{SECRET}@",
    f"unix://:{SECRET}@/" + "x" * 107,
    f"unix://:{SECRET}@/x?db=-1",
    f'"redis://:{SECRET}@h"',
    "redis://",
    "redis:///0",
    "localhost:6379",
    "",
]


@each("url", BAD_URLS)
@each("mode", [0o600, 0o644])
def test_a_bad_url_is_refused_without_its_password(write, mode, url):
    path = write(f"[connection]\nurl = {url}\n")
    path.chmod(mode)
    message = refusal(path)

    assert "pool.ini:2: [connection] url: " in message
    assert SECRET not in message


@each("url", BAD_URLS[1:])
def test_masking_never_shows_a_password(url):
    assert SECRET not in masked(url)


@each(
    ("url", "expected"),
    [
        ("redis://h:1/2", "redis://h:1/2"),
        (f"redis://me:{SECRET}@h:1/2", "redis://***@h:1/2"),
        (f"redis://:p@{SECRET}@h", "redis://***@h"),
        (f"rediss://:{SECRET}@[::1]:1/0?ssl_ca_certs=/x", "rediss://***@[::1]:1/0?***"),
        (
            f"redis+sentinel://:{SECRET}@h1:1,h2/main/0?sentinel_password={SECRET}",
            "redis+sentinel://***@h1:1,h2/main/0?***",
        ),
        ("unix:///run/r.sock", "unix:///run/r.sock"),
        (f"unix://:{SECRET}@/run/r.sock", "unix://***@/run/r.sock"),
        (f"redis://:{SECRET}", "***"),
        (f"redis:///:{SECRET}@/x y", "***"),
        (SECRET, "***"),
    ],
)
def test_a_masked_url_still_says_where(url, expected):
    assert expected == masked(url)


@each(
    "text",
    [
        f"[pool]\nworkers = redis://:{SECRET}@h",
        f"[pool]\nqueue = :{SECRET}@h",
        f"[connection]\nredis://:{SECRET}@h",
        f"[connection]\nredis://:{SECRET}=x@h",
        f"[connection:redis://:{SECRET}@h]",
        f"redis://:{SECRET}@h",
    ],
)
def test_a_misplaced_url_does_not_show_its_password(write, text):
    assert SECRET not in refusal(write(text))


@each(
    ("timeout", "said"),
    [
        ("90", "90 with grace 1 is not below retry_after (90) and renew is off; jobs would run twice; at most 88"),
        ("89", "89 with grace 1 is not below retry_after (90) and renew is off; jobs would run twice; at most 88"),
        ("0", "0, no limit, is not below retry_after (90) and renew is off; jobs would run twice; at most 88"),
    ],
)
def test_a_timeout_that_outlasts_its_lease_is_refused_when_nobody_renews_it(write, timeout, said):
    message = refusal(write(f"[pool]\ntimeout = {timeout}\n[connection]\nrenew = no\n"))

    assert message.startswith(f"pool.ini:2: [pool] timeout: {said}")


def test_a_default_timeout_that_outlasts_its_lease_is_refused_at_its_pool(write):
    message = refusal(write("[pool:a]\n[connection]\nrenew = no\nretry_after = 1\n"))

    assert message.startswith("pool.ini:1: [pool:a] timeout: 60 with grace 1 is not below retry_after (1)")
    assert "raise retry_after" in message


@each(("timeout", "renew"), [("88", "no"), ("88.9", "no"), ("90", "yes"), ("0", "yes")])
def test_a_timeout_within_its_lease_or_with_a_renewed_one_is_taken(timeout, renew):
    assert float(timeout) == flagged(pool_timeout=timeout, connection_renew=renew).pools[0].timeout


def test_a_pool_that_would_take_laravels_outcomes_is_refused(write):
    message = refusal(write("[pool]\nqueue = default,done\n[connection]\noutcomes = done\n"))

    assert message == "pool.ini:2: [pool] queue: done is the queue of `outcomes`, which a Laravel worker must serve"


def test_reports_of_members_cannot_share_the_queue_of_outcomes(write):
    message = refusal(write("[connection]\noutcomes = ends\nflow_reports = ends\n"))

    assert message.startswith("pool.ini:3: [connection] flow_reports: ends is the queue of `outcomes`")


def test_an_unknown_connection_is_refused_with_those_there_are(write):
    path = write("[pool:a]\nconnection = c\n[pool:b]\n[connection:x]\n[connection:y]\n")

    assert [
        "pool.ini:2: [pool:a] connection: there is no connection 'c', only: x, y",
        "pool.ini:3: [pool:b] connection: there is no connection 'default', only: x, y",
    ] == refusal(path).splitlines()


def test_all_problems_are_told_at_once_and_each_once(write):
    path = write("[pool]\nworkers = 0\nworker = 1\n[pool:a]\ntries = x\n[pool:b]\nwhat\n[connection]\nurl = http://h\n")
    message = refusal(path, {"pool.max_jobs": "-1"}, {"QUEUEPOOL_CONNECTION_DRIVER": "file"})

    assert [
        "QUEUEPOOL_CONNECTION_DRIVER: 'file' is not supported",
        "--max-jobs: '-1' is not a whole number",
        "pool.ini:2: [pool] workers: '0' is neither",
        "pool.ini:3: [pool] worker: unknown key",
        "pool.ini:5: [pool:a] tries: 'x' is not a whole number",
        "pool.ini:7: is not `key = value`",
        "pool.ini:9: [connection] url: must begin with",
    ] == [re.split(r"[;(]| from| a number| redis:", line)[0].strip() for line in message.splitlines()]


@each(
    ("url", "prefix", "words"),
    [
        ("redis://h", "laravel\0horizon:", "control character"),
        ("redis://h", "laravel\nhorizon:", "control character"),
        ("sqlite:///queuepool.db", "laravel_horizon:", "Horizon is on Redis"),
        ("postgresql://u@h/d", "laravel_horizon:", "Horizon is on Redis"),
        ("redis+cluster://h", "laravel_horizon:", "has no hash tag"),
    ],
)
def test_B190_where_horizon_cannot_show_a_pool(url: str, prefix: str, words: str) -> None:
    tag = {"connection.prefix": "{app}:"} if "cluster" in url else {}
    found = refusal(None, {"connection.url": url, "pool.horizon": prefix, **tag})

    assert 1 == len(found.splitlines())
    assert words in found


def test_a_bad_flag_is_named_as_it_was_typed():
    assert refusal(None, {"pool.max_jobs": "x"}).startswith("--max-jobs: 'x' is not a whole number")


def test_an_empty_flag_is_not_unset():
    assert refusal(None, {"pool.workers": ""}).startswith("--workers: ''")


def test_a_flag_of_no_setting_is_refused():
    assert "--workres: unknown key; did you mean 'workers'?" == refusal(None, {"pool.workres": "1"})
    assert "--workers: unknown key; it belongs in [pool]" == refusal(None, {"workers": "1"})


@each(
    ("name", "value", "expected"),
    [
        ("QUEUEPOOL_POOL_WORKERS", "x", "QUEUEPOOL_POOL_WORKERS: 'x' is neither a number"),
        ("QUEUEPOOL_POOL_WROKERS", "4", "QUEUEPOOL_POOL_WROKERS: unknown key; did you mean 'workers'?"),
        ("QUEUEPOOL_POOL_Workers", "4", "QUEUEPOOL_POOL_Workers: unknown key; did you mean 'workers'?"),
        ("QUEUEPOOL_CONNECTION_URI", "x", "QUEUEPOOL_CONNECTION_URI: unknown key; did you mean 'url'?"),
        ("QUEUEPOOL_POOL_QUEUE", "a\nb", "QUEUEPOOL_POOL_QUEUE: contains a tab, a line break or"),
        ("QUEUEPOOL_CONNECTION_URL", "redis://h\udc80", "QUEUEPOOL_CONNECTION_URL: contains a tab, a line break or"),
    ],
)
def test_a_bad_variable_is_refused_by_its_name(name, value, expected):
    assert refusal(None, env={name: value}).startswith(expected)


def test_flags_and_variables_are_judged_also_when_the_file_is_missing(tmp_path):
    assert 2 == len(refusal(tmp_path / "none", {"pool.workers": "0"}).splitlines())


# Variables of the environment


def with_variables(write: Write, url: str, **environ: str) -> str:
    return load(write(f"[connection]\nurl = {url}\n"), {}, environ).connections["default"].url


@each(
    ("url", "environ", "expected"),
    [
        ("${REDIS_URL}", {"REDIS_URL": "redis://u:p%40@h:1/2"}, "redis://u:p%40@h:1/2"),
        ("redis://:${PW}@h", {"PW": "a@b/c?d:e%f"}, "redis://:a%40b%2Fc%3Fd%3Ae%25f@h"),
        ("redis://${USER_NAME}:x${PW}@${HOST}:${PORT}/0", {"USER_NAME": "u", "PW": "p", "HOST": "h", "PORT": "1"},
         "redis://u:xp@h:1/0"),
        ("redis://:a$${b}$c@h", {}, "redis://:a$%7Bb%7D$c@h"),
        ("redis+sentinel://h/m?sentinel_user=${U}&sentinel_password=${PW}", {"U": "u@", "PW": "p&+%"},
         "redis+sentinel://h/m?sentinel_user=u%40&sentinel_password=p%26%2B%25"),
    ],
)  # fmt: skip
def test_a_variable_stands_for_what_it_holds(write, url, environ, expected):
    assert expected == with_variables(write, url, **environ)


@each(
    ("url", "environ", "words"),
    [
        ("redis://:${PW}@h", {}, "the environment variable PW is not set, or empty; write $${ for a literal ${"),
        ("redis://:${PW}@h", {"PW": ""}, "the environment variable PW is not set, or empty"),
        ("redis://:${PW}@h", {"PW": f"{SECRET}\n"}, "the environment variable PW holds a line break"),
        (f"redis://:${{{SECRET}:-x}}@h", {}, "has a ${ that names no environment variable: write ${NAME}"),
        (f"redis://:a${{{SECRET}@h", {}, "has a ${ that names no environment variable: write ${NAME}"),
    ],
)
def test_a_variable_that_is_not_there_is_never_sent_as_a_password(write, url, environ, words):
    path = write(f"[connection]\nurl = {url}\n")
    message = refusal(path, env=environ)

    assert message.startswith(f"pool.ini:2: [connection] url: {words}")
    assert SECRET not in message


def test_what_a_variable_holds_is_repeated_in_no_error(write):
    path = write("[pool]\nworkers = ${N}\nqueue = a,${N}\n[connection]\nfailed = ${N}\nurl = ${N}\n")
    message = refusal(path, env={"N": f"{SECRET} {SECRET}"})

    assert 4 == len(message.splitlines())
    assert "[pool] workers: its value is neither a number" in message
    assert SECRET not in message


def test_variables_and_flags_may_name_variables_too():
    environ = {"QUEUEPOOL_CONNECTION_RESTART_KEY": "${APP}_", "APP": "shop"}

    assert ("shop_", 3) == (
        load(None, {}, environ).connections["default"].restart_key,
        load(None, {"pool.workers": "${N}"}, {"N": "3"}).pools[0].workers,
    )


def test_an_error_of_connect_speaks_of_connect_and_not_of_flags():
    with pytest.raises(ConfigError, match=r"^connect\(url=...\): must begin with redis://"):
        connect("http://h")


# Schedules


def test_every_key_of_a_schedule_reaches_its_setting(write):
    path = write(
        """
        [pool]
        [connection:a]
        url = redis://a
        [connection:b]
        url = redis://b
        [pool:one]
        connection = a
        [pool:two]
        connection = b
        [schedule]
        timezone = Europe/Berlin
        late = 2h
        connection = a
        [schedule:nightly]
        cron = 0 3 * * *
        job = app.jobs.report
        data = {"kind": "daily"}
        queue = reports
        overlap = no
        [schedule:tick]
        connection = b
        timezone = UTC
        every = 2m
        object = App\\Jobs\\Tick
        """
    )
    config = load(path, {}, {})
    nightly = ScheduleSettings(
        name="nightly", connection=config.connections["a"], cron="0 3 * * *", job="app.jobs.report",
        data='{"kind": "daily"}', queue="reports", timezone="Europe/Berlin", late=7200.0, overlap=False,
    )  # fmt: skip
    tick = ScheduleSettings(
        name="tick", connection=config.connections["b"], every=120, object="App\\Jobs\\Tick", late=7200.0
    )

    assert (nightly, tick) == config.schedules
    assert [(nightly,), (tick,)] == [pool.schedules for pool in config.pools]


def test_a_schedule_takes_the_only_connection_and_every_pool_on_it_pushes(write):
    config = load(write("[pool:a]\n[pool:b]\n[connection:x]\n[schedule:s]\nevery = 1s\njob = j\n"), {}, {})

    assert config.connections["x"] == config.schedules[0].connection
    assert [config.schedules, config.schedules] == [pool.schedules for pool in config.pools]


def test_a_variable_sets_a_default_of_all_schedules(write):
    path = write("[schedule:s]\nevery = 1s\njob = j\n")
    config = load(path, {}, {"QUEUEPOOL_SCHEDULE_LATE": "5m"})

    assert [300.0] == [one.late for one in config.schedules]


@pytest.mark.bad_input("B131")
def test_the_defaults_of_schedules_hold_no_schedule(write):
    text = "[schedule]\njob = j\nlate = 5m\n[schedule:s]\nevery = 1s\n"

    assert "pool.ini:2: [schedule] job: belongs in [schedule:NAME]; [schedule] only holds defaults" == refusal(
        write(text)
    )


def test_a_schedule_needs_a_connection_that_a_pool_uses(write):
    text = "[connection:a]\nurl = redis://a\n[connection:b]\nurl = redis://b\n[pool]\nconnection = a\n"
    schedule = "[schedule:s]\nevery = 1s\njob = j\nconnection = "

    assert (
        "pool.ini:10: [schedule:s] connection: no pool uses connection 'b', so nothing would push the job"
        == refusal(write(f"{text}{schedule}b\n"))
    )
    assert "there is no connection 'c', only: a, b" in refusal(write(f"{text}{schedule}c\n"))


# Alerts


def test_without_the_section_there_are_no_alerts(write):
    assert [None] == [pool.alerts for pool in load(write("[pool]\n"), {}, {}).pools]


def test_every_key_of_alerts_reaches_the_setting_of_all_pools(write):
    path = write(
        """
        [pool:a]
        queue = default,mail
        [pool:b]
        queue = imports
        [alerts]
        wait = 2m, imports:1h, mail:0
        overdue = 10s
        unserved = 10m
        failures = 12.5%
        running = 0
        failed = 5
        quarantine = 2
        crashes = 3
        failed_flows = 4
        stalled = 2d
        lost = 30m
        store = 5m
        repeat = 24h
        exec = /usr/local/bin/page --team "web ops"
        webhook = slack:https://hooks.slack.com/services/T/B/x
        """
    )
    a, b = load(path, {}, {}).pools
    expected = AlertSettings(
        wait=(("", 120.0), ("mail", 0.0)), overdue=10.0, unserved=600.0, failures=0.125, running=0.0, failed=5,
        quarantine=2, crashes=3, failed_flows=4, stalled=172800.0, lost=1800.0, store=300.0, repeat=86400.0,
        program=("/usr/local/bin/page", "--team", "web ops"),
        webhook=Webhook("https://hooks.slack.com/services/T/B/x", "slack"),
    )  # fmt: skip

    assert (expected, replace(expected, wait=(("", 120.0), ("imports", 3600.0)))) == (a.alerts, b.alerts)


def test_every_alert_is_switched_off_by_0(write):
    kinds = (
        "wait", "overdue", "unserved", "failures", "running", "failed", "quarantine", "crashes", "failed_flows",
        "stalled", "lost", "store",
    )  # fmt: skip
    [pool] = load(write("[alerts]\n" + "".join(f"{kind} = 0\n" for kind in kinds)), {}, {}).pools

    assert (0.0, *[0] * 11) == (pool.alerts.wait_of("any"), *(getattr(pool.alerts, kind) for kind in kinds[1:]))


def test_a_variable_switches_alerts_on_and_sets_them(write):
    config = load(write("[pool]\n"), {}, {"QUEUEPOOL_ALERTS_WAIT": "90"})

    assert [AlertSettings(wait=(("", 90.0),))] == [pool.alerts for pool in config.pools]


@pytest.mark.bad_input("B150")
@each(
    ("line", "words"),
    [
        ("wait = -1", "'-1' is not a time"),
        ("wait = default:60,imports:1h", "no pool serves queue 'imports', only: default"),
        ("wait = 60,90", "has two times for all queues"),
        ("wait = default:60,default:61", "'default' is given twice"),
        ("wait = default:", "'' is not a time"),
        ("wait =", "'' is not a time"),
        ("wait = a b:60", "'a b' is not a queue name"),
        ("failures = 200%", "'200%' is not a percentage from 0% to 100%"),
        ("failures = 00", "'00' is not a percentage"),
        ("failures = 0.2", "'0.2' is not a percentage"),
        ("failures = -1%", "'-1%' is not a percentage"),
        ("failed = many", "'many' is not a whole number"),
        ("quarantine = -1", "'-1' is not a whole number"),
        ("crashes = 1.5", "'1.5' is not a whole number"),
        ("lost = 2h", "'2h' is longer than half an hour (30m): a lost pool is forgotten after 1h"),
        ("repeat = 0", "must be above 0 seconds"),
        ("store = soon", "'soon' is not a time"),
        ("exec = page", "'page' is not an absolute path, as /usr/local/bin/page is"),
        ("exec = /bin/mail 'a", "is not a command: no closing quotation"),
        (f"exec = /bin/mail {'x' * 5000}", "is longer than 4096 characters"),
        (f"webhook = ftp://{SECRET}", "is not a URL like https://host/path"),
        (f"webhook = slack:{SECRET}", "is not a URL like https://host/path"),
        (f"webhook = https://u:{SECRET}@h/x", "has a login before its host, which is not supported"),
        ("webhook = https://h:99999/x", "is not a URL like https://host/path"),
        ("webhook = https:///x", "is not a URL like https://host/path"),
        (f"webhook = https://h/{'x' * 5000}", "is longer than 4096 characters"),
        ("waits = 60", "unknown key; did you mean 'wait'?"),
    ],
)
def test_a_wrong_value_of_alerts_is_refused_with_its_line(write, line, words):
    refused = refusal(write(f"[pool]\n[alerts]\n{line}\n"))

    assert refused.startswith(f"pool.ini:3: [alerts] {line.partition(' ')[0]}: {words}")
    assert SECRET not in refused


@pytest.mark.bad_input("B150")
def test_there_is_one_section_of_alerts(write):
    refused = "pool.ini:2: [alerts:mail]: there is only one section of alerts, for all pools: [alerts]"

    assert refused == refusal(write("[pool]\n[alerts:mail]\n"))


def test_a_webhook_is_a_secret(write):
    path = write("[pool]\n[alerts]\nwebhook = https://h/x\n")
    path.chmod(0o644)

    assert "holds a webhook that every user can read" in refusal(path)
    assert "https" not in repr(AlertSettings(webhook=Webhook("https://h/x")))


# The shipped file


def documented(section: str) -> dict[str, tuple[str, str]]:
    """By key of the shipped file: the default that its comment states, and its value."""
    body = re.split(r"^\[(\w+)\]$", SHIPPED.read_text(), flags=re.MULTILINE)
    text = body[body.index(section) + 1]
    found = re.findall(r"^; [^\n]*Default: (.+)\n(\w+) =(.*)$", text, flags=re.MULTILINE)
    return {key: (stated, value.strip()) for stated, key, value in found}


#: fields that no key says
OF_THE_LOADER = {"name", "embedded", "migrate", "config", "schedules", "job_schedules", "alerts", "has_neighbours"} | {
    "weights"  # they stand beside the queues
}


@each("section", SECTIONS)
def test_every_field_has_its_key_and_the_shipped_file_documents_it_at_its_default(section):
    said = documented(section)
    config = load(None, {}, {})
    defaults = {"pool": config.pools[0], "connection": config.connections["default"]}
    others = {"alerts": AlertSettings(), "schedule": ScheduleSettings(name="nightly"), "web": WebSettings()}
    default = (defaults | others)[section]

    assert {field.name for field in fields(SECTIONS[section])} - OF_THE_LOADER == {
        one.name for one in KEYS[section].values()
    }
    assert list(KEYS[section]) == list(said)
    for key, (stated, value) in said.items():
        assert stated == value or (stated == "empty" and not value)
        if key != "connection":
            assert KEYS[section][key].parse(value) == getattr(default, KEYS[section][key].name)


def test_the_shipped_file_loads_as_it_is(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where its queue lies
    config, default = load(write(SHIPPED.read_bytes()), {}, {}), load(None, {}, {})

    assert (default.pools, default.connections) == (config.pools, config.connections)
    assert () == config.schedules
