"""A Redis Cluster: whatever a node refuses, nothing is lost, nothing is done twice or by halves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError, LoginRefused, StoreDenied, StoreDown, StoreUnfit
from queuepool.stores.contract import Wake
from queuepool.stores.factory import Stores
from queuepool.stores.redis.check_cluster import inspect_cluster
from queuepool.stores.redis.cluster import SlotOwner, slot_of
from tests.support.commands import queuepool
from tests.support.eventually import eventually
from tests.support.redis_cluster import SLOT, TAGGED, Cluster, Node, on_cluster
from tests.support.redis_server import free_port
from tests.support.samples import attempted, ids, new_jobs, payload

READY = f"{TAGGED}queues:default"
QUEUES = ["default", "low"]
#: seconds that a call waits for a reply; of one that is to be given up
PATIENCE, SHORT = 20.0, 0.5


@pytest.fixture
def cluster(cluster_nodes: Cluster) -> Cluster:
    cluster_nodes.flush()
    return cluster_nodes


@pytest.fixture
def stores(cluster: Cluster) -> Iterator[Stores]:
    found = Stores(on_cluster(cluster.url), reply_timeout=PATIENCE)
    yield found
    found.close()


@pytest.fixture
def store(stores: Stores) -> Any:
    return stores.queue


@pytest.fixture
def hurried(cluster: Cluster) -> Iterator[Any]:
    """For calls that must fail: on a crowded machine any of them may."""
    with closing(Stores(on_cluster(cluster.url), reply_timeout=SHORT)) as found:
        yield found.queue


def ready(store: Any) -> int:
    return int(store.sizes("default").ready)


def moved(cluster: Cluster) -> None:
    """Move the slot to another master, with all of its keys."""
    for _ in cluster.move():
        pass


@contextmanager
def being_moved(cluster: Cluster, *, keys: int) -> Iterator[Node]:
    """The slot is on its way, and so many of its keys are there already; gives its owner. Then it is wholly there."""
    source, on_their_way = cluster.owner(), cluster.move()
    for _ in range(keys + 1):  # the first look begins the move
        next(on_their_way, None)
    try:
        yield source
    finally:
        for _ in on_their_way:
            pass


def test_a_slot_is_the_servers_own(cluster):
    for tag in ("app", "a b", "ü", "x" * 200):
        assert cluster.nodes[0].say("CLUSTER", "KEYSLOT", f"{{{tag}}}:queues:default") == slot_of(tag)


# MOVED


def test_every_call_follows_a_slot_that_was_moved(cluster, stores, store):
    store.push("default", new_jobs(*map(payload, "ab")))
    tag = store.join()
    [first] = store.reserve(QUEUES, tag, 1).leases

    moved(cluster)
    assert 1 == ready(store)
    moved(cluster)
    store.push("low", new_jobs(payload("c")))
    moved(cluster)
    assert ["b", "c"] == ids(store.reserve(QUEUES, tag, 2, [first]).leases)
    moved(cluster)
    assert stores.control.read(QUEUES)
    moved(cluster)
    store.wait(QUEUES, 0.01)


@pytest.mark.parametrize("shared", [False, True])
def test_the_queues_are_those_of_the_new_owner(cluster, shared):
    """SCAN, which names no key, is answered by any node."""
    with closing(Stores(on_cluster(cluster.url), shared=shared)) as stores:
        stores.queue.push("default", new_jobs(payload("a")))
        assert ["default"] == stores.queue.queues()
        moved(cluster)
        assert ["default"] == stores.queue.queues()


@pytest.mark.thorough("1,500 queues; test_every_call_follows_a_slot_that_was_moved")
def test_a_scan_begins_again_where_the_slot_has_moved_meanwhile(cluster, stores, store):
    for number in range(1500):  # more than one page
        cluster.owner().say("RPUSH", f"{TAGGED}queues:{number}", "x")
    pages = stores.client.scan(f"{TAGGED}queues:*")
    found = next(pages)
    moved(cluster)
    for page in pages:
        assert not found & page
        found |= page

    assert 1500 == len(found)


def test_a_steward_hears_at_the_new_owner(cluster, store):
    """The former one may be taken out of the cluster.

    For a moment after a move, nodes may still name it by what they hear of it late: the next call tells better.
    """
    assert store.wait_for_change(QUEUES, 0.0)
    moved(cluster)
    ready(store)

    assert Wake.NEWS == store.wait_for_change(QUEUES, 0.0)

    def hears_there() -> bool:
        ready(store)
        store.wait_for_change(QUEUES, 0.0)
        return f"{TAGGED}queuepool:due:low".encode() in cluster.owner().say("PUBSUB", "CHANNELS")

    eventually(hears_there)


def test_a_reserve_that_waits_at_the_server_goes_on_at_the_new_owner(cluster, store):
    tag = store.join()
    waiting = store.reserve_waiting(QUEUES, 30.0, tag, 1)
    moved(cluster)
    store_of_another(cluster).push("default", new_jobs(payload("a")))

    waiting.wait()
    assert ["a"] == ids(waiting.read().leases)


def store_of_another(cluster: Cluster) -> Any:
    return Stores(on_cluster(cluster.url), reply_timeout=PATIENCE).queue


def test_a_worker_takes_a_new_tag_and_a_steward_reasserts_where_another_node_has_its_slot(cluster, stores, store):
    calls = list[int]()
    stores.reassertion.follow(lambda: calls.append(1))
    store.join()
    before = stores.client.unanswered

    moved(cluster)
    ready(store)

    assert before < stores.client.unanswered
    assert [1, 1] == calls


# ASK, TRYAGAIN


@pytest.mark.parametrize("keys", [0, 1])
def test_nothing_is_done_while_a_slot_is_on_its_way_and_everything_after_it(cluster, store, hurried, keys):
    store.push("default", new_jobs(payload("a")))
    store.push("low", new_jobs(payload("b")), delay=60.0)
    tag = store.join()
    calls: list[Callable[[], object]] = [
        lambda: hurried.push("default", new_jobs(payload("c"))),
        lambda: hurried.reserve(QUEUES, tag, 5),
        lambda: hurried.stage(QUEUES),
        lambda: ready(hurried),
        lambda: hurried.join(),
    ]
    with being_moved(cluster, keys=keys):
        for call in calls:
            with pytest.raises(StoreDown):
                call()

    assert (1, 1) == (ready(store), store.sizes("low").delayed)
    assert [attempted(payload("a"))] == [lease.receipt for lease in store.reserve(QUEUES, tag, 5).leases]


def test_a_call_that_meets_a_slot_on_its_way_is_carried_out_once_at_its_end(cluster, store):
    store.push("default", new_jobs(payload("a")))
    pushing = threading.Thread(target=lambda: store_of_another(cluster).push("default", new_jobs(payload("b"))))
    with being_moved(cluster, keys=1) as source:
        refused = source.client.info("errorstats")
        pushing.start()
        eventually(lambda: source.client.info("errorstats") != refused)
    pushing.join()

    assert ["a", "b"] == ids(store.reserve(QUEUES, store.join(), 5).leases)


def test_a_script_that_would_empty_a_key_does_nothing_at_a_node_that_gives_its_slot_away(cluster, store, hurried):
    """The key would be gone, and the script would fail at the next command on it: with the job taken, and not held."""
    tag = store.join()
    store.push("default", new_jobs(payload("a")))
    [lease] = store.reserve(QUEUES, tag, 1).leases
    source = cluster.owner()
    target = next(node for node in cluster.nodes[:3] if node is not source)
    source.say("CLUSTER", "SETSLOT", SLOT, "MIGRATING", target.id)
    try:
        with pytest.raises(StoreDown):
            hurried.delete([lease])
        with pytest.raises(StoreDown):
            hurried.renew([lease])
    finally:
        source.say("CLUSTER", "SETSLOT", SLOT, "STABLE")

    assert [True] == store.renew([lease])
    assert [True] == store.delete([lease])


# Others


def test_a_slot_that_nobody_serves_is_an_outage_until_somebody_does(cluster, store, hurried):
    owner = cluster.owner()
    store.push("default", new_jobs(payload("a")))
    for node in cluster.nodes:
        node.say("CLUSTER", "DELSLOTS", SLOT)
    try:
        with pytest.raises(StoreDown):
            ready(hurried)
    finally:
        owner.say("CLUSTER", "ADDSLOTS", SLOT)
        eventually(lambda: all("cluster_state:ok" in node.info() for node in cluster.nodes))

    assert 1 == ready(store)


def test_an_owner_without_the_replicas_that_it_needs_is_an_outage(cluster, store):
    store.push("default", new_jobs(payload("a")))
    owner = cluster.owner()
    owner.say("CONFIG", "SET", "min-replicas-to-write", 2)
    try:
        with pytest.raises(StoreDown, match="NOREPLICAS"):
            store.push("default", new_jobs(payload("b")))
    finally:
        owner.say("CONFIG", "SET", "min-replicas-to-write", 0)

    assert 1 == ready(store)


def test_one_living_node_of_those_in_the_url_is_enough(cluster):
    dead = "redis+cluster://127.0.0.1:1,127.0.0.1:2,"
    stores = Stores(on_cluster(cluster.url.replace("redis+cluster://", dead)))

    stores.queue.push("default", new_jobs(payload("a")))
    assert 1 == ready(stores.queue)
    stores.close()


def test_a_refused_password_is_told_also_where_other_nodes_are_away(cluster):
    url = f"redis+cluster://nobody:secret@127.0.0.1:{cluster.nodes[0].port},127.0.0.1:1/"
    with closing(Stores(on_cluster(url))) as stores, pytest.raises(LoginRefused):
        stores.queue.sizes("default")


def test_no_more_nodes_are_asked_when_the_time_is_over():
    asked: list[tuple[str, int]] = []

    def ask(node: tuple[str, int]) -> object:
        asked.append(node)
        raise redis.TimeoutError

    owner = SlotOwner(slot_of("app"), [("a", 1), ("b", 2)])
    for _ in range(3):
        with pytest.raises(redis.TimeoutError):
            owner.find(ask, 0.0)
    assert [("a", 1), ("b", 2), ("a", 1)] == asked


# What is refused


def test_a_server_of_no_cluster_is_named(own_server):
    port = free_port()
    own_server.say("CONFIG", "SET", "port", port)
    stores = Stores(on_cluster(f"redis+cluster://127.0.0.1:{port}/"))

    with pytest.raises(StoreUnfit, match="not a node of a Redis Cluster: write redis://"):
        stores.queue.push("default", new_jobs(payload("a")))


@pytest.mark.parametrize("prefix", ["{}:{app}:", "}a{"])
def test_a_prefix_without_a_tag_is_refused_in_a_line(cluster, prefix):
    done = queuepool("size", "--url", cluster.url, *(["--prefix", prefix] if prefix else []))

    assert (78, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "prefix: has no hash tag" in done.stderr
    with pytest.raises(ConfigError, match="has no hash tag"):
        Stores(ConnectionSettings(url=cluster.url, prefix=prefix))


def test_keys_of_another_slot_are_refused_in_a_line(cluster):
    another = {"QUEUEPOOL_CONNECTION_RESTART_KEY": "illuminate:queue:restart"}
    done = queuepool("size", "--url", cluster.url, "--prefix", TAGGED, env=another)

    assert (78, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "RESTART_KEY: is in another slot of the cluster: begin it with {app}:" in done.stderr


PRODUCER = (
    "on >secret resetkeys resetchannels -@all ~{app}:queues:* +ping +client|setname +eval +evalsha +time +rpush +llen "
    "+exists %R~{app}:queuepool:room"
)


def pushed_as(cluster: Cluster, user: str, password: str = "secret") -> object:
    for node in cluster.nodes:
        node.say("ACL", "SETUSER", "producer", "reset", *user.split())
    own = Stores(on_cluster(cluster.url.replace("://", f"://producer:{password}@")))
    try:
        return own.queue.push("default", new_jobs(payload("a")))
    finally:
        own.close()


def test_a_producer_needs_three_rights_more_than_on_one_server(cluster, store):
    assert pushed_as(cluster, f"{PRODUCER} +cluster|slots")
    assert 1 == ready(store)

    with pytest.raises(StoreDenied, match="cluster"):
        pushed_as(cluster, PRODUCER)
    with pytest.raises(StoreDenied, match="exists"):
        pushed_as(cluster, f"{PRODUCER} +cluster|slots -exists")
    with pytest.raises(LoginRefused):
        pushed_as(cluster, f"{PRODUCER} +cluster|slots", password="other")
    assert 1 == ready(store)


def test_a_check_names_the_owner_and_its_replicas(own_cluster):
    where = ["--url", own_cluster.url, "--prefix", TAGGED]
    place = f"slot {SLOT} ({{app}}) is at 127.0.0.1:{own_cluster.owner().port}"

    done = queuepool("check", *where)
    assert "ok   connection default: the cluster serves all slots (3 masters)" in done.stdout
    assert f"ok   connection default: {place}, with 1 replica\n" in done.stdout

    own_cluster.owner().say("SET", READY + ":delayed", 1)
    with being_moved(own_cluster, keys=0):
        assert f"warn connection default: {place}, and being moved" in queuepool("check", *where).stdout


def test_a_check_asks_the_owner_also_where_it_was_led_to_another_node(cluster, stores):
    stores.client.command("PING")
    moved(cluster)
    owner = cluster.owner()

    assert any(f"is at 127.0.0.1:{owner.port}, " in words for _, words in inspect_cluster(stores, []))


def test_a_check_names_the_queues_that_laravel_fills_in_braces(cluster, store):
    store.push("{default}", new_jobs(payload("a")))
    where = ["--url", cluster.url, "--prefix", TAGGED]

    words = "Laravel's queue default is {default} on a cluster, and has jobs: serve {default}"
    assert f"warn connection default: {words}\n" in queuepool("check", *where).stdout
    assert words not in queuepool("check", *where, "--queue", "{default}").stdout
