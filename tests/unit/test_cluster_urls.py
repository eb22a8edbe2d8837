"""URLs of Redis Clusters, and the hash tags of their keys."""

from __future__ import annotations

import pytest

from queuepool.config.connections import contradictions, tag_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import is_cluster, kind_of, masked, nodes_of, of_one_node, options_of, place_of, url
from queuepool.jobs.connecting import settings_at
from tests.support.each import each

SEVERAL = "redis+cluster://me:s%40@h1:7000,h2,[::1]:7002/"


@each(
    ("given", "kept"),
    [
        ("redis+cluster://h1:7000,h2/", "redis+cluster://h1:7000,h2/"),
        ("redis+cluster://h1", "redis+cluster://h1"),
        ("redis+cluster://h1/0", "redis+cluster://h1/0"),
        ("rediss+cluster://:p@h1,h2?ssl_ca_certs=/ca.pem", "rediss+cluster://:p@h1,h2?ssl_ca_certs=/ca.pem"),
        ("valkey+cluster://h1,h2/", "redis+cluster://h1,h2/"),
        ("valkeys+cluster://h1", "rediss+cluster://h1"),
        ("valkey://h1/3", "redis://h1/3"),
        ("valkeys://h1", "rediss://h1"),
    ],
)
def test_a_good_url_is_taken_and_valkeys_as_that_of_redis(given, kept):
    assert kept == url(given)


@each(
    "given",
    [
        "redis+cluster://",
        "redis+cluster:///0",
        "redis+cluster://h1,",
        "redis+cluster://h1,,h2",
        "redis+cluster://h1,h 2",
        "redis+cluster://h1:0,h2",
        "redis+cluster://h1,::1",
        "redis+cluster://h1,h2/1",
        "redis+cluster://h1,h2/x",
        "redis+cluster://h1@h2,h3@h4",
        "redis+cluster://h1,h2?ssl_ca_certs=/x",
        "redis://h1,h2",
        "redis://h1:6379/0,redis://h2:6379/0",
        "valkey+unix://h1",
    ],
)
def test_a_bad_url_is_refused(given):
    words = r"has no host|names (a database|several)|has one @ too many|wrong option|must begin"
    with pytest.raises(ValueError, match=words):
        url(given)


def test_the_parts_of_a_url():
    assert [("h1", 7000), ("h2", 6379), ("::1", 7002)] == nodes_of(SEVERAL)
    assert "redis://me:s%40@h1:7000/" == of_one_node(SEVERAL)
    assert "rediss://h1/?ssl_ca_certs=/a,b" == of_one_node("rediss+cluster://h1,h2/?ssl_ca_certs=/a,b")
    assert {"ssl_ca_certs": "/a b"} == options_of("rediss+cluster://h1,[::1]:1/?ssl_ca_certs=/a%20b")
    assert ("redis", True, False) == (kind_of(SEVERAL), is_cluster(SEVERAL), is_cluster("redis://h"))


def test_a_url_is_shown_without_its_password_and_is_one_place_however_it_is_written():
    assert "redis+cluster://***@h1:7000,h2,[::1]:7002/" == masked(SEVERAL)
    assert "redis cluster h1:7000 h2:6379" == place_of("redis+cluster://:x@h2,h1:7000/")
    # Newer Pythons refuse to split these as one host.
    assert "redis cluster ::1:6379 ::2:6379" == place_of("redis+cluster://[::1],[::2]")
    assert "redis sentinel m ::1:26379 ::2:26379 0" == place_of("redis+sentinel://[::1],[::2]/m")
    assert place_of("rediss+cluster://h2:6379,h1:7000") == place_of("redis+cluster://h1:7000,h2/0")


@each(
    ("name", "tag"),
    [
        ("{app}:x", "app"),
        ("a:{b}{c}", "b"),
        ("{{a}}", "{a"),
        ("{a", ""),
        ("a}b", ""),
        ("{}{a}", ""),
        ("}{a}", "a"),
        ("", ""),
    ],
)
def test_a_hash_tag_is_what_a_cluster_takes_for_it(name, tag):
    assert tag == tag_of(name)


def test_the_restart_key_is_in_the_slot_unless_it_is_given():
    assert "{app}:illuminate:queue:restart" == settings_at("redis+cluster://h1,h2", prefix="{app}:").restart_key
    assert "illuminate:queue:restart" == settings_at("redis://h1", prefix="{app}:").restart_key
    assert "app:{queuepool}:illuminate:queue:restart" == settings_at("redis+cluster://h1", prefix="app:").restart_key
    assert ConnectionSettings().restart_key == settings_at("redis://h1").restart_key


@each(("elsewhere", "refused"), [("redis://h2/1", []), ("redis+cluster://h1", ["maintenance_key"])])
def test_only_keys_in_the_cluster_must_be_in_its_slot(elsewhere, refused):
    url, key = "redis+cluster://h1", "illuminate:foundation:down"
    settings = ConnectionSettings(
        url=url, prefix="{app}:", restart_key="", maintenance_url=elsewhere, maintenance_key=key
    )

    assert refused == [name for name, _ in contradictions(settings)]


@each(
    ("more", "refused"),
    [
        ({"restart_key": "{queuepool}:illuminate:queue:restart"}, []),
        ({"restart_key": "illuminate:queue:restart"}, ["restart_key"]),
        ({"restart_key": "illuminate:queue:restart", "control_url": "redis://h2"}, ["restart_key"]),
        ({"restart_key": "x", "control_url": "redis://h2", "lock_url": "redis://h2"}, []),
        ({"prefix": "a{b:"}, ["prefix"]),
    ],
)
def test_without_a_tag_in_the_prefix_what_belongs_to_no_queue_is_in_a_slot_of_ours(more, refused):
    settings = ConnectionSettings(url="redis+cluster://h1", **more)

    assert refused == [name for name, _ in contradictions(settings)]
