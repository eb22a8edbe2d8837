"""Payloads as Laravel 10 to 13 make them: what follows from each, and why one must not begin.

``recorded.json`` is what ``recording.php`` prints with the source of each version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.command import Commands
from queuepool.payload.context import Context
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import NOTHING, Unlock
from queuepool.payload.wrappers import Claim
from queuepool.payload.xxh3 import hexdigest as hashed
from queuepool.settlement.endings import Endings
from tests.support.each import each

RECORDED: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "recorded.json").read_text())
VERSIONS = list(RECORDED)
WITH_CONTEXT = [version for version in VERSIONS if "context" in RECORDED[version]]
WITH_OWNER, WITH_LISTENERS = ["13.26.1"], ["12.67.0", "13.6.0", "13.26.1"]
BATCH = "9d2e7f5c-0000-4000-8000-000000000001"
OWNER = "Ow2NerOw2NerOw2N"
BROADCAST = "Illuminate\\Broadcasting\\UniqueBroadcastEvent"
#: as JSON has it
ID = 's:8:\\"uniqueId\\";i:7;'
FAILURE = RuntimeError("told to fail")


def payload(version: str, case: str) -> Payload:
    return decode(RECORDED[version][case].encode())


def endings(**settings: Any) -> Endings:
    return Endings(ConnectionSettings(url="redis://127.0.0.1", **settings), Commands())


REFUSING, HANDING = endings(), endings(outcomes="outcomes")


def refusal(found: Payload, rules: Endings = REFUSING) -> str:
    """What the job is refused for, without the advice; empty if it may begin."""
    return str(rules.refusal(found) or "").partition(", so it was not begun")[0].partition(" ")[2]


def outcome(found: Payload, error: BaseException | None = None, rules: Endings = HANDING) -> Any:
    """The payload that Laravel is handed at the end; ``None`` if it is handed none."""
    handed = rules.after(found, error).outcome
    return json.loads(handed.payload) if handed else None


def test_all_that_is_new_is_recorded():
    """Without it, tests below would try nothing."""
    assert ["11.56.0", "12.67.0", "13.6.0", "13.26.1"] == WITH_CONTEXT
    assert ["13.6.0", "13.26.1"] == [version for version in VERSIONS if "debounced" in RECORDED[version]]
    assert {None} == {json.loads(RECORDED["13.26.1"]["plain"])["data"]["batchId"]}
    assert BATCH == json.loads(RECORDED["13.26.1"]["batch"])["data"]["batchId"]
    assert "batchId" not in json.loads(RECORDED["11.56.0"]["batch"])["data"]
    assert WITH_LISTENERS == [version for version in VERSIONS if "shouldBeUnique" in RECORDED[version]["listener"]]


@each("version", VERSIONS)
@each("case", ["plain", "plain model"])
def test_nothing_follows_from_a_plain_job(version, case):
    found = payload(version, case)

    assert ({"number": 1}, ()) == (Commands().data_of(found), found.warnings)
    assert ("", NOTHING, NOTHING) == (refusal(found), HANDING.after(found), HANDING.after(found, FAILURE))


@each("version", VERSIONS)
@each("case", ["chain", "chain of models"])
def test_a_chain_is_refused_or_handed_over(version, case):
    found = payload(version, case)

    words = "is followed by 2 more of its chain and has callbacks for a failure of its chain"
    assert (words, "") == (refusal(found), refusal(found, HANDING))
    assert ("App\\Queue\\QueuepoolOutcome@succeeded", "App\\Queue\\QueuepoolOutcome@lost") == (
        outcome(found)["job"], outcome(found, FAILURE)["job"],
    )  # fmt: skip
    assert "RuntimeError: told to fail" == outcome(found, FAILURE)["data"]["error"]
    assert NOTHING == REFUSING.after(found)


@each("version", VERSIONS)
@each("case", ["chain", "batch of models"])
def test_laravel_gets_the_command_back_as_it_made_it(version, case):
    found, sent = payload(version, case), json.loads(RECORDED[version][case])
    handed = outcome(found)

    assert sent["uuid"] == handed["uuid"]
    assert sent["data"] | {"unlocked": False} == handed["data"]


@each("version", VERSIONS)
@each("case", ["batch", "batch of models"])
def test_a_batch_is_refused_or_handed_over(version, case):
    found = payload(version, case)

    assert ("belongs to a batch", "") == (refusal(found), refusal(found, HANDING))
    assert (BATCH, "") == (REFUSING.batch_of(found), REFUSING.batch_of(found, if_skipped=True))
    assert None not in (outcome(found), outcome(found, FAILURE))


@each("version", VERSIONS)
def test_the_middleware_that_is_carried_out_is_known_and_no_other(version):
    skipped, overlapping = payload(version, "skipped"), payload(version, "overlapping")
    unknown = decode(RECORDED[version]["overlapping"].replace("WithoutOverlapping", "WithoutOverlappinG").encode(), 1)

    assert (BATCH, "") == (HANDING.batch_of(skipped, if_skipped=True), refusal(skipped, HANDING))
    assert "" == refusal(overlapping, HANDING)
    assert "has the middleware Illuminate\\Queue\\Middleware\\WithoutOverlappinG" == refusal(unknown, HANDING)
    assert "not begun: run it in Laravel, or ignore that" in str(REFUSING.refusal(unknown))
    assert "not begun: set `outcomes` in" in str(REFUSING.refusal(payload(version, "chain")))


@each("version", WITH_CONTEXT)
def test_a_unique_lock_is_released_by_the_owner_that_is_known(version):
    found = payload(version, "unique")
    owner = OWNER if version in WITH_OWNER else ""
    lock = Unlock("laravel_unique_job:App\\Jobs\\Unique:7", owner, "redis")

    assert "" == refusal(found)
    assert [(lock,)] * 3 == [
        REFUSING.after(found).unlocks, REFUSING.after(found, FAILURE).unlocks, REFUSING.held_locks(found),
    ]  # fmt: skip
    assert ("", None) == (REFUSING.warning(found), outcome(found))


@each("version", ["12.67.0", "13.6.0", "13.26.1"])
def test_the_lock_of_a_job_with_a_name_of_its_own_is_known_by_its_hash(version):
    [lock] = REFUSING.held_locks(payload(version, "unique by name"))

    assert ("redis", OWNER if version in WITH_OWNER else "") == (lock.store, lock.owner)


@each("version", WITH_LISTENERS)
@each("case", ["unique listener", "listener until"])
def test_a_listener_says_that_it_is_unique(version, case):
    """Its lock is named by the hash of the listener's class since 12.54, and by Laravel's own class before."""
    found = payload(version, case)
    names = (
        "laravel_unique_job:Illuminate\\Events\\CallQueuedListener:7",
        f"laravel_unique_job:{hashed(found.name)}:7",
        "laravel_unique_job:Illuminate\\Events\\CallQueuedListener7",
    )
    locks = tuple(Unlock(name, OWNER if version in WITH_OWNER else "") for name in names)

    assert [locks] * 3 == [
        REFUSING.after(found).unlocks, HANDING.after(found, FAILURE).unlocks, REFUSING.named_locks(found),
    ]  # fmt: skip
    assert ("", "", None) == (refusal(found), REFUSING.warning(found), outcome(found))
    assert Claim("7", "until" in case) == REFUSING.claim(found)


@each("version", VERSIONS)
def test_a_unique_broadcast_is_known_by_its_class(version):
    """Before 12.54 its id begins with the event's class."""
    found = payload(version, "unique broadcast")
    identity = "7" if version >= "12.67.0" else "App\\Events\\OrderMoved7"
    names = {lock.name for lock in REFUSING.after(found).unlocks}

    assert {
        f"laravel_unique_job:{part}{identity}" for part in (f"{hashed(found.name)}:", f"{BROADCAST}:", BROADCAST)
    } == names


