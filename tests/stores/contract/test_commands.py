"""Commands to pools on other hosts, their answers, and the journal, in every store."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from queuepool.payload.signing import Signer
from queuepool.stores.commands import MAX_WORDS, CommandAnswer, CommandOutcome, CommandPost, NoCommand, RemoteCommand
from queuepool.stores.due_log import DueLine
from queuepool.stores.journal import Action
from tests.support.each import each

POOL, OTHER, BATCH = "a1b2c3d4e5f6", "0f0f0f0f0f0f", "0123456789abcdef"
KEYS = (("k1", "0123456789abcdef"),)


def command(to: str = POOL, verb: str = "pause", **details: Any) -> RemoteCommand:
    return RemoteCommand(to, verb, details, "jo@web1", 1_790_000_000.25, BATCH)


@pytest.fixture
def post(built):
    return built.commands


def signed(built, *keys: tuple[str, str]) -> CommandPost:
    signer = Signer(keys or KEYS, required=True)
    return CommandPost(built.values, built.control.announce, signer)


def reasons(post: CommandPost) -> list[str]:
    """Why each of the pool's commands cannot be carried out; empty for one that can."""
    return [found.reason if isinstance(found, NoCommand) else "" for found in post.take(POOL)]


def test_a_pool_gets_its_commands_once_and_as_they_were_sent(post):
    sent = [command(verb="scale", workers=3), command(OTHER), command(verb="continue")]
    post.send(sent)

    assert [sent[0], sent[2]] == list(post.take(POOL))
    assert [] == list(post.take(POOL))
    assert [sent[1]] == list(post.take(OTHER))


def test_pools_learn_from_the_control_keys_that_there_is_something(built, post):
    before = built.control.read(["default"]).news
    post.send([command()])
    first = built.control.read(["default"]).news
    built.journal.write("jo@web1", "pause", "queue default")

    assert (None, 3) == (before, len({before, first, built.control.read(["default"]).news}))


def test_a_command_is_taken_back_unless_its_pool_has_it(post):
    one, two = command(), command(OTHER)
    first, second = post.send([one, two])
    taken = list(post.take(POOL))

    assert [one] == taken
    assert not post.withdraw(one, first)
    assert post.withdraw(two, second)
    assert [] == list(post.take(OTHER))


def test_answers_come_to_the_call_that_asked(post):
    one, other = command(), replace(command(), batch="ff")
    post.answer(one, CommandOutcome.DONE, "paused")
    post.answer(other, CommandOutcome.REFUSED, "x" * 100_000)

    assert [CommandAnswer(one.id, CommandOutcome.DONE, "paused")] == list(post.answers(BATCH))
    assert [] == list(post.answers(BATCH))
    assert [CommandAnswer(other.id, CommandOutcome.REFUSED, "x" * MAX_WORDS)] == list(post.answers("ff"))


def test_where_there_are_keys_a_command_counts_only_if_it_is_signed(built, post):
    guarded = signed(built)
    guarded.send([command()])
    post.send([command()])
    signed(built, ("k1", "another secret!!")).send([command()])
    signed(built, ("k2", "0123456789abcdef")).send([command()])

    assert ["", "unsigned", "wrong-signature", "unknown-signing-key"] == reasons(guarded)


def test_neither_a_signature_of_a_payload_nor_a_changed_text_will_do(built):
    guarded, signer = signed(built), Signer(KEYS, required=True)
    body = json.dumps({"to": POOL})
    built.values.note(f"commands:{POOL}", json.dumps(signer.sign("default", {"to": POOL})), 10, 60.0)
    built.values.note(f"commands:{POOL}", json.dumps({**signer.seal("command", body), "body": f"{body} "}), 10, 60.0)

    assert ["wrong-signature", "wrong-signature"] == reasons(guarded)


GOOD: dict[str, Any] = {
    "to": POOL, "verb": "pause", "details": {}, "by": "jo@web1", "at": 1.0, "batch": "ff", "id": "aa",
}  # fmt: skip
#: whoever prints it recurses as deeply: Python 3.11 cannot
DEEP = f'{{"body": {"[" * 990 + "]" * 990}}}'
WRONG: list[dict[str, Any]] = [
    {"to": 1}, {"verb": None}, {"details": []}, {"by": {}}, {"at": "1"}, {"at": -1}, {"at": 1e30}, {"batch": "../x"},
    {"batch": ""}, {"id": "A"}, {"id": "a" * 33},
]  # fmt: skip


@pytest.mark.bad_input("B173")
@each(
    "text",
    [
        *(
            "",
            "garbage",
            "[]",
            "5",
            '{"body": 5}',
            '{"body": "x"}',
            '{"body": "{}"}',
            "[" * 2000,
            DEEP,
        ),
        *(json.dumps({"body": json.dumps(GOOD | change)}) for change in WRONG),
    ],
)
def test_what_is_no_command_is_refused_and_hides_no_other(built, post, text):
    built.values.note(f"commands:{POOL}", text, 10, 60.0)
    built.values.note(f"commands:{POOL}", json.dumps({"body": json.dumps(GOOD)}), 10, 60.0)

    assert [True, False] == [bool(reason) for reason in reasons(post)]


@pytest.mark.bad_input("B173")
@each(
    "text",
    ["", "garbage", "{}", '{"id": 1, "outcome": "done", "words": ""}', '{"id": "a", "outcome": "x", "words": ""}'],
)
def test_what_is_no_answer_is_left_out(built, post, text):
    built.values.note(f"answers:{BATCH}", text, 10, 60.0)
    post.answer(command(), CommandOutcome.FAILED, "it hangs")

    assert [CommandOutcome.FAILED] == [answer.outcome for answer in post.answers(BATCH)]


def test_the_journal_has_its_lines_in_their_order(built):
    journal, began = built.journal, built.queue.now()
    journal.write("jo@web1", "pause", "queue default")
    journal.write("al@web2", "retry", "failed jobs of queue mail", 300)
    lines = journal.last(10)

    assert [("jo@web1", "pause", "queue default", None), ("al@web2", "retry", "failed jobs of queue mail", 300)] == [
        (line.by, line.verb, line.subject, line.count) for line in lines
    ]
    assert began - 1 <= lines[0].at <= lines[1].at <= built.queue.now() + 1
    assert lines[1:] == journal.last(1)
    assert 2 == len({line.id for line in lines})


LINE: dict[str, Any] = {"at": 1.0, "by": "a", "verb": "b", "subject": "c", "count": None, "id": "d"}


@pytest.mark.bad_input("B173")
@each("text", ["", "garbage", "{}", json.dumps(LINE | {"at": "x"}), json.dumps(LINE | {"at": 3e11})])
def test_a_damaged_line_of_the_journal_is_left_out(built, text):
    built.values.note("journal", text, 10, 60.0)
    built.journal.write("jo@web1", "pause", "x" * 5000)

    [line] = built.journal.last(2)
    assert isinstance(line, Action)
    assert 1000 == len(line.subject)


@pytest.mark.bad_input("B173")
@each("change", [{"due": 3 * 10**11}, {"first": 3 * 10**11}, {"at": 3e11}, {"at": None}])
def test_a_damaged_line_of_a_schedule_is_left_out(change):
    good = asdict(DueLine(7200, 7201.0, first=3600, reason="late"))

    assert DueLine.from_text(json.dumps(good).encode())
    assert DueLine.from_text(json.dumps(good | change).encode()) is None
