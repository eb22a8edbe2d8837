"""Words of other queues are answered with ours, wherever they are typed first."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from queuepool import Job, job
from queuepool.cli.verbs import VERBS
from queuepool.config import words
from queuepool.config.loader import load
from queuepool.config.settings import KEYS, ConnectionSettings
from queuepool.errors import ConfigError
from queuepool.jobs.client import Queue
from queuepool.jobs.job_options import JobOptions, options_of
from tests.support.each import each
from tests.support.samples import fresh


@job(fresh())
def send(to: str) -> str:
    return to


@job(fresh())
def serve(queue: str) -> str:
    return queue


class Mail(Job, name=fresh()):
    to: str

    def handle(self) -> None: ...


@pytest.fixture
def queue(tmp_path):
    with closing(Queue(ConnectionSettings(url=f"sqlite:///{tmp_path}/queue.db"))) as made:
        yield made


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises((AttributeError, TypeError)) as refused:
        call()
    return str(refused.value)


@each(
    ("call", "answer"),
    [
        (lambda: send.delay("a"), "'JobFunction' object has no attribute 'delay': here that is dispatch(...)"),
        (lambda: send.apply_async(("a",), countdown=5), "here that is using(queue=..., delay=...).dispatch(...)"),
        (lambda: Mail("a").send(), "'Mail' object has no attribute 'send': here that is dispatch(...)"),
        (lambda: send.using(countdown=5), "argument 'countdown'; here that is delay=SECONDS"),
        (
            lambda: send.using(priority=5),
            "here that is queue=NAME: a pool serves its queues in strict order, or by weights",
        ),
        (lambda: Mail("a").using(eta=5), "here that is delay=DATETIME"),
        (lambda: send.dispatch("a", queue="mails"), "'queue'; that is set first: using(queue=...).dispatch(...)"),
        (lambda: send.dispatch("a", countdown=5), "'countdown'; that is set first: using(delay=SECONDS).dispatch"),
    ],
)
def test_a_word_of_another_queue_is_answered_with_ours(call, answer):
    assert answer in refusal(call)


@each(
    "push",
    [
        lambda queue, **more: queue.push("a", {}, **more),
        lambda queue, **more: queue.later(5, "a", {}, **more),
        lambda queue, **more: queue.bulk([("a", {})], **more),
        lambda queue, **more: queue.push_object("A", {}, **more),
        lambda queue, **more: asyncio.run(queue.apush("a", {}, **more)),
        lambda queue, **more: asyncio.run(queue.alater(5, "a", {}, **more)),
    ],
)
def test_a_keyword_of_another_queue_is_answered_by_each_push(queue, push):
    assert refusal(lambda: push(queue, countdown=5)).endswith("'countdown'; here that is delay=SECONDS")
    assert "here that is" not in refusal(lambda: push(queue, cuontdown=5))


def test_a_queue_answers_with_its_own_methods(queue):
    assert refusal(lambda: queue.enqueue(send, "a")).endswith("'enqueue': here that is push(name, data)")


def test_another_mistake_is_answered_as_before():
    assert "'JobFunction' object has no attribute 'dispach'" == refusal(lambda: send.dispach("a"))
    assert refusal(lambda: send.dispatch("a", sbuject="b")).endswith("got an unexpected keyword argument 'sbuject'")
    assert refusal(lambda: serve.dispatch(queue="a", extra=1)).endswith("got an unexpected keyword argument 'extra'")
    assert not hasattr(send, "delay")
    assert "a" == copy.copy(send)("a")


@each(("word", "ours"), [*words.OPTIONS.items()])
def test_each_option_that_is_suggested_is_one(word, ours):
    assert ours in JobOptions.__annotations__
    with pytest.raises(ConfigError, match=f"there is no option '{word}': did you mean '{ours}'"):
        options_of({word: 1})  # type: ignore[misc]


@each(("word", "ours"), [*words.VERBS.items()])
def test_each_verb_that_is_suggested_is_one(word, ours):
    assert ours.partition(" ")[0] in VERBS
    assert word not in VERBS


def test_each_key_that_is_suggested_is_one_or_a_flag_or_a_key_of_a_connection():
    others = {"stop_when_empty", "delay", "url"}

    assert set(words.KEYS.values()) <= KEYS["pool"].keys() | others
    assert not words.KEYS.keys() & KEYS["pool"].keys()


def test_a_key_of_another_queue_is_answered_with_ours(tmp_path):
    (tmp_path / "pool.ini").write_text("[pool]\nprocesses = 4\n")
    with pytest.raises(ConfigError, match=r"\[pool\] processes: unknown key; did you mean 'workers'\?"):
        load(tmp_path / "pool.ini", {}, {})


@each(("holder", "methods"), [(send, words.METHODS), (Mail("a"), words.METHODS), (Queue, words.QUEUES)])
def test_no_word_hides_a_method_of_ours(holder, methods):
    assert [] == [name for name in methods if hasattr(holder, name)]
