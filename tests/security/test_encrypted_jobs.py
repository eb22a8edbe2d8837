"""Encrypted jobs: Laravel's and ours, both ways, and what happens without the right key."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import queuepool.config.connections
from queuepool import Job, configure, job
from queuepool.config.loader import load
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadArguments, BadPayload, ConfigError, NotSendable
from queuepool.jobs.client import Queue
from queuepool.payload.command import command_of
from queuepool.payload.encrypter import CannotDecrypt, Encrypter
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.php_unserialize import PhpDataRefused
from queuepool.payload.php_values import build_command, serialize
from queuepool.settlement.endings import commands_of
from tests.support.each import each
from tests.support.laravel_peer import Peer

MAIL = "App\\Jobs\\SecretMail"
SECRET = "s3cret-of-the-mail é/"
SIZES = {"AES-256-CBC": 32, "AES-128-CBC": 16, "AES-256-GCM": 32, "AES-128-GCM": 16}
#: ``serialize(new PyJob)`` with a key of ``k``, as Illuminate\\Encryption\\Encrypter of 8.83 encrypted it
RECORDED: dict[str, str] = json.loads((Path(__file__).parent.parent / "faults/corpus/encrypted.json").read_text())


def key_of(cipher: str, letter: str = "k") -> bytes:
    return letter.encode() * SIZES[cipher]


def encrypter(cipher: str = "AES-256-CBC", letters: str = "k") -> Encrypter:
    return Encrypter(cipher, [key_of(cipher, letter) for letter in letters])


def data_of(text: str) -> dict[str, str]:
    return {"commandName": "PyJob", "command": text}


# Reading what Laravel encrypted


@each("cipher", RECORDED)
def test_a_job_that_laravel_encrypted_gives_its_properties(cipher):
    assert {"n": 5, "t": "é/"} == command_of(data_of(RECORDED[cipher]), encrypter(cipher)).arguments


@each("cipher", RECORDED)
def test_each_of_several_keys_decrypts(cipher):
    found = command_of(data_of(RECORDED[cipher]), encrypter(cipher, letters="abk"))

    assert {"n": 5, "t": "é/"} == found.arguments


@each("cipher", RECORDED)
def test_a_wrong_key_is_refused_in_one_line(cipher):
    with pytest.raises(BadArguments) as caught:
        command_of(data_of(RECORDED[cipher]), encrypter(cipher, letters="ab"))

    assert "bad arguments for PyJob: it cannot be decrypted with these keys" == str(caught.value)


def test_without_a_key_the_setting_is_named():
    with pytest.raises(BadArguments, match="it is encrypted, and there is no key: set app_key"):
        command_of(data_of(RECORDED["AES-256-CBC"]))


def test_the_other_mode_reads_nothing():
    for cipher, other in [("AES-256-CBC", "AES-256-GCM"), ("AES-256-GCM", "AES-256-CBC")]:
        with pytest.raises(CannotDecrypt):
            encrypter(other).decrypt(RECORDED[cipher])


@pytest.mark.by_turns("cipher")
@pytest.mark.parametrize("cipher", RECORDED)
@given(data=st.data())
def test_a_text_that_was_changed_anywhere_is_never_decrypted(cipher, data):
    fields = json.loads(base64.b64decode(RECORDED[cipher]))
    name = data.draw(st.sampled_from([name for name in fields if fields[name]]))
    at = data.draw(st.integers(0, len(fields[name]) - 1))
    letter = data.draw(st.sampled_from("0aA+/=é").filter(lambda letter: letter != fields[name][at]))
    fields[name] = fields[name][:at] + letter + fields[name][at + 1 :]
    changed = base64.b64encode(json.dumps(fields).encode()).decode()
    before = json.loads(base64.b64decode(RECORDED[cipher]))

    if cipher.endswith("GCM") and all(same_bytes(fields[one], before[one]) for one in ("iv", "value", "tag")):
        return  # base64 has bits that mean nothing
    with pytest.raises(CannotDecrypt):
        encrypter(cipher).decrypt(changed)


def same_bytes(one: str, other: str) -> bool:
    try:
        return base64.b64decode(one, validate=True) == base64.b64decode(other)
    except ValueError:
        return False


@pytest.mark.by_turns("cipher")
@pytest.mark.parametrize("cipher", RECORDED)
@given(st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps),
                 st.dictionaries(st.sampled_from(["iv", "value", "mac", "tag"]), st.none() | st.integers() | st.text()
                                 | st.lists(st.text())).map(json.dumps)))  # fmt: skip
def test_reading_anything_raises_the_one_refusal(cipher, text):
    for given_text in (text, base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()):
        with pytest.raises(CannotDecrypt):
            encrypter(cipher).decrypt(given_text)


def test_an_encrypted_text_that_is_no_object_is_a_bad_argument():
    for plain in ("", "N;", "O:1:", 'a:1:{i:0;s:1:"x";}'):
        with pytest.raises(BadArguments):
            command_of(data_of(encrypter().encrypt(plain)), encrypter())


def test_what_was_encrypted_without_being_serialized_is_refused():
    fields = encrypter()._ciphers[0].encrypt(b'O:1:"A":0:{}')
    text = base64.b64encode(json.dumps(fields).encode()).decode()

    with pytest.raises((CannotDecrypt, PhpDataRefused)):
        encrypter().decrypt(text)


@pytest.mark.by_turns("cipher")
@pytest.mark.parametrize("cipher", RECORDED)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_encrypted_here_is_read_here(cipher, text):
    assert text == encrypter(cipher).decrypt(encrypter(cipher).encrypt(text))


def test_bytes_that_are_not_utf8_survive():
    binary = 'O:1:"A":1:{s:1:"x";s:1:"\udcff";}'
    plain = f's:{len(binary)}:"{binary}";'.encode("utf-8", "surrogateescape")
    text = base64.b64encode(json.dumps(encrypter()._ciphers[0].encrypt(plain)).encode()).decode()

    assert {"x": "\udcff"} == command_of(data_of(text), encrypter()).arguments


# With the real Laravel


@pytest.fixture(params=SIZES)
def cipher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def keyed(connection: ConnectionSettings, cipher: str) -> ConnectionSettings:
    return replace(connection, app_key=key_of(cipher), previous_keys=(key_of(cipher, "p"),), cipher=cipher)


@pytest.fixture
def queue(keyed: ConnectionSettings) -> Iterator[Queue]:
    opened = configure(keyed)
    yield opened
    opened.close()


def flags(cipher: str, letter: str = "k") -> dict[str, str]:
    return {"app_key": base64.b64encode(key_of(cipher, letter)).decode(), "cipher": cipher}


def reserved(queue: Queue) -> tuple[bytes, Payload]:
    [lease] = queue.stores.queue.reserve(["default"], 1, 1).leases
    return lease.receipt, decode(lease.receipt)


@pytest.mark.by_turns("cipher")
@pytest.mark.by_turns("letter")
@pytest.mark.parametrize("letter", ["k", "p"])
def test_an_encrypted_job_of_laravel_is_read_with_its_key_or_a_previous_one(peer: Peer, queue, keyed, cipher, letter):
    peer.run("push-object", "a@b.c", SECRET, encrypted=True, **flags(cipher, letter))
    raw, found = reserved(queue)

    assert (MAIL, False) == (found.name, b"a@b.c" in raw)
    assert {"to": "a@b.c", "template": SECRET} == commands_of(keyed).data_of(found)


@pytest.mark.by_turns("cipher")
def test_an_encrypted_object_of_ours_is_run_by_laravel(peer: Peer, queue, cipher):
    queue.push_object(MAIL, {"to": "a@b.c", "template": SECRET}, encrypted=True)
    peer.run("work", once=True, **flags(cipher))

    assert [(MAIL, "a@b.c", SECRET)] == [(line["job"], line["to"], line["template"]) for line in peer.lines()]


@pytest.mark.by_turns("cipher")
def test_the_plaintext_is_what_laravel_would_have_encrypted(queue):
    queue.push_object(MAIL, {"to": "a@b.c"}, encrypted=True)
    text = reserved(queue)[1].data["command"]
    [mode] = queue._encryption._encrypter._ciphers[:1]

    assert serialize(build_command(MAIL, {"to": "a@b.c"})) == mode.decrypt(json.loads(base64.b64decode(text))).decode()


# Python's own


@job("encrypted.greet", encrypted=True)
def greet(name: str, times: int = 1) -> None: ...


class Letter(Job, name="encrypted.letter", encrypted=True):
    text: str

    def handle(self) -> None: ...


@pytest.mark.by_turns("cipher")
@pytest.mark.parametrize("dispatch", [
    lambda queue: greet.dispatch(SECRET, times=2), lambda queue: greet.using(delay=0).dispatch(SECRET, times=2),
    lambda queue: greet.bulk([{"name": SECRET, "times": 2}]),
    lambda queue: queue.push("encrypted.greet", {"name": SECRET, "times": 2}, encrypted=True),
])  # fmt: skip
def test_a_job_of_ours_is_encrypted_as_it_is_declared(queue, keyed, dispatch):
    dispatch(queue)
    raw, found = reserved(queue)

    assert ("encrypted.greet", ["qp_encrypted"], False) == (found.name, list(found.data), b"s3cret" in raw)
    assert {"name": SECRET, "times": 2} == commands_of(keyed).data_of(found)


@pytest.mark.by_turns("cipher")
@pytest.mark.parametrize("push", [lambda: Letter(SECRET).dispatch(), lambda: Letter.bulk([Letter(SECRET)])])
def test_a_job_class_of_ours_is_encrypted_as_it_is_declared(queue, keyed, push):
    push()
    raw, found = reserved(queue)

    assert ({"text": SECRET}, False) == (commands_of(keyed).data_of(found), b"s3cret" in raw)


@pytest.mark.by_turns("cipher")
def test_a_signed_payload_may_be_encrypted(keyed):
    signed = Queue(replace(keyed, signing="require", signing_keys=(("k1", "0123456789abcdef"),)))
    signed.push("a.b", {"x": SECRET}, encrypted=True)
    raw, found = reserved(signed)

    assert ({"x": SECRET}, False) == (commands_of(keyed).data_of(found), b"s3cret" in raw)
    assert json.loads(json.loads(raw)["qp"]["body"])["data"] == found.data
    signed.close()


@pytest.mark.by_turns("cipher")
@pytest.mark.parametrize("data", [{"qp_encrypted": "x"}, {"qp_encrypted": None}, {"qp_encrypted": {}, "more": 1}])
def test_data_that_only_looks_encrypted_is_a_bad_argument(queue, keyed, data):
    queue.push("a.b", data)
    found = reserved(queue)[1]

    with pytest.raises(BadArguments, match=r"a\.b: it cannot be decrypted with these keys"):
        commands_of(keyed).data_of(found)
    with pytest.raises(BadArguments, match="there is no key"):
        commands_of(ConnectionSettings()).data_of(found)


@pytest.mark.by_turns("cipher")
def test_what_cannot_be_sent_is_named_as_ever(queue):
    with pytest.raises(NotSendable, match=r"argument 'name' of encrypted\.greet: no JSON for object"):
        greet.dispatch(object())


@pytest.mark.thorough("the limit itself is held where jobs are pushed; what cannot be sent is refused above")
@pytest.mark.by_turns("cipher")
def test_what_is_too_large_once_it_is_encrypted_is_refused(queue):
    with pytest.raises(BadPayload, match="bytes, at most"):
        queue.push("a.b", {"x": "x" * 10 * 2**20}, encrypted=True)


def test_nothing_is_pushed_in_clear_for_want_of_a_key(connection):
    plain = Queue(connection)
    for push in (plain.push, plain.push_object):
        with pytest.raises(ConfigError, match="connection default: encrypted jobs need app_key"):
            push("A", {"x": 1}, encrypted=True)

    assert 0 == plain.size()
    plain.close()


# The settings


def loaded(**said: Any) -> ConnectionSettings:
    given_keys = {f"connection.{key}": value for key, value in said.items()}
    return load(None, given_keys, {}).connections["default"]


def written(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


KEY = f"base64:{base64.b64encode(b'k' * 32).decode()}"


def test_a_key_is_given_as_laravel_has_it(tmp_path):
    for said in (KEY, "k" * 32, written(tmp_path / "key", f"# APP_KEY\n{KEY}\n")):
        assert b"k" * 32 == loaded(app_key=said).app_key
    previous = written(tmp_path / "keys", f"{KEY}\n\n{'p' * 32}\n")
    for said in (f"{KEY},{'p' * 32}", f" {KEY} , {'p' * 32}, ", previous):
        assert (b"k" * 32, b"p" * 32) == loaded(app_key=KEY, previous_keys=said).previous_keys


@each(
    ("said", "problem"),
    [
        ({"app_key": "short-key"}, "--app-key: a key has 9 bytes, and AES-256-CBC takes 32: copy it"),
        ({"app_key": "x"}, "--app-key: a key has 1 byte, and AES-256-CBC takes 32"),
        ({"app_key": KEY, "cipher": "AES-128-GCM"}, "--app-key: a key has 32 bytes, and AES-128-GCM takes 16"),
        ({"app_key": KEY, "previous_keys": "y" * 16}, "--previous-keys: a key has 16 bytes"),
        ({"app_key": "base64:%%%"}, "--app-key: what follows base64: is not base64"),
        ({"app_key": f"{KEY},{KEY}"}, "--app-key: holds more than one key"),
        ({"previous_keys": KEY}, "--previous-keys: needs app_key"),
        ({"cipher": "AES-512"}, "--cipher: 'AES-512' is not supported; it can be: AES-256-CBC"),
        ({"app_key": "/nowhere/key"}, "--app-key: /nowhere/key cannot be read: No such file"),
    ],
)
def test_a_key_that_is_none_is_one_clear_line_without_it(said, problem):
    with pytest.raises(ConfigError) as caught:
        loaded(**said)

    assert str(caught.value).startswith(problem)
    assert 1 == len(str(caught.value).splitlines())
    assert [] == [word for word in ("short-key", KEY, "yyyy", "%%%") if word in str(caught.value)]


def test_a_file_without_a_key_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--app-key: holds no key"):
        loaded(app_key=written(tmp_path / "key", "# none\n"))


@pytest.mark.parametrize("line", [f"app_key = {KEY}", f"app_key = {KEY}\nprevious_keys = {KEY}"])
def test_a_key_that_every_user_can_read_is_refused(tmp_path, line):
    path = Path(written(tmp_path / "pool.ini", f"[connection]\n{line}\n", 0o644))
    with pytest.raises(ConfigError, match=f"app_key: holds keys that every user can read: chmod 600 {path}") as caught:
        load(path, {}, {})
    file = written(tmp_path / "key", KEY, 0o644)
    with pytest.raises(ConfigError, match=f"--app-key: {file} holds keys that every user can read"):
        loaded(app_key=file)

    assert KEY not in str(caught.value)


def test_a_file_that_only_names_the_keys_variable_may_be_read_by_everybody(tmp_path):
    path = Path(written(tmp_path / "pool.ini", "[connection]\napp_key = ${APP_KEY}\n", 0o644))

    assert b"k" * 32 == load(path, {}, {"APP_KEY": KEY}).connections["default"].app_key


def test_no_repr_shows_a_key():
    settings = loaded(app_key="k" * 32, previous_keys="p" * 32)

    assert ("kkkk" in repr(settings), "pppp" in repr(settings)) == (False, False)


def test_the_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(queuepool.config.connections, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"app_key: needs pip install 'queuepool-worker\[encrypted\]'"):
        Queue(ConnectionSettings(app_key=b"k" * 32))
