"""TLS to the store: a wrong certificate is refused, with the reason."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from queuepool.config.loader import load
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError, StoreDown
from queuepool.jobs.client import Queue
from queuepool.jobs.connecting import connect
from queuepool.stores.factory import primary_as_told
from queuepool.stores.redis.check import _is_unencrypted, _shows_sentinels_password
from queuepool.stores.redis.cluster import SLOTS
from tests.support.drivers import opened
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.lines import without_silences
from tests.support.pools import Site
from tests.support.redis_server import free_port, start_redis
from tests.support.samples import new_jobs, payload
from tests.support.sentinels import Process


@dataclass(frozen=True)
class Server:
    """A server with TLS; its certificate may be changed."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    def url(self, host: str = "localhost", ca: str = "ca") -> str:
        return f"rediss://{host}:{self.port}/0?ssl_ca_certs={self.folder}/{ca}.pem"

    def shows(self, certificate: str) -> None:
        with redis.Redis(unix_socket_path=f"{self.folder}/redis.sock") as client:
            client.config_set("tls-cert-file", f"{self.folder}/{certificate}.pem")


def openssl(folder: Path, command: str) -> None:
    subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str, usage: str = "-addext keyUsage=critical,keyCertSign,cRLSign") -> None:
    key = f"-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout {name}.key"
    openssl(folder, f"req -x509 {key} -out {name}.pem -subj /CN={name} -days 2 {usage}")


def certificate(folder: Path, name: str, alternative: str, days: int, by: str = "ca") -> None:
    (folder / "extensions").write_text(f"subjectAltName={alternative}\nauthorityKeyIdentifier=keyid\n")
    signer = f"-CA {by}.pem -CAkey {by}.key -CAcreateserial -extfile extensions"
    openssl(folder, f"x509 -req -in server.csr {signer} -out {name}.pem -days {days}")


@pytest.fixture(scope="module")
def tls() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="queuepool-redis-") as name:
        folder = Path(name)
        authority(folder, "ca")
        authority(folder, "stranger")
        authority(folder, "lax", usage="")
        key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key"
        openssl(folder, f"req {key} -out server.csr -subj /CN=server")
        certificate(folder, "good", "DNS:localhost,IP:127.0.0.1", 1)
        certificate(folder, "elsewhere", "DNS:redis.example.org", 1)
        certificate(folder, "expired", "DNS:localhost", -1)
        certificate(folder, "by-lax", "DNS:localhost", 1, by="lax")
        yield from serving(folder)


def serving(folder: Path, *more: str) -> Iterator[Server]:
    port = free_port()
    files = f"--tls-cert-file {folder}/good.pem --tls-key-file {folder}/server.key --tls-ca-cert-file {folder}/ca.pem"
    options = f"--bind 127.0.0.1 --tls-port {port} --tls-auth-clients no {files}"
    server = start_redis(str(folder), *options.split(), *more)
    try:
        yield Server(folder, port, server)
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def good(tls: Server) -> Server:
    tls.shows("good")
    return tls


def refusal(url: str, prefix: str = "") -> str:
    queue = connect(url, prefix=prefix)
    with pytest.raises(StoreDown) as caught:
        queue.size()
    return str(caught.value)


def test_a_pool_works_over_tls(good, tmp_path):
    connection = ConnectionSettings(url=good.url())
    site = Site(connection, tmp_path, Queue(connection))
    site.push("ok")
    with site.pool("--workers", "1"):
        eventually(lambda: site.trail(event="end"))
        eventually(lambda: not site.queue.size())
    site.queue.close()