@each("version", VERSIONS)
@each("case", ["listener", "plain", "scheduled"])
def test_no_lock_is_made_up(version, case):
    if case == "scheduled" and version in WITH_OWNER:
        return  # below
    found = payload(version, case)

    assert ((), None, NOTHING) == (REFUSING.held_locks(found), REFUSING.claim(found), HANDING.after(found))


@each("version", WITH_OWNER)
def test_a_lock_of_which_the_owner_alone_is_known_is_looked_for_by_the_names_of_its_class(version):
    found = payload(version, "scheduled")
    locks = REFUSING.held_locks(found)

    assert Unlock("laravel_unique_job:App\\Jobs\\Unique:", OWNER) in locks
    assert {OWNER} == {lock.owner for lock in locks}
    assert () == REFUSING.named_locks(found)


def test_a_lock_whose_id_only_php_knows_is_told_or_handed_over():
    text = RECORDED["12.67.0"]["unique listener"]
    made_in_php = decode(text.replace(ID, 's:8:\\"uniqueId\\";O:1:\\"X\\":0:{}').encode())

    assert ID in text
    assert "only PHP knows the id of its unique lock, so the lock stays held" in REFUSING.warning(made_in_php)
    assert (NOTHING, False) == (REFUSING.after(made_in_php), outcome(made_in_php)["data"]["unlocked"])


def test_the_lock_of_laravel_10_is_not_named():
    """There ``unique_id`` says it, or the outcome lets Laravel release it."""
    assert ((), "") == (REFUSING.held_locks(payload("10.50.3", "unique")), refusal(payload("10.50.3", "unique")))


@each("version", WITH_CONTEXT)
def test_a_job_does_not_release_the_lock_that_it_inherited(version):
    child = payload(version, "child")

    assert ((), NOTHING) == (REFUSING.held_locks(child), HANDING.after(child))


@each("version", WITH_CONTEXT)
def test_a_lock_out_of_reach_is_told_or_handed_over(version):
    found = payload(version, "unique")
    far, handing = endings(), endings(outcomes="outcomes")
    far._reachable = handing._reachable = {"sql"}

    assert "is in the cache store 'redis', which is out of reach: it stays held" in far.warning(found)
    assert ("", False) == (handing.warning(found), outcome(found, rules=handing)["data"]["unlocked"])


@each("version", ["13.6.0", "13.26.1"])
def test_a_debounced_job_is_refused_even_with_outcomes(version):
    found = payload(version, "debounced")

    assert ("was debounced", "was debounced") == (refusal(found), refusal(found, HANDING))
    assert None is endings(foreign="ignore").refusal(found)
    assert "" == refusal(payload(version, "plain"))


@each("version", WITH_CONTEXT)
def test_context_is_no_reason_for_anything(version):
    found = payload(version, "context")

    assert ({"trace_id": "t1"}, {}) == (Context(found.context).data, Context(found.context).hidden)
    assert ("", NOTHING) == (refusal(found), HANDING.after(found))
