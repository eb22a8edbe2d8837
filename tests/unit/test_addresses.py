"""Addresses to listen on: what they mean, and what is refused."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

import pytest

from queuepool.config.values import Address, address_of, listen
from queuepool.metrics.server import bound, file_of, leave, problem_of
from tests.support.each import each
from tests.support.redis_server import free_port
from tests.unit.test_configuration import Write, load, refusal
from tests.unit.test_configuration import write as write  # a fixture


@each(
    ("raw", "address"),
    [
        ("127.0.0.1:9465", Address("127.0.0.1", 9465)),
        ("localhost:80", Address("127.0.0.1", 80)),
        ("0.0.0.0:65535", Address("0.0.0.0", 65535)),
        ("[::1]:9465", Address("::1", 9465)),
        ("unix:/run/q.sock", Address(path="/run/q.sock")),
    ],
)
def test_an_address_is_an_ip_address_and_a_port_or_a_path(raw, address):
    assert address == address_of(listen(raw))


@pytest.mark.bad_input("B143")
@each(
    ("raw", "words"),
    [
        ("9465", "has no IP address"),
        (":9465", "has no IP address"),
        ("example.org:9465", "has no IP address"),
        ("::1:9465", "has no IP address"),
        ("[127.0.0.1]:80", "has no IP address"),
        ("127.0.0.1", "has no port from 1 to 65535"),
        ("127.0.0.1:0", "has no port from 1 to 65535"),
        ("127.0.0.1:65536", "has no port from 1 to 65535"),
        ("127.0.0.1:٣", "has no port from 1 to 65535"),
        ("unix:run/q.sock", "is not an absolute path"),
        ("unix:" + "/a" * 54, "is longer than the 107 bytes"),
    ],
)
def test_anything_else_is_refused_in_a_line(write: Write, raw: str, words: str):
    assert words in refusal(write(f"[pool]\nlisten = {raw}\n"))
    assert "\n" not in refusal(write(f"[pool]\nlisten = {raw}\n"))


@pytest.mark.bad_input("B143")
def test_two_pools_cannot_share_an_address(write: Write):
    path = write("[pool]\nlisten = 127.0.0.1:9465\n[pool:a]\n[pool:b]\n[pool:c]\nlisten = 127.0.0.1:9466\n")

    assert "pool.ini:2: [pool] listen: 127.0.0.1:9465 is also the address of pool a: each pool needs its own" == (
        refusal(path)
    )
    assert ["", "unix:/a"] == [
        pool.listen for pool in load(write("[pool:a]\n[pool:b]\nlisten = unix:/a\n"), {}, {}).pools
    ]


def test_only_loopback_and_unix_sockets_are_private():
    private = [address_of(raw).is_private for raw in ("127.0.0.9:1", "[::1]:1", "unix:/a", "0.0.0.0:1", "10.0.0.1:1")]

    assert [True, True, True, False, False] == private


@pytest.mark.bad_input("B144")
def test_a_port_in_use_is_a_problem_until_it_is_free():
    address = Address("127.0.0.1", free_port())
    with bound(address):
        assert "Address already in use" == problem_of(address)

    assert "" == problem_of(address)


@pytest.mark.bad_input("B144")
def test_a_socket_in_use_is_one_too_and_an_abandoned_one_is_replaced(tmp_path):
    address = Address(path=str(tmp_path / "q.sock"))
    with bound(address):
        assert "Address already in use" == problem_of(address)
        assert 0o660 == (tmp_path / "q.sock").stat().st_mode & 0o777

    assert (tmp_path / "q.sock").exists()
    assert "" == problem_of(address)
    assert not (tmp_path / "q.sock").exists()


@pytest.mark.bad_input("B144")
def test_what_is_no_socket_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")

    assert "Address already in use" == problem_of(Address(path=str(tmp_path / "file")))
    assert "No such file or directory" == problem_of(Address(path=str(tmp_path / "none/q.sock")))
    assert "mine" == (tmp_path / "file").read_text()


@pytest.mark.bad_input("B144")
def test_an_address_of_another_host_is_a_problem():
    assert "Cannot assign requested address" == problem_of(Address("192.0.2.1", free_port()))


def test_an_address_of_ipv6_takes_no_port_of_ipv4():
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    port = free_port()
    with bound(Address("127.0.0.1", port)):
        assert problem_of(Address("::1", port)) in ("", "Cannot assign requested address")


def test_leaving_removes_our_own_socket_and_no_other(tmp_path):
    address = Address(path=str(tmp_path / "q.sock"))
    bound(address).close()
    own = file_of(address)
    leave(address, own)
    leave(address, own)
    with bound(address):
        leave(address, None)
        leave(address, (0, 0))

        assert (tmp_path / "q.sock").exists()


@pytest.mark.bad_input("B144")
def test_a_process_that_listens_and_accepts_nothing_is_not_waited_for(tmp_path):
    address = Address(path=str(tmp_path / "q.sock"))
    with socket.socket(socket.AF_UNIX) as listening, ExitStack() as callers:
        listening.bind(address.path)
        listening.listen(0)
        with suppress(BlockingIOError):
            while caller := callers.enter_context(socket.socket(socket.AF_UNIX)):
                caller.setblocking(False)
                caller.connect(address.path)

        assert "Address already in use" == problem_of(address)