@pytest.fixture
def nodes(tls: Server, tmp_path: Path) -> Iterator[list[Server]]:
    """Two masters of a cluster, which speak TLS to each other, too."""
    with ExitStack() as stack:
        found = [stack.enter_context(node_in(tls.folder, tmp_path / name)) for name in ("1", "2")]
        for node, slots in zip(found, [(0, SLOTS // 2 - 1), (SLOTS // 2, SLOTS - 1)], strict=True):
            said_to(node, "CLUSTER", "ADDSLOTSRANGE", *slots)
        bus = said_to(found[1], "CONFIG", "GET", "cluster-port")
        said_to(found[0], "CLUSTER", "MEET", "127.0.0.1", found[1].port, bus["cluster-port"])
        eventually(lambda: all(said_to(node, "CLUSTER", "INFO")["cluster_state"] == "ok" for node in found))
        yield found


@contextmanager
def node_in(certificates: Path, folder: Path) -> Iterator[Server]:
    folder.mkdir()
    for name in ("ca.pem", "stranger.pem", "good.pem", "server.key"):
        shutil.copy(certificates / name, folder)
    how = ["--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port", str(free_port())]
    yield from serving(folder, *how)


def said_to(node: Server, *words: object) -> Any:
    with redis.Redis(unix_socket_path=f"{node.folder}/redis.sock", decode_responses=True) as client:
        return client.execute_command(" ".join(map(str, words[:2])), *words[2:])


def test_a_cluster_is_reached_over_tls(nodes):
    with closing(connect(clusters(nodes[0].url()), prefix="{app}:")) as queue:
        assert 0 == queue.size()
    assert "certificate verify failed" in refusal(clusters(nodes[0].url(ca="stranger")), prefix="{app}:")


@pytest.mark.thorough("the connections are those of one slot, and each kind of store has a pool over TLS")
def test_a_pool_serves_queues_of_several_slots_over_tls(nodes, tmp_path):
    connection = ConnectionSettings(url=clusters(nodes[0].url()), restart_key="{queuepool}:illuminate:queue:restart")
    with closing(Queue(connection)) as queue:
        site = Site(connection, tmp_path, queue)
        with site.pool("--queue", "a,b,c", "--workers", "1"):
            pushed = {site.push(queue=name) for name in "abc"}
            eventually(lambda: pushed == {note["id"] for note in site.trail(event="end")})


def clusters(url: str) -> str:
    return url.replace("rediss://", "rediss+cluster://")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_good_certificate_is_taken(good, host):
    assert 0 == connect(good.url(host)).size()


@pytest.mark.bad_input("B075")
@pytest.mark.parametrize(
    ("shown", "ca", "cause"),
    [
        ("expired", "ca", "certificate has expired"),
        ("elsewhere", "ca", "certificate is not valid for 'localhost'"),
        ("good", "stranger", "certificate verify failed: self-signed certificate in certificate chain"),
    ],
)
def test_a_wrong_certificate_is_refused_and_the_cause_is_told(tls, shown, ca, cause):
    tls.shows(shown)

    assert cause in refusal(tls.url(ca=ca))


@pytest.mark.skipif(sys.version_info < (3, 13), reason="only later Pythons demand it")
def test_a_ca_without_what_python_3_13_demands_is_refused_with_what_to_do(tls):
    tls.shows("by-lax")
    said = refusal(tls.url(ca="lax"))

    assert "CA cert does not include key usage extension" in said
    assert said.endswith("reissue the certificate as docs/security.md shows under TLS")


def test_an_unknown_authority_is_not_trusted_by_default(good):
    assert "certificate verify failed" in refusal(f"rediss://localhost:{good.port}/0")


def test_a_server_without_tls_hears_no_password():
    with socket.create_server(("127.0.0.1", 0)) as plain:
        heard: list[bytes] = []
        listening = threading.Thread(target=lambda: heard.append(first_words(plain)))
        listening.start()
        refusal(f"rediss://user:s3cr3t@127.0.0.1:{plain.getsockname()[1]}/0")
        listening.join()

    assert heard[0].startswith(b"\x16\x03")
    assert b"s3cr3t" not in heard[0]


def first_words(plain: socket.socket) -> bytes:
    with plain.accept()[0] as caller:
        return caller.recv(4096)


@pytest.mark.thorough("a pool works over TLS above, and test_redis_acl.py has one whose password becomes wrong")
@pytest.mark.fault("F58")
def test_a_pool_whose_certificate_expired_says_so_once_and_goes_on_with_a_new_one(tls, tmp_path):
    tls.shows("expired")
    connection = ConnectionSettings(url=tls.url())
    site = Site(connection, tmp_path, Queue(connection))
    with site.pool("--workers", "1", wait=False) as pool:
        eventually(lambda: "certificate has expired" in pool.log())
        tls.shows("good")
        pool.wait_until_ready()
        eventually(lambda: "store regained" in pool.log())

    assert 1 == without_silences(pool.log()).count("store lost")
    site.queue.close()


@each(
    ("url", "warned"),
    [
        ("redis://:pw@h:1/0", True), ("redis://h", False), ("rediss://:pw@h", False), ("redis://:pw@[::1]:1/0", False),
        ("unix://u:pw@/run/redis.sock", False), ("redis+sentinel://h/m?sentinel_password=pw", True),
        ("rediss+sentinel://h/m?sentinel_password=pw", False),
    ],
)  # fmt: skip
def test_check_warns_of_a_password_that_goes_unencrypted(url, warned):
    assert warned == _is_unencrypted(url)


@each(("tls", "warned"), [("", False), ("&sentinel_tls=0", True)])
def test_check_warns_if_only_the_sentinels_password_goes_unencrypted(tls, warned):
    assert warned == _shows_sentinels_password(f"rediss+sentinel://h/m?sentinel_password=pw{tls}")


# The configuration


def misfit(url: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(None, {"connection.url": url}, {})
    return str(caught.value)


@pytest.mark.bad_input("B075")
@each("wish", ["none", "optional", "0", "", "required&ssl_check_hostname=false"])
def test_nobody_can_ask_for_tls_without_verification(wish):
    said = misfit(f"rediss://:s3cr3t@h?ssl_cert_reqs={wish}")

    assert "has a wrong option after the ?" in said
    assert "s3cr3t" not in said


def test_verification_may_be_asked_for():
    assert load(None, {"connection.url": "rediss://h?ssl_cert_reqs=required"}, {})


@pytest.mark.bad_input("B075")
@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (
            "ssl_ca_certs=/nonexistent.pem",
            "its ssl_ca_certs /nonexistent.pem cannot be used: No such file or directory",
        ),
        ("ssl_ca_certs=/etc/passwd", "its ssl_ca_certs /etc/passwd cannot be used: NO_CERTIFICATE_OR_CRL_FOUND"),
        ("ssl_certfile=/etc/passwd", "its ssl_certfile /etc/passwd cannot be used: "),
    ],
)
def test_a_file_that_is_no_certificate_is_a_fault_of_the_configuration(option, reason):
    assert reason in misfit(f"rediss://h?{option}")


def test_a_private_key_that_every_user_can_read_is_refused(tls, tmp_path):
    key = tmp_path / "client.key"
    key.write_bytes((tls.folder / "server.key").read_bytes())
    key.chmod(0o644)
    url = f"rediss://h?ssl_certfile={tls.folder}/good.pem&ssl_keyfile={key}"
    said = misfit(url)
    key.chmod(0o640)

    assert f"its ssl_keyfile {key} can be read by every user: chmod o-r {key}" in said
    assert load(None, {"connection.url": url}, {})


def test_a_connection_within_the_machine_reads_no_certificates(mariadb_url):
    """PyMySQL prefers TLS where nothing else is asked for, and reads all certificates of the machine to be ready."""
    with opened(ConnectionSettings(url=mariadb_url)) as stores:
        assert not hasattr(stores.client.ask(lambda connection: connection.connection.driver_connection), "ctx")


def test_a_primary_that_sentinels_name_is_verified_and_so_are_they(good, tmp_path):
    files = [f"tls-cert-file {good.folder}/good.pem", f"tls-key-file {good.folder}/server.key"]
    files += [f"tls-ca-cert-file {good.folder}/ca.pem", "tls-auth-clients no", "tls-replication yes"]
    port, watches = free_port(), f"sentinel monitor jobs 127.0.0.1 {good.port} 1"
    sentinel = Process(tmp_path, "redis-sentinel", [f"tls-port {port}", *files, watches])
    sentinel.start()
    try:
        for hosts, more in ((f"127.0.0.1:{port}", ""), (f"127.0.0.1:{sentinel.port}", "&sentinel_tls=0")):
            url = f"rediss+sentinel://{hosts}/jobs/0?ssl_ca_certs={good.folder}/{{}}.pem{more}"
            with opened(ConnectionSettings(url=url.format("ca"))) as stores:
                assert 0 == stores.queue.sizes("default").total
            with (
                opened(ConnectionSettings(url=url.format("stranger"))) as stores,
                pytest.raises(StoreDown, match="verif"),
            ):
                stores.queue.sizes("default")
    finally:
        sentinel.kill()


def test_a_reply_that_has_come_is_read_although_the_primary_has_moved_since(good):
    settings = ConnectionSettings(url=f"rediss+sentinel://127.0.0.1:1/jobs/0?ssl_ca_certs={good.folder}/ca.pem")
    told = SimpleNamespace(store_epoch=1, store_at=f"localhost {good.port}")
    end_stale_calls = primary_as_told(settings, told)
    with (
        opened(settings) as stores,
        opened(ConnectionSettings(url=f"unix://{good.folder}/redis.sock")) as producer,
    ):
        tag = stores.queue.join()
        stores.queue.reserve(["moved"], tag, 1)  # or the server may not know the script
        wait = stores.queue.reserve_waiting(["moved"], 30.0, tag, 1)
        producer.queue.push("moved", new_jobs(payload("a")))
        eventually(lambda: producer.queue.sizes("moved").reserved)
        wait.wait()
        told.store_at, told.store_epoch = "127.0.0.1 1", 2
        end_stale_calls()

        assert 1 == len(wait.read().leases)
