"""Listeners, mailables, notifications and broadcast events that Laravel queues, with handlers in Python."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool import job
from queuepool.errors import BadArguments, UnknownJob
from queuepool.jobs.arguments import reader_of
from queuepool.jobs.registry import REGISTRY, bound
from queuepool.payload.command import _OFFERS, Commands, command_of
from queuepool.payload.envelope import OBJECT_JOB, Payload, decode
from queuepool.payload.php_unserialize import PhpObject
from queuepool.payload.php_values import build_command, serialize
from queuepool.payload.wrappers import WRAPPERS
from tests.cli.test_pages_and_examples import ROOT, blocks
from tests.support.each import each
from tests.support.effort import effort
from tests.support.pools import Site

#: what wrapped.php printed
RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "faults/corpus/wrapped.json").read_text()
)
SHIPPED = {"order": 7, "carrier": "dhl"}
LISTENER = "Illuminate\\Events\\CallQueuedListener"
CLOSURE = "Illuminate\\Queue\\CallQueuedClosure"


def payload(fields: dict[str, Any]) -> Payload:
    return decode(json.dumps({**fields, "id": "i", "attempts": 1}).encode())


def wrapping(kind: str, **properties: Any) -> Payload:
    data = {"commandName": kind, "command": build_command(kind, properties)}
    return payload({"job": OBJECT_JOB, "displayName": "App\\X", "data": data})


def called(name: str, found: Payload) -> Any:
    """The result of the registered handler, called as a worker does."""
    handler = REGISTRY.find(name)
    return bound(handler, Commands().data_of(found), reader_of(name, handler.target)).run()


# Each takes what it needs


@dataclass
class Shipped:
    order: int
    carrier: str


@job("App\\SendReceipt")
def send_receipt(event: Shipped, event_class: str) -> Any:
    return event, event_class


@job("App\\UserEvents")
def user_events(method: str, data: list[Any]) -> Any:
    return method, data


@job("App\\Welcome")
def welcome(mailable: dict[str, Any]) -> Any:
    return mailable["to"], mailable["subject"], mailable["name"]


@job("App\\InvoicePaid")
def invoice_paid(notification: dict[str, Any], notifiables: list[Any], channels: list[str]) -> Any:
    return notification["amount"], notifiables, channels


@job("App\\OrderShipped")
def order_shipped(**offered: Any) -> Any:
    return offered


RESULTS = {
    "listener": ("App\\SendReceipt", (Shipped(7, "dhl"), "App\\OrderShipped")),
    "listener of a name": ("App\\UserEvents", ("onLogin", [42, True])),
    "mailable": ("App\\Welcome", ([{"name": None, "address": "a@b.c"}], "Hello", "Zoë")),
    "notification": ("App\\InvoicePaid", (990, [{"routes": {"mail": "a@b.c"}}], ["mail"])),
    "broadcast": ("App\\OrderShipped", {"event": SHIPPED, "event_class": "App\\OrderShipped"}),
}


@each("kind", RECORDED)
def test_a_handler_is_found_by_the_display_name_and_takes_what_it_names(kind):
    name, result = RESULTS[kind]
    found = payload(RECORDED[kind])

    assert (name, result) == (found.name, called(name, found))


def test_laravel_itself_makes_the_recorded_payloads():
    if shutil.which("php") is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs php")
    script = Path(__file__).parent / "wrapped.php"
    done = subprocess.run(["php", str(script)], capture_output=True, text=True, timeout=60, check=False)
    if "Failed opening required 'Illuminate/" in done.stderr and "CI" not in os.environ:
        pytest.skip("needs Illuminate's mail, notifications and broadcasting")
    made = json.loads(done.stdout)

    assert [{**one, "uuid": ""} for one in RECORDED.values()] == [{**one, "uuid": ""} for one in made.values()]


def test_all_that_is_on_offer():
    listener = payload(RECORDED["listener"])
    offered = Commands().data_of(listener)

    assert {"event": SHIPPED, "event_class": "App\\OrderShipped", "method": "handle"} == {
        name: value for name, value in offered.items() if name != "data"
    }
    assert [PhpObject("App\\OrderShipped", SHIPPED)] == offered["data"]


def test_a_parameter_that_is_not_on_offer_is_named():
    @job("wrapped.wrong")
    def wrong(event: Any, order: int) -> None: ...

    with pytest.raises(BadArguments, match=r"wrapped\.wrong: missing a required argument: 'order'"):
        called("wrapped.wrong", payload(RECORDED["listener"]))


def test_models_that_are_notified_come_one_by_one():
    model = {"class": "App\\Models\\User", "id": [3, 5], "relations": [], "connection": "mysql"}
    users = PhpObject("Illuminate\\Contracts\\Database\\ModelIdentifier", model)
    kind = "Illuminate\\Notifications\\SendQueuedNotifications"
    found = command_of(wrapping(kind, notifiables=users, notification=None, channels=None).data).arguments

    assert [{**model, "id": 3}, {**model, "id": 5}] == found["notifiables"]


def test_a_listener_of_an_old_laravel_has_its_data_serialized_twice():
    found = wrapping(LISTENER, method="handle", data=serialize([PhpObject("E", {"n": 1})]))

    assert {"n": 1} == command_of(found.data).arguments["event"]


PLAIN = st.none() | st.integers(-5, 5) | st.text("ab")
MODELS = PLAIN.map(lambda key: PhpObject("Illuminate\\Contracts\\Database\\ModelIdentifier", {"id": key}))
NAMES = ["data", "event", "mailable", "notification", "notifiables", "channels", "method", "chained"]


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(st.sampled_from(["items", "id", "x"]), inner).map(lambda one: PhpObject("C", one))
    return st.lists(inner) | st.dictionaries(st.text("ab"), inner) | objects


@pytest.mark.parametrize("examples", [8, pytest.param(100, marks=pytest.mark.thorough("more of the same"))])
@pytest.mark.parametrize("kind", sorted(WRAPPERS))
@pytest.mark.by_turns("kind")
def test_whatever_a_wrapper_holds_it_is_read_or_refused(kind, examples):
    @effort(examples)
    @given(st.dictionaries(st.sampled_from(NAMES), st.recursive(PLAIN | MODELS, deeper)))
    def check(properties):
        with suppress(BadArguments):
            assert isinstance(command_of(wrapping(kind, **properties).data).arguments, dict)

    check()


def test_a_wrapper_without_a_display_name_is_an_unknown_job():
    fields = {**RECORDED["listener"], "displayName": None}

    assert OBJECT_JOB == payload(fields).name


def test_the_handlers_of_the_page_take_what_laravel_pushes(tmp_path, monkeypatch):
    [block] = [one for one in blocks(ROOT / "docs/laravel.md", "python") if one.module == "app/laravel_jobs"]
    (tmp_path / "laravel_jobs_of_the_page.py").write_text(block.code)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("laravel_jobs_of_the_page")
    names = [
        "App\\Listeners\\SendReceipt",
        "App\\Mail\\Welcome",
        "App\\Notifications\\InvoicePaid",
        "App\\Events\\OrderMoved",
    ]

    for kind, name in zip(["listener", "mailable", "notification", "broadcast"], names, strict=True):
        called(name, payload({**RECORDED[kind], "displayName": name}))


# Closures


def test_a_closure_is_refused_in_one_line():
    with pytest.raises(UnknownJob) as caught:
        REGISTRY.find(wrapping(CLOSURE).name)

    assert str(caught.value).startswith("a closure holds PHP code, which cannot run here: dispatch a class, ")


APP = """
from tests.support.poolapp import note
from queuepool import job

@job("App\\\\SendReceipt")
def send_receipt(event, event_class):
    note(event="receipt", order=event["order"], of=event_class)
"""


def test_a_worker_runs_a_listener_and_records_a_closure_as_failed(site: Site):
    (site.path / "wrappedapp.py").write_text(APP)
    closure = {
        "job": OBJECT_JOB,
        "displayName": "Closure (web.php:12)",
        "data": {"commandName": CLOSURE, "command": ""},
    }
    for identity, fields in {"l": RECORDED["listener"], "c": closure}.items():
        site.queue.push_raw(json.dumps({**fields, "id": identity, "attempts": 0}).encode())
    log = site.work("--modules", "wrappedapp").stderr

    assert [(7, "App\\OrderShipped")] == [(line["order"], line["of"]) for line in site.trail(event="receipt")]
    assert re.search(r"job=App\\+SendReceipt ", log)
    assert "a closure holds PHP code, which cannot run here" in log
    assert 1 == site.queue.stores.failed.count()


def test_every_class_that_is_known_by_its_display_name_is_read() -> None:
    assert set(_OFFERS) == WRAPPERS
