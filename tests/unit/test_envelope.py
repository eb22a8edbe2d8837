"""The envelope: Laravel's JSON is read strictly, and ours is written as Laravel writes it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.config.settings import PoolSettings
from queuepool.errors import BadPayload
from queuepool.jobs.job_options import Options
from queuepool.payload.envelope import MAX_BYTES, OBJECT_JOB, Envelope, Payload, decode, encode
from queuepool.payload.lease import Lease, Tallies
from queuepool.payload.options import PayloadOptions
from queuepool.settlement.failing import record
from queuepool.settlement.verdict import Policy, judge, may_start
from queuepool.worker.plan import policy_of, timeout_of
from tests.support.each import each
from tests.support.effort import effort

MANY = effort(400)

#: as Laravel 8.83 wrote it
LARAVEL_8 = rb"""{"uuid":"1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed","displayName":"App\\Jobs\\SendMail",
"job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":3,"maxExceptions":null,"failOnTimeout":false,
"backoff":"1,5,30","timeout":30,"retryUntil":1893456000,"data":{"commandName":"App\\Jobs\\SendMail",
"command":"O:17:\"App\\Jobs\\SendMail\":0:{}"},"id":"Xk3vYc0XmOnpVRlgnJ5C4TTPt0WHZYwc","attempts":1}"""
#: as Laravel 13 writes a string job
LARAVEL_13 = rb"""{"uuid":"u","displayName":"Report","job":"Report@build","maxTries":null,"maxExceptions":null,
"failOnTimeout":false,"backoff":null,"timeout":null,"data":{"id":7},"createdAt":1754500000,"id":"i","attempts":2,
"delay":60}"""


def decoded(**fields: object) -> Payload:
    return decode(json.dumps({"id": "a", "job": "ok", "attempts": 1, **fields}).encode())


# Read


def test_an_object_job_of_laravel_8_is_read_in_full():
    data = {"commandName": "App\\Jobs\\SendMail", "command": 'O:17:"App\\Jobs\\SendMail":0:{}'}
    expected = Payload(
        id="Xk3vYc0XmOnpVRlgnJ5C4TTPt0WHZYwc",
        uuid="1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
        data=data,
        attempts=1,
        options=PayloadOptions(
            job=OBJECT_JOB,
            display_name="App\\Jobs\\SendMail",
            max_tries=3,
            backoff=(1.0, 5.0, 30.0),
            timeout=30.0,
            retry_until=1_893_456_000.0,
        ),
        fields={},
    )

    assert expected == decode(LARAVEL_8)._replace(fields={})


def test_a_string_job_of_laravel_13_is_read_in_full():
    terms = PayloadOptions(job="Report@build", display_name="Report")
    expected = Payload(
        id="i", uuid="u", data={"id": 7}, attempts=2, options=terms, created_at=1754500000, delay=60, fields={}
    )

    assert expected == decode(LARAVEL_13)._replace(fields={})


def test_the_name_of_an_object_job_is_its_class():
    assert "App\\Jobs\\SendMail" == decode(LARAVEL_8).name


def test_the_name_of_a_string_job_is_all_of_it():
    assert "Report@build" == decode(LARAVEL_13).name


def test_a_job_without_a_name_to_show_shows_its_own():
    assert "ok" == decoded().options.display_name


@each("fields", [{"timeoutAt": 9.0}, {"retryUntil": 9.0, "timeoutAt": 1.0}, {"retryUntil": 9}])
def test_the_time_limit_is_read_from_old_and_new_fields(fields):
    assert 9.0 == decoded(**fields).options.retry_until


def test_a_job_without_an_id_goes_by_its_uuid():
    found = decode(b'{"uuid":"u","job":"ok","attempts":1}')

    assert ("u", True) == (found.id, found.identified)


def test_a_job_whose_id_is_null_goes_by_its_uuid():
    assert "u" == decode(b'{"id":null,"uuid":"u","job":"ok","attempts":1}').id


def test_two_jobs_without_ids_have_ids_of_their_own():
    first, second = (decode(b'{"job":"ok","data":%d,"attempts":1}' % data) for data in (1, 2))

    assert first.id != second.id


def test_what_is_not_understood_is_told_and_ignored():
    found = decoded(timeout="soon", backoff="1,x", retryUntil=[])

    terms = found.options

    assert (None, (1.0,), None, 3) == (terms.timeout, terms.backoff, terms.retry_until, len(found.warnings))


def test_what_is_told_of_an_odd_field_is_short():
    assert all(len(oddity) < 100 for oddity in decoded(timeout="x" * 10_000, backoff="y" * 10_000).warnings)


@each("text", ["3", " 3", "3 ", "+3", "3.", "3.0", "0.3e1", "\t\n\r\v\f003"])
def test_a_numeric_string_is_the_number_that_php_takes_it_for(text):
    keys = ["maxTries", "maxExceptions", "timeout", "retryUntil", "backoff"]

    found = decoded(**dict.fromkeys(keys, text))

    options = found.options
    assert ((3, 3, 3.0, 3.0, (3.0,)), ()) == (
        (options.max_tries, options.max_exceptions, options.timeout, options.retry_until, options.backoff),
        found.warnings,
    )


@each(("fraction", "tries", "exceptions"), [("2.5", 2, 3), (2.5, 2, 3), (".5", 1, 1), ("1e-9", 1, 1)])
def test_a_fraction_of_a_count_allows_as_many_attempts_as_php_does(fraction, tries, exceptions):
    options = decoded(maxTries=fraction, maxExceptions=fraction).options

    assert (tries, exceptions) == (options.max_tries, options.max_exceptions)


@each("text", ["", "abc", "3abc", "0x1A", "1_000", "+ 3", "1e", "٣", "\xa03", "-1", "1e400", "9" * 41])
def test_a_text_that_is_no_number_to_php_is_no_count(text):
    for key in ("maxTries", "maxExceptions"):
        with pytest.raises(BadPayload, match=key):
            decoded(**{key: text})


def test_a_list_of_delays_may_hold_numeric_strings():
    assert (
        (1.0, 2.5, 10.0)
        == decoded(backoff=" 1,2.5,1e1").options.backoff
        == decoded(backoff=["1", 2.5, "10 "]).options.backoff
    )


@each(("value", "expected"), [("0", False), ("", False), ("1", True), ("false", True), ([], False)])
def test_a_text_is_true_where_it_is_in_php(value, expected):
    assert expected is decoded(failOnTimeout=value).options.fail_on_timeout


@each(
    ("raw", "reason"),
    [
        (b"", "json"),
        (b"[]", "not-an-object"),
        (b'{"a":1,"a":2}', "duplicate-key"),
        (b'{"a":NaN}', "not-a-number"),
        (b'{"a":1e999}', "not-a-number"),
        (b'{"a":"\xff"}', "utf-8"),
        (rb'{"a":"\ud800"}', "utf-8"),
        (b"[" * 100_000, "too-deep"),
        (b'{"id":7}', "id"),
        (b'{"id":"a","job":7}', "job"),
        (b'{"id":"a","job":"ok","maxTries":-1}', "maxTries"),
        (b'{"a":' + b"9" * 5_000 + b"}", "json"),
    ],
)
def test_what_cannot_be_a_job_says_why_in_one_word(raw, reason):
    with pytest.raises(BadPayload) as bad:
        decode(raw)

    assert reason == bad.value.reason


def test_brackets_in_a_text_are_not_depth():
    assert "[" * 5_000 == decoded(data="[" * 5_000).data


# Any object at all

scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
numerals = st.sampled_from(["1,5", "x", "1,,2", " 3", "1e9", "-1", "0.5", "٣", "9" * 30])
wishes = scalars | numerals | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=3), scalars, max_size=2)
names = ["id", "uuid", "job", "displayName", "data", "maxTries", "maxExceptions", "failOnTimeout", "backoff", "timeout"]
objects = st.dictionaries(st.sampled_from([*names, "retryUntil", "timeoutAt", "delay"]), wishes, max_size=8)


@MANY
@given(fields=objects, attempts=st.integers(1, 65_536))
def test_any_object_is_ruled_on_or_refused_as_no_job(fields, attempts):
    raw = json.dumps({**fields, "attempts": attempts}).encode()

    try:
        found = decode(raw)
    except BadPayload:
        return
    policy = policy_of(found.options, Options(), PoolSettings())
    assert policy == Policy.from_text(policy.to_text())
    assert timeout_of(found.options, Options(), PoolSettings())[0] >= 0
    may_start(found.name, found.attempts, policy, 0.0)
    judge(ValueError(), found.attempts, policy, Tallies(), 0.0)
    json.dumps(record(found, Lease("default", raw), "default", ValueError()))


@each("key", ["timeout", "retryUntil", "timeoutAt"])
def test_a_number_of_seconds_of_any_length_is_ruled_on(key):
    decode(b'{"id":"a","job":"ok","%s":%s,"attempts":1}' % (key.encode(), b"9" * 400))


def test_a_backoff_is_a_finite_number_of_seconds():
    assert all(delay < float("inf") for delay in decoded(backoff="9" * 400).options.backoff or ())


# Written


def test_a_payload_has_laravels_fields_and_horizons_time_in_laravels_order_and_the_attempts_last():
    identity, raw = encode("app.mail", {"to": "a@b.c"}, Envelope(created_at=1_754_500_000.75))

    expected = (
        f'{{"uuid":"{identity}","displayName":"app.mail","job":"app.mail","maxTries":null,"maxExceptions":null,'
        '"failOnTimeout":false,"backoff":null,"timeout":null,"retryUntil":null,"data":{"to":"a@b.c"},'
        f'"createdAt":1754500000,"id":"{identity}","pushedAt":"1754500000.7500",'
        '"delay":null,"attempts":0}'
    )
    assert expected == raw.decode()


def test_what_is_written_is_read_as_it_was_meant():
    options = {
        "maxTries": 3,
        "maxExceptions": 2,
        "backoff": "1,5",
        "timeout": 9,
        "retryUntil": 99,
        "failOnTimeout": True,
    }

    found = decode(encode("app.mail", [1], Envelope(options=options, created_at=0))[1])

    assert ("app.mail", [1], 3, 2, (1.0, 5.0), 9.0, 99.0, True, ()) == (
        found.name,
        found.data,
        found.options.max_tries,
        found.options.max_exceptions,
        found.options.backoff,
        found.options.timeout,
        found.options.retry_until,
        found.options.fail_on_timeout,
        found.warnings,
    )


def test_every_payload_has_an_id_of_its_own():
    assert 100 == len({encode("ok", None, Envelope(created_at=0))[0] for _ in range(100)})


def test_the_name_to_show_of_a_method_is_its_class():
    assert "Report" == decode(encode("Report@build", None, Envelope(created_at=0))[1]).options.display_name


@each("data", [float("nan"), float("inf"), object(), b"bytes", "\ud800", {b"key": 1}])
def test_data_that_is_not_json_is_refused(data):
    with pytest.raises(BadPayload):
        encode("ok", data, Envelope(created_at=0))


def test_data_that_holds_itself_is_refused():
    data: list[object] = []
    data.append(data)

    with pytest.raises(BadPayload):
        encode("ok", data, Envelope(created_at=0))


def test_data_that_is_too_large_is_refused():
    with pytest.raises(BadPayload, match=str(MAX_BYTES)):
        encode("ok", "x" * MAX_BYTES, Envelope(created_at=0))


@each("name", ["", "a\nb", "a\x00b"])
def test_a_name_that_no_worker_would_take_is_refused(name):
    with pytest.raises(BadPayload):
        encode(name, None, Envelope(created_at=0))


def test_text_is_written_as_it_is():
    assert '"é😀/"' in encode("ok", "é😀/", Envelope(created_at=0))[1].decode()
