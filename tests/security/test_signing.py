"""A writer to the store without the key can neither push nor change a signed job."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.config.loader import load
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadPayload, ConfigError
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import Envelope, decode, encode
from queuepool.payload.signing import Signer
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.pools import Site

OLD, NEW = ("old", "0123456789abcdef"), ("new", "fedcba9876543210")
SIGNER = Signer((NEW, OLD), required=True)
#: what Laravel's pop would round, or make an object of
FRAGILE = {"big": 1234567890123456789, "none": [], "empty": {}, "float": 0.30000000000000004, "text": 'é/"\\\x7f\0'}
KEYS = "new:fedcba9876543210"


def pushed(queue: str = "default", signer: Signer = SIGNER, **data: Any) -> bytes:
    def sign(fields: dict[str, object]) -> object:
        return signer.sign(queue, fields)

    return encode("app.ok", data, Envelope(options={"maxTries": 3}, created_at=0, sign=sign))[1]


def changed(raw: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    fields = json.loads(raw)
    change(fields)
    return json.dumps(fields).encode()


def refusal(raw: bytes, queue: str = "default", signer: Signer = SIGNER) -> str:
    with pytest.raises(BadPayload) as caught:
        signer.verify(raw, queue)
    return caught.value.reason


# What verifies


def test_what_was_signed_is_what_the_worker_gets():
    found = SIGNER.verify(pushed(**FRAGILE), "default")

    assert (FRAGILE, 3, "app.ok", 0) == (found.data, found.options.max_tries, found.options.job, found.attempts)


def test_signed_or_not_a_payload_says_the_same():
    raw = pushed(**FRAGILE)

    assert decode(raw)._replace(fields={}) == SIGNER.verify(raw, "default")._replace(fields={})
    assert raw.endswith(b',"delay":null,"attempts":0}')


def test_attempts_are_counted_without_breaking_the_signature():
    raw = pushed().replace(b'"attempts":0}', b'"attempts":7}')

    assert 7 == SIGNER.verify(raw, "default").attempts


def test_every_key_verifies_and_the_first_one_signs():
    by_old = pushed(signer=Signer((OLD,), required=True))

    assert "app.ok" == SIGNER.verify(by_old, "default").options.job
    assert "new" == json.loads(pushed())["qp"]["kid"]


@pytest.mark.bad_input("B061")
def test_unsigned_payloads_pass_only_where_they_are_accepted():
    unsigned = changed(pushed(), lambda fields: fields.pop("qp"))

    assert "unsigned" == refusal(unsigned)
    assert "app.ok" == Signer((NEW,), required=False).verify(unsigned, "default").options.job


def test_a_job_that_is_moved_is_signed_for_its_new_queue_unless_it_was_not_for_its_own():
    raw = pushed(**FRAGILE).replace(b'"attempts":0}', b'"attempts":7}')
    moved = SIGNER.moved(raw, "default", "other")

    assert (FRAGILE, 7) == SIGNER.verify(moved, "other")[2:4]
    assert "signed-for-another-queue" == refusal(moved)
    assert raw.endswith(b'"delay":null,"attempts":7}') == moved.endswith(b'"delay":null,"attempts":7}')
    for other in (
        changed(raw, lambda fields: fields["qp"].update(sig="0" * 64)), changed(raw, lambda fields: fields.pop("qp")),
        pushed("third"), b"no job",
    ):  # fmt: skip
        assert other == SIGNER.moved(other, "default", "other")


# What does not


def wrong(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields["qp"].update({name: value})


BODY = json.loads(pushed(amount=1))["qp"]["body"]
TAMPERED: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("wrong-signature", wrong("sig", "0" * 64)),
    ("wrong-signature", wrong("sig", "")),
    ("wrong-signature", wrong("sig", "é")),
    ("wrong-signature", lambda fields: wrong("sig", fields["qp"]["sig"][:-1])(fields)),
    ("wrong-signature", lambda fields: wrong("sig", fields["qp"]["sig"].upper() + " ")(fields)),
    ("wrong-signature", wrong("body", BODY.replace('"amount":1', '"amount":2'))),
    ("wrong-signature", wrong("body", "{}")),
    ("wrong-signature", wrong("kid", "old")),
    ("unknown-signing-key", wrong("kid", "other")),
    ("unknown-signing-key", wrong("kid", "")),
    ("malformed-signature", wrong("kid", ["new"])),
    ("malformed-signature", wrong("sig", None)),
    ("malformed-signature", wrong("body", {})),
    ("malformed-signature", lambda fields: fields.update(qp=None)),
    ("malformed-signature", lambda fields: fields.update(qp="k:b:s")),
    ("malformed-signature", lambda fields: fields["qp"].pop("sig")),
    ("not-what-was-signed", lambda fields: fields.update(id="another")),
    ("not-what-was-signed", lambda fields: fields.update(job="app.other")),
    ("not-what-was-signed", lambda fields: fields.update(displayName="app.harmless")),
    ("not-what-was-signed", lambda fields: fields.pop("uuid")),
    ("not-what-was-signed", lambda fields: fields.update(qpFlow=f"{'A' * 22}:0")),
]


@pytest.mark.bad_input("B061")
@each(("reason", "change"), TAMPERED)
@each("required", [True, False])
def test_a_signature_that_is_wrong_never_passes(reason, change, required):
    raw = changed(pushed(amount=1), change)

    assert reason == refusal(raw, signer=Signer((NEW, OLD), required=required))


NO_JSON = {"too-deep": b"[" * 2000 + b"]" * 2000, "duplicate-key": b'{"a":1,"a":2}', "json": b"{,}", "utf-8": b'"\xff"'}


@pytest.mark.bad_input("B061")
@each("odd", NO_JSON.values())
def test_nothing_is_decoded_before_its_signature_is_verified(odd):
    raw = b'{"odd":' + odd + b"," + pushed()[1:]

    assert "unsigned" == refusal(odd)
    assert "unsigned" == refusal(raw.replace(b'"qp"', b'"pq"'))
    assert "wrong-signature" == refusal(raw.replace(b'"sig":"', b'"sig":"0'))


@pytest.mark.bad_input("B061")
@each(("reason", "odd"), NO_JSON.items())
def test_what_was_signed_does_not_pass_with_what_cannot_be_read_beside_it(reason, odd):
    assert reason == refusal(b'{"odd":' + odd + b"," + pushed()[1:])


@pytest.mark.bad_input("B061")
def test_a_signature_under_a_name_with_escapes_is_none():
    escaped = pushed().replace(b'"qp"', b'"\\u0071p"')

    assert "unsigned" == refusal(escaped)
    assert "malformed-signature" == refusal(escaped, signer=Signer((NEW,), required=False))


def test_a_signature_of_somebody_else_with_the_keys_name_does_not_pass():
    raw = pushed(signer=Signer((("new", "another-secret-of-16"),), required=True))

    assert "wrong-signature" == refusal(raw)


@pytest.mark.bad_input("B061")
def test_a_job_that_was_signed_for_another_queue_does_not_pass():
    assert "signed-for-another-queue" == refusal(pushed(queue="harmless"), "default")


def test_what_stands_outside_of_the_signature_is_not_used():
    raw = changed(pushed(amount=1), lambda fields: fields.update(data={"amount": 2}, maxTries=99, timeoutAt=1))
    found = SIGNER.verify(raw, "default")

    assert ({"amount": 1}, 3, None) == (found.data, found.options.max_tries, found.options.retry_until)


def test_what_the_steward_could_not_read_does_not_pass_although_it_is_signed():
    assert "maxTries" == refusal(changed(pushed(), lambda fields: fields.update(maxTries=-1)))


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_change_of_a_byte_of_the_signed_text_or_its_signature_goes_unseen(place, bits):
    raw = pushed(amount=1)
    first, last = raw.index(b'"body":"') + 8, raw.index(b'"},"delay"')
    place = first + place % (last - first)
    flipped = raw[:place] + bytes([raw[place] ^ bits]) + raw[place + 1 :]
    try:
        found = SIGNER.verify(flipped, "default")
    except BadPayload:
        return

    # Another way to write the same text in JSON.
    assert SIGNER.verify(raw, "default") == found


# In a pool


@pytest.fixture
def signed(connection: ConnectionSettings, tmp_path: Path) -> Any:
    """A site whose pushes are signed and whose workers want it so."""
    queue = Queue(replace(connection, signing="require", signing_keys=(NEW,)))
    yield Site(replace(connection, signing="require"), tmp_path, queue)
    queue.close()


def config(signing: str = "require", keys: str = KEYS) -> str:
    return f"[connection]\nsigning = {signing}\nsigning_keys = {keys}\n"


@pytest.fixture
def keyed(signed: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_SIGNING", "require")
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_SIGNING_KEYS", KEYS)
    return signed


def reasons(site: Site, queue: str = "default") -> list[str]:
    return [entry.reason for entry in site.queue.stores.records.quarantined(queue)]


def test_a_signed_job_runs_and_is_tried_again_and_an_unsigned_one_is_set_aside_whole(keyed, connection):
    keyed.push("raise", times=2, maxTries=3)
    unsigned = Queue(connection)
    unsigned.push("do", {"tag": "theirs"})
    raw = unsigned.stores.client.command("LRANGE", f"{connection.prefix}queues:default", 1, 1)
    done = keyed.work("-v")

    assert [1, 2, 3] == [line["attempt"] for line in keyed.trail(event="start", tag="")]
    assert [] == keyed.trail(tag="theirs")
    assert (["unsigned"], raw) == (
        reasons(keyed),
        [entry.payload for entry in keyed.queue.stores.records.quarantined("default")],
    )
    assert 1 == done.stderr.count("reason=unsigned")
    assert NEW[1] not in done.stderr
    unsigned.close()


def test_a_failed_job_that_is_retried_still_verifies(keyed):
    keyed.push("raise", times=1)
    keyed.work()
    [failed] = keyed.queue.stores.failed.page()
    keyed.run("retry", *keyed.where, "all")
    keyed.work()

    assert "ValueError: as asked" in failed.exception
    assert [1, 1] == [line["attempt"] for line in keyed.trail(event="start")]
    assert [] == reasons(keyed)


@pytest.mark.thorough("a signed job runs and is tried again above; jobs of dead workers are in pool/")
def test_a_job_whose_worker_died_is_settled_and_its_hook_called_as_of_any_other(keyed):
    keyed.push("kill")
    with keyed.pool("--workers", "1"):
        eventually(lambda: keyed.trail(event="after_failed"))

    assert 1 == keyed.queue.stores.failed.count()
    assert [] == reasons(keyed)


def test_the_command_line_signs_what_it_pushes(keyed):
    keyed.run("push", *keyed.flags(), "do", "--data", '{"tag": "mine"}')
    keyed.work()

    assert 1 == len(keyed.trail(event="end", tag="mine"))


def test_a_payload_is_put_back_when_its_key_is_known(keyed, monkeypatch):
    keyed.push("ok")
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_SIGNING_KEYS", ":".join(OLD))
    keyed.work()
    [entry] = keyed.queue.stores.records.quarantined("default")
    monkeypatch.setenv("QUEUEPOOL_CONNECTION_SIGNING_KEYS", f"{':'.join(OLD)}, {KEYS}")
    keyed.queue.stores.records.requeue("default", entry.id)
    keyed.work()

    assert "unknown-signing-key" == entry.reason
    assert 1 == len(keyed.trail(event="end"))


def test_check_says_which_keys_are_used_and_never_shows_them(keyed):
    done = keyed.run("check", *keyed.flags(), check=False)

    assert "ok   connection default: payloads are signed with new, unsigned ones are refused" in done.stdout
    assert NEW[1] not in done.stdout + done.stderr


# Laravel


def recipe(folder: Path) -> Path:
    """The PHP of docs/signing.md, called as an application would."""
    text = (Path(__file__).parents[2] / "docs" / "signing.md").read_text()
    [code] = re.findall(r"```php\n(.*?)```", text, re.DOTALL)
    path = folder / "boot.php"
    path.write_text(f"{code}\nsign_payloads('{NEW[0]}', '{NEW[1]}');\n")
    return path


def test_what_laravel_signs_verifies_here_also_after_its_own_pop_has_rewritten_it(keyed, peer: Peer):
    data = {"id": 7, "fail_times": 0}
    odd = {"id": 1234567890123456789, "fail_times": []}
    boot = recipe(keyed.path)
    for sent in (data, odd):
        peer.run("push-string", "App\\Jobs\\Report@build", json.dumps(sent), boot=boot)
    peer.run("push-object", "a@b.c", "welcome/é", boot=boot, tries=2)
    rewritten = [peer.run("release-one")["reserved"] for _ in range(3)]
    keyed.work("--tries", "2")

    assert [7, 1234567890123456789] == [line["id"] for line in keyed.trail(mode="Report")]
    assert [("a@b.c", "welcome/é", 2)] == [
        (line["to"], line["template"], line["attempt"]) for line in keyed.trail(mode="SendMail")
    ]
    assert '"id":1.2345678901235e+18' in rewritten[1]
    assert [] == reasons(keyed)


def test_laravels_worker_runs_what_is_signed_here(signed, peer: Peer):
    signed.queue.push("App\\Jobs\\Report@build", {"id": 7})
    peer.run("work", once=True)

    assert [{"id": 7}] == [line["data"] for line in peer.lines()]


# The keys


@each(
    "keys",
    ["secret", "k:short", "k:0123456789 abcdef", ":0123456789abcdef", "k:0123456789abcdef,", "a b:0123456789abcdef",
     "k:0123456789abcdef, k:0123456789abcdefg", "k:0123456789äbcdef"],
)  # fmt: skip
def test_a_key_that_is_none_is_refused_and_not_repeated(keys):
    with pytest.raises(ConfigError) as caught:
        load(None, {"connection.signing_keys": keys}, {})

    assert "123456789" not in str(caught.value)
    assert "--signing-keys: " in str(caught.value)


def test_signing_without_a_key_is_refused():
    with pytest.raises(ConfigError, match="--signing: require needs signing_keys"):
        load(None, {"connection.signing": "require"}, {})


def test_keys_may_stand_in_a_file_of_their_own(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# the first signs\n{':'.join(NEW)}\n\n{':'.join(OLD)}\n")
    path.chmod(0o640)

    assert (NEW, OLD) == load(None, {"connection.signing_keys": str(path)}, {}).connections["default"].signing_keys


def test_no_repr_shows_a_key():
    settings = load(None, {"connection.signing": "require", "connection.signing_keys": KEYS}, {})

    assert NEW[1] not in repr(settings)
