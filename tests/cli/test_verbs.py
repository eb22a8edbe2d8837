"""The command line: what each verb does, what it prints, and how it exits."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from queuepool.cli.options import FLAGS
from queuepool.config.settings import KEYS
from tests.support import in_process, warm
from tests.support.each import each
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.processes import go_on, halt
from tests.support.redis_server import PREFIX
from tests.support.samples import made

Done = subprocess.CompletedProcess[str]
Cli = Callable[..., Done]
#: colours, a bell, and text from right to left
EVIL = "\x1b[31m\x07\u202e"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """One command to its end in this process; ``site.run`` is the real thing."""
    return partial(in_process.queuepool, capsys)


@pytest.fixture
def at(site: Site) -> list[str]:
    """The flags that say where the store is."""
    return ["--url", site.connection.url, "--prefix", PREFIX]


@pytest.fixture
def here(site: Site) -> list[str]:
    """The flags that say where the local pool is."""
    return ["--runtime-dir", str(site.path / "run")]


@pytest.fixture
def config(site: Site) -> list[str]:
    """A file with two pools on one connection, none of them running."""
    path = site.path / "pool.ini"
    path.write_text(
        f"[pool]\nruntime_dir = {site.path}/run\nmodules = tests.support.poolapp\n"
        "[pool:fast]\nqueue = high\n[pool:slow]\nqueue = low,mail\n"
        f"[connection]\nurl = {site.connection.url}\nprefix = {PREFIX}\n"
    )
    return ["-c", str(path)]


@pytest.fixture
def start(site: Site) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A command that runs on until the test ends it."""
    running: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-m", "queuepool", *words], subprocess.PIPE
        env = site.env()
        running.append(subprocess.Popen(command, env=env, cwd=site.path, stdout=pipe, stderr=pipe, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def fail(site: Site, count: int = 1, queue: str = "high", **data: Any) -> list[str]:
    """Jobs that have failed; their ids."""
    ids = [site.push("raise", queue=queue, **data) for _ in range(count)]
    site.work("--queue", queue)
    return ids


def quarantine(site: Site, *payloads: bytes) -> None:
    """Payloads that a worker has set aside, in the queue ``high``."""
    for payload in payloads:
        site.queue.push_raw(payload, queue="high")
    site.work("--queue", "high")


def wait_for_start(site: Site, count: int = 1) -> None:
    eventually(lambda: count == len(site.trail(event="start")))


# Bad command lines


@pytest.mark.bad_input("B091")
def test_what_follows_two_dashes_is_an_operand(cli, at):
    done = cli("size", *at, "--json", "--", "--max")

    assert [("--max", 0)] == [(row["queue"], row["size"]) for row in json.loads(done.stdout)]


def test_a_wrong_configuration_is_told_line_by_line_with_exit_code_78(site):
    (site.path / "pool.ini").write_text("[pool]\nworkers = 0\ntimout = 5\n")
    done = site.run("start", "-c", "pool.ini", check=False)

    assert 78 == done.returncode
    assert ["pool.ini:2: [pool] workers", "pool.ini:3: [pool] timout"] == [
        line.rpartition(": ")[0] for line in done.stderr.splitlines()
    ]


def test_the_environment_names_the_configuration(cli, config, monkeypatch):
    monkeypatch.setenv("QUEUEPOOL_CONFIG", config[1])

    assert ["high", "low", "mail"] == [row["queue"] for row in json.loads(cli("size", "--json").stdout)]


def test_a_verb_for_one_pool_wants_to_know_which(cli, config):
    vague, wrong, right = cli("work", *config), cli("stop", *config, "--pool", "x"), cli("stop", *config, "--pool=slow")

    assert (2, "name one with --pool: fast, slow") == (vague.returncode, vague.stderr.partition(", ")[2].split(";")[0])
    assert (2, True) == (wrong.returncode, "there is no pool 'x', only: fast, slow" in wrong.stderr)
    assert (3, True) == (right.returncode, "pool 'slow' is not running" in right.stderr)


def test_a_store_that_is_away_is_one_line_and_exit_code_1(cli):
    done = cli("size", "--url", "unix:///nonexistent.sock")

    assert 1 == done.returncode
    assert 1 == len(done.stderr.splitlines())
    assert "cannot be reached" in done.stderr


def test_every_key_of_a_pool_is_a_flag_but_for_its_connection_of_which_two_are():
    assert {"connection"} == {key for key in KEYS["pool"] if f"pool.{key}" not in FLAGS}
    assert {"url", "prefix"} == {key for key in KEYS["connection"] if f"connection.{key}" in FLAGS}


@each(
    ("words", "line"),
    [
        ((), "  start         Run the pool in the foreground"),
        (("--",), "  start         Run the pool in the foreground"),
        (("step",), "  Forget a step that is kept of a job, so that it runs again"),
    ],
)
def test_without_a_verb_the_help_is_shown_with_exit_code_2(cli, words, line):
    done = cli(*words)

    assert (2, "") == (done.returncode, done.stdout)
    assert line in done.stderr.splitlines()


@each("words", [("limits",), ("limits", "--json"), ("limits", "list", "--json"), ("flow",)])
def test_a_group_lists_where_no_verb_is_named(cli, at, words):
    done = cli(*words, *at)

    assert (0, "") == (done.returncode, done.stderr)


# Output


@pytest.mark.bad_input("B098")
def test_a_closed_pipe_ends_it_quietly_with_141(site, at):
    command = [sys.executable, "-m", "queuepool", "size", *at]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run(command, env=site.env(), stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)

    assert (141, "") == (done.returncode, done.stderr)


@pytest.mark.bad_input("B098")
def test_a_full_disk_is_told_with_exit_code_1(site, at):
    command = [sys.executable, "-m", "queuepool", "size", *at]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, env=site.env(), stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (1, "queuepool: output: No space left on device\n") == (done.returncode, done.stderr)


@pytest.mark.bad_input("B087")
def test_closed_standard_streams_harm_nothing(site, at):
    script = f'exec "{sys.executable}" -m queuepool size "$@" <&- >&- 2>&-'
    done = subprocess.run(["/bin/sh", "-c", script, "sh", *at], env=site.env(), check=False)

    assert 0 == done.returncode


@pytest.mark.bad_input("B099")
def test_ctrl_c_ends_a_waiting_command_with_130_and_without_a_word(site, start, at):
    with site.pool("--workers", "1"):
        site.push("until", gate=str(site.path / "no-such-gate"), timeout=600)
        wait_for_start(site)
        waiting = start("stop", *at, "--runtime-dir", str(site.path / "run"), "--wait", "60")
        eventually(
            lambda: "draining" in site.run("status", "--runtime-dir", str(site.path / "run"), check=False).stdout
        )
        waiting.send_signal(signal.SIGINT)

        assert ("", "") == waiting.communicate(timeout=60)
        assert 130 == waiting.returncode
        site.run("stop", "--runtime-dir", str(site.path / "run"), "--now", "--wait", "25")


@pytest.mark.by_turns("words")
@pytest.mark.parametrize("words", [["status"], ["--help"]])
def test_status_and_help_do_not_wait_for_the_stores_library(site, here, words):
    more = here if "status" in words else []
    command = [sys.executable, "-X", "importtime", "-m", "queuepool", *words, *more]
    done = subprocess.run(command, env=site.env(), capture_output=True, text=True, check=False)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

    assert "queuepool.cli" in imported
    assert set() == {"redis", "hiredis", "asyncio", "ssl", "sqlalchemy", "queuepool.events"} & imported
    assert ("status" in words) == ("queuepool.config.loader" in imported)


def test_the_list_of_verbs_says_of_each_what_the_verb_itself_says():
    from queuepool.cli.verbs import VERBS, verbs

    context = click.Context(verbs)
    commands = {verb: verbs.get_command(context, verb) for verb in verbs.list_commands(context)}

    assert {verb: line for verb, (_, line) in VERBS.items()} == {
        verb: command.get_short_help_str(limit=100) for verb, command in commands.items()
    }


@pytest.mark.thorough("the next test has the script of each shell")
def test_bash_completes_verbs_flags_and_files(site):
    words = """eval "$(queuepool completion bash)"
    ask() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _queuepool_completion queuepool; say; }
    say() { printf "%s " "${COMPREPLY[@]}"; }
    compopt() { printf "files "; }
    ask queuepool sta; ask queuepool start --work; ask queuepool start -c ''
    """
    done = subprocess.run(["bash", "-c", words], env=site.env(), capture_output=True, text=True, check=False)

    assert ("", "start status stack --workers files  ") == (done.stderr, done.stdout)


def test_there_is_a_completion_for_the_usual_shells(cli):
    for shell, word in {
        "bash": "complete -o nosort",
        "zsh": "#compdef queuepool",
        "fish": "complete --no-files",
    }.items():
        assert word in cli("completion", shell).stdout
    assert 2 == cli("completion", "tcsh").returncode


# The local pool


@pytest.mark.fault("F30")
@pytest.mark.bad_input("B102")
def test_a_second_pool_of_the_same_name_exits_with_75_and_names_the_first(site, here):
    with site.pool("--workers", "1") as pool:
        second = site.run("start", *site.flags(), *here, check=False)

    assert 75 == second.returncode
    words = second.stderr.removeprefix(f"queuepool: pool 'default' is already running (pid {pool.pid}, in ")

    assert words.startswith(f"{site.path}/run/default; it is that of {site.path} on {site.connection.url} (user ")
    assert words.endswith("give that a name: [pool:NAME] in a file, or --pool NAME\n")
    assert 1 == len(second.stderr.splitlines())


def test_status_shows_every_process_and_its_job(site, cli, here):
    with site.pool("--workers", "2") as pool:
        identity = site.push("until", gate=str(site.path / "gate"))
        wait_for_start(site)
        told, facts = cli("status", *here), json.loads(cli("status", *here, "--json").stdout)
        (site.path / "gate").touch()
    [busy] = [process for process in facts[0]["processes"] if process["state"] == "busy"]
    jobs = [line.partition(" MB ")[2].split() for line in told.stdout.splitlines() if " busy " in line]

    assert 0 == told.returncode
    assert (pool.pid, "running", 2, 1) == tuple(facts[0][key] for key in ("master", "state", "workers", "busy"))
    assert (identity, "do", "default", 1) == tuple(busy["job"][key] for key in ("id", "name", "queue", "attempt"))
    assert [["do", identity, "default", "1"]] == [job[:4] for job in jobs]
    assert ["of", "60", "s"] == jobs[0][5:]


@pytest.mark.bad_input("B097")
def test_status_of_no_pool_exits_with_3_and_says_where_it_looked(site, cli, here):
    told, facts = cli("status", *here), cli("status", *here, "--json")

    words = f"pool default: not running (no live master in {site.path}/run/default)\n"
    assert (3, words, "") == (told.returncode, told.stdout.splitlines(keepends=True)[0], told.stderr)
    assert "-c FILE, --pool NAME or --runtime-dir DIR" in told.stdout
    assert (3, "not running") == (facts.returncode, json.loads(facts.stdout)[0]["state"])


@pytest.mark.bad_input("B097")
def test_status_says_when_the_master_was_killed(site, cli, here, at):
    with site.pool("--workers", "1") as pool:
        site.push("until", gate=str(site.path / "gate"))
        wait_for_start(site)  # an idle worker would leave at once, and its steward clear up behind it
        pool.signal(signal.SIGKILL)
        pool.wait()
        told, elsewhere = cli("status", *here, *at), cli("status", *here)
        (site.path / "gate").touch()
        eventually(lambda: not [*(site.path / "run" / "default").glob("board.*")])

    assert 3 == told.returncode
    assert "/default); it was killed, or left jobs" in told.stdout
    assert "/default)\n" in elsewhere.stdout  # of the store that is configured there it has left nothing
    assert "\nboard." in elsewhere.stdout


@pytest.mark.thorough("test_is_the_pool_well.py stops a master, and asks everybody")
@pytest.mark.bad_input("B097")
def test_status_says_when_the_master_is_stopped_and_exits_with_4(site, cli, here):
    with site.pool("--workers", "1") as pool:
        halt(pool.pid)
        told = eventually(lambda: (done := cli("status", *here)).returncode == 4 and done)
        go_on(pool.pid)

    assert told.stdout.startswith("pool default: stopped by a signal master=")


def test_status_all_shows_what_the_pools_of_all_hosts_published(site, cli, at):
    process = {
        "role": "worker",
        "number": 1,
        "pid": 7,
        "state": "idle",
        "done": 2,
        "failed": 0,
        "released": 0,
        "memory": 9,
    }
    facts = {"pool": "far", "host": "b", "state": "running", "master": 6, "since": "2026-11-20T09:41:07Z", "workers": 1}
    facts |= {"busy": 0, "done": 2, "failed": 0, "released": 0, "restarts": 0, "maintenance": True, "paused": ["low"]}
    site.queue.stores.control.publish("b:far:6", {**facts, "store_lost": None, "processes": [process]})
    told, none = cli("status", *at, "--all"), cli("status", *at, "--all", "--pool", "default", "--json")

    assert 0 == told.returncode
    assert told.stdout.startswith("pool far on b: running master=6 since=2026-11-20T09:41:07Z workers=1")
    assert ["maintenance mode", "paused queues: low"] == told.stdout.splitlines()[1:3]
    assert "worker 1" in told.stdout
    assert (3, []) == (none.returncode, json.loads(none.stdout))


def test_scale_changes_the_number_of_workers_within_what_the_board_has_room_for(site, cli, here):
    with site.pool("--workers", "1") as pool:
        scaled, refused = cli("scale", "3", *here), cli("scale", "32", *here)
        eventually(lambda: 3 == len(pool.workers()))
        cli("scale", "0", *here)
        none = cli("status", *here)

    assert (4, True) == (none.returncode, "no job runs: it was scaled to 0 workers\n" in none.stdout)
    assert (0, "pool default has 3 workers\n") == (scaled.returncode, scaled.stdout)
    assert (2, True) == (refused.returncode, "room for 31 workers" in refused.stderr)


def test_pause_and_continue_hold_the_local_pool(site, cli, here):
    with site.pool("--workers", "1") as pool:
        assert "pool default: paused: its workers start no more jobs\n" == cli("pause", *here).stdout
        eventually(lambda: pool.pids(r"worker 1 \[default\] paused"))
        site.push("ok")
        eventually(lambda: "default: paused" in cli("status", *here).stdout)  # its workers may be the first to say so
        assert [] == site.trail()
        assert "pool default: continues\n" == cli("continue", *here).stdout
        eventually(lambda: site.trail(event="end"))


def test_stop_waits_for_the_running_job_and_stop_now_gives_it_back(site, cli, at, here):
    with site.pool("--workers", "1"):
        site.push("until", gate=str(site.path / "no-such-gate"), timeout=600)
        wait_for_start(site)
        patient = cli("stop", *at, *here, "--wait", "0.3")
        at_once = cli("stop", *at, *here, "--now", "--wait", "25")

    assert (1, True) == (patient.returncode, "still runs after 0.3 s" in patient.stderr)
    assert (0, "pool default: stopped\n", "") == (at_once.returncode, at_once.stdout, at_once.stderr)
    assert 1 == site.queue.size()


@each("verb", [["stop"], ["pause"], ["continue"], ["scale", "2"]])
def test_what_is_for_the_local_pool_exits_with_3_without_one(cli, here, verb):
    done = cli(*verb, *here)

    assert (3, 1) == (done.returncode, len(done.stderr.splitlines()))


# All pools, through the store


def test_restart_says_what_it_wrote(cli, at, server):
    done = cli("restart", *at)
    stamp = server.get("illuminate:queue:restart").decode()

    assert 0 == done.returncode
    assert f"restart broadcast on connection default: {stamp} (2" in done.stdout


def test_paused_queues_are_paused_for_all_hosts_until_they_go_on(site, cli, at):
    read = site.queue.stores.control.read
    cli("pause", *at, "high,low", "--force")
    paused = read(("high", "low", "mail")).paused
    cli("continue", *at, "low")
    again = cli("continue", *at, "low")

    assert {"high", "low"} == paused
    assert {"high"} == read(("high", "low", "mail")).paused
    assert (0, "queue low was not paused\n") == (again.returncode, again.stderr)


def test_a_pause_of_a_queue_that_no_pool_serves_is_noted(site, config):
    site.push(queue="strays")
    told, stray = (site.run("pause", *config, queue) for queue in ("high", "strays"))

    assert ("queue high: paused on all hosts\n", "") == (told.stdout, told.stderr)
    assert "queue strays: paused on all hosts\n" == stray.stdout
    assert stray.stderr.endswith("pool.ini serves queue strays\n")


def test_no_queue_is_paused_if_one_may_be_misspelled_unless_that_is_said(site, config):
    mistyped = site.run("pause", *config, "high", "hgih", check=False)
    assert 2 == mistyped.returncode
    assert "no pool serves queue hgih, and it holds nothing: to pause it all the same give --force" in mistyped.stderr
    assert set() == site.queue.stores.control.read(("high", "hgih")).paused

    site.run("pause", *config, "high", "hgih", "--force")
    assert {"high", "hgih"} == site.queue.stores.control.read(("high", "hgih")).paused


def test_down_and_up_say_what_they_did(site, cli, at):
    read = site.queue.stores.control.read
    down, is_down = cli("down", *at), read(()).down
    up, again = cli("up", *at), cli("up", *at)

    assert (True, False) == (is_down, read(()).down)
    assert ["maintenance mode is on", "maintenance mode is off", "maintenance mode was not on"] == [
        done.stdout.partition(",")[0] for done in (down, up, again)
    ]


def test_up_says_when_laravels_own_maintenance_mode_is_still_on(cli, at, server):
    server.set("illuminate:foundation:down", "b:1;")

    assert "Laravel's is on" in cli("up", *at).stdout


# One worker


def test_work_once_runs_one_job(site):
    site.push("ok")
    site.push("ok")
    done = site.run("work", *site.flags(), "--once")

    assert 0 == done.returncode
    assert (1, 1) == (len(site.trail(event="end")), site.queue.size())


def test_work_once_waits_as_long_as_sleep_says_where_there_is_no_job(site):
    began = time.monotonic()
    done = site.run("work", *site.flags(), "--once", "--sleep", "0.8")

    assert 0.8 <= time.monotonic() - began
    assert "reason=once" in done.stderr


def test_a_lone_workers_job_past_its_timeout_ends_it_by_signal_14_and_tells_where(site):
    site.push("hang_in_c", timeout=1)
    done = site.run("work", *site.flags(), "--once", check=False)

    assert -signal.SIGALRM == done.returncode
    assert "in hang_in_c" in done.stderr


def test_a_lone_worker_ends_a_job_before_its_lease_ends(site):
    site.push("ok", timeout=3600)
    done = site.work()

    assert "timeout 3600 is cut to 88: leases last 90" in done.stderr


def test_that_a_lone_worker_cuts_the_pools_own_timeout_is_said_once_and_not_of_a_payload(site):
    site.push("ok")
    done = site.work("--timeout", "360")

    assert 1 == done.stderr.count("timeout 360 is cut to 88: leases last 90 and renew is off: a lone worker has no")
    assert "payload odd" not in done.stderr


def test_a_payload_larger_than_the_board_harms_no_lone_worker(site, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(site.path))
    site.push("ok", filling="x" * 300_000)
    site.work()

    assert 1 == len(site.trail(event="end"))
    assert [] == list(site.path.glob("queuepool-*"))


def test_modules_that_do_not_import_are_told_with_their_traceback_once_and_exit_code_1(site, at):
    (site.path / "broken.py").write_text("import nothing_of_that_name\n")
    done = site.run("work", *at, "--modules", "broken", "--once", check=False)

    assert 1 == done.returncode
    assert 1 == done.stderr.count("ModuleNotFoundError")
    assert "cannot import broken: ModuleNotFoundError: No module named" in done.stderr.splitlines()[-1]


@pytest.mark.thorough("a real start for each job; the next test runs one so")
def test_listen_runs_each_job_in_a_fresh_interpreter_until_it_is_stopped(site, start):
    for mode, data in (("ok", {}), ("sleep", {"seconds": 60, "timeout": 1}), ("sleep", {"seconds": 0.6})):
        site.push(mode, **data)
    listener = start("listen", *site.flags(), "--sleep", "0.2")
    wait_for_start(site, 3)
    listener.send_signal(signal.SIGTERM)
    _, told = listener.communicate(timeout=60)

    assert 0 == listener.returncode
    assert 3 == len({line["pid"] for line in site.trail(event="start")})
    assert ["ok", "sleep"] == [line["mode"] for line in site.trail(event="end")]
    assert "killed: its job ran past its timeout" in told


def test_listen_runs_jobs_beside_files_that_are_named_as_pythons_own(site, start):
    for name in ("queue", "email", "json", "select"):
        (site.path / f"{name}.py").write_text("raise RuntimeError('not the module that was meant')\n")
    (site.path / "shop.py").write_text("from queuepool import job\n@job\ndef greet() -> None:\n    print('hello')\n")
    site.queue.push("shop.greet")
    script = Path(sys.executable).with_name("queuepool")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with (site.path / "log").open("wb") as log:
        listener = subprocess.Popen(
            [script, "listen", *site.where, "--modules", "shop", "--sleep", "0.2"],
            cwd=site.path, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        eventually(lambda: "Traceback" in (text := (site.path / "log").read_text()) or "job done" in text)
    finally:
        listener.terminate()
        listener.wait(timeout=60)

    assert "stdout: hello\n" in (site.path / "log").read_text()
    assert "Traceback" not in (site.path / "log").read_text()


# The queues


def test_push_prints_the_id_and_stores_the_payload(site, cli, at, server):
    done = cli("push", "Report@build", *at, "--data", '{"id": 7}', "--queue", "high", "--delay", "2m")
    [(payload, due)] = server.zrange(f"{PREFIX}queues:high:delayed", 0, -1, withscores=True)
    fields = json.loads(payload)

    assert f"{fields['id']}\n" == done.stdout
    assert ("Report@build", {"id": 7}) == (fields["job"], fields["data"])
    assert 60 < due - server.time()[0] <= 121


def test_push_reads_its_data_from_standard_input(site, at):
    done = site.run("push", "do", *at, "--data", "-", input='[1, "zwölf"]')

    assert [1, "zwölf"] == json.loads(site.queue.sizes().oldest or b"")["data"]
    assert 37 == len(done.stdout)


@pytest.mark.by_turns("data")
@pytest.mark.bad_input("B092")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"a":',
        b'1,"b":2',
        b'{"a":1,"a":2}',
        b"NaN",
        b'"\\ud800"',
        bytes(range(128, 192)),
        lambda: b"0" * (16 * 2**20 + 1),
    ],
)
def test_what_is_not_json_is_refused(site, at, data):
    command = [sys.executable, "-m", "queuepool", "push", "do", *at, "--data", "-"]
    done = warm.run(command, env=site.env(), input=made(data), capture_output=True)

    assert (2, b"", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines()))
    assert 0 == site.queue.size()


@pytest.mark.bad_input("B092")
def test_push_does_not_wait_for_a_terminal(site, at):
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "queuepool", "push", "do", *at, "--data", "-"]
    done = subprocess.run(
        command, env=site.env(), stdin=terminal, capture_output=True, text=True, check=False, timeout=60
    )
    os.close(master)
    os.close(terminal)

    assert (2, True) == (done.returncode, "is a terminal" in done.stderr)


@pytest.mark.bad_input("B094")
def test_a_job_that_no_module_registers_is_refused_unless_it_is_laravels_or_forced(site):
    flags = site.flags()
    refused, laravels, forced = (
        site.run("push", *words, *flags, check=False) for words in (["dou"], ["App\\Jobs\\Other"], ["dou", "--force"])
    )

    assert (2, True) == (refused.returncode, "did you mean 'do'?" in refused.stderr)
    assert (0, 0, 2) == (laravels.returncode, forced.returncode, site.queue.size())


def test_a_registered_job_is_pushed_with_its_own_wishes(site):
    site.run("push", "slow", *site.flags())
    fields = json.loads(site.queue.sizes().oldest or b"")

    assert (2, 1) == (fields["maxTries"], fields["timeout"])


def test_push_warns_of_a_queue_that_no_pool_serves(site, config):
    done = site.run("push", "do", *config, "--queue", "hihg")

    assert (0, True) == (done.returncode, "serves queue hihg" in done.stderr)


def test_size_counts_the_pools_queues(site, cli, config):
    site.push("ok", queue="low")
    site.push("ok", queue="low", delay=60)
    named = cli("size", *config, "low")

    assert ["QUEUE  SIZE", "low    2"] == named.stdout.splitlines()
    assert [("high", 0), ("low", 2), ("mail", 0)] == [
        (row["queue"], row["size"]) for row in json.loads(cli("size", *config, "--json").stdout)
    ]


def test_size_and_monitor_list_the_other_queues_that_hold_something_too(site, cli, config, server):
    server.mset({f"queues-of-others:{number}": 1 for number in range(3000)})  # more than one page of the scan
    site.push("ok", queue="emails")
    site.push("ok", queue="archive", delay=60)
    listed = json.loads(cli("size", *config, "--json").stdout)
    watched = json.loads(cli("monitor", *config, "--json").stdout)

    assert [("high", 0), ("low", 0), ("mail", 0), ("archive", 1), ("emails", 1)] == [
        (row["queue"], row["size"]) for row in listed
    ]
    assert [row["queue"] for row in listed] == [row["queue"] for row in watched]


@pytest.mark.parametrize("verb", ["size", "monitor"])
def test_a_queue_that_cannot_be_counted_is_named_and_hides_no_other(site, cli, config, server, verb):
    """As Laravel leaves it, if it pushes to a queue by the name of another one's key."""
    server.rpush(f"{PREFIX}queues:low:delayed", "{}")
    site.push("ok", queue="emails")
    done = cli(verb, *config, "--json")

    assert ["high", "mail", "emails"] == [row["queue"] for row in json.loads(done.stdout) if row["queue"] in NAMES]
    assert 1 == done.returncode
    assert [] != [line for line in done.stderr.splitlines() if line.startswith("queue low: ") and "WRONGTYPE" in line]


NAMES = ("high", "low", "mail", "emails")


def test_monitor_tells_the_parts_of_a_queue_and_whether_it_is_too_long(site, cli, at):
    site.push("ok", queue="high")
    site.push("ok", queue="high", delay=60)
    calm, alert = cli("monitor", *at, "high,low", "--json"), cli("monitor", *at, "high", "--max", "2", "--fail")
    high, low = json.loads(calm.stdout)

    assert {
        "queue": "high",
        "size": 2,
        "pending": 1,
        "delayed": 1,
        "reserved": 0,
        "status": "OK",
    }.items() <= high.items()
    assert (0 <= high["oldest_pending"] < 60, None) == (True, low["oldest_pending"])
    assert (0, 1, True) == (calm.returncode, alert.returncode, "ALERT" in alert.stdout)


def test_clear_asks_first_and_without_a_terminal_wants_force(site, cli, at):
    site.push("ok", queue="high")
    vague, forced = cli("clear", *at, "high"), cli("clear", *at, "high", "--force")

    assert (2, True) == (vague.returncode, "give --force" in vague.stderr)
    assert (0, "dropped 1 job of high\n") == (forced.returncode, forced.stdout)
    assert 0 == site.queue.size("high")


def test_clear_at_a_terminal_takes_no_for_an_answer(site, at):
    site.push("ok", queue="high")
    master, terminal = pty.openpty()
    os.write(master, b"n\n")
    command = [sys.executable, "-m", "queuepool", "clear", *at, "high"]
    done = subprocess.run(
        command, env=site.env(), stdin=terminal, capture_output=True, text=True, check=False, timeout=60
    )
    os.close(master)
    os.close(terminal)

    assert (1, True, 1) == (done.returncode, "nothing was dropped" in done.stderr, site.queue.size("high"))


# The failed store


def test_failed_lists_what_failed_and_shows_one_with_its_trace(site, cli, at):
    [identity] = fail(site)
    rows, one = json.loads(cli("failed", *at, "--json").stdout), cli("failed", identity, *at)

    assert [(identity, "high", "do", 1, "ValueError: as asked")] == [
        tuple(row[key] for key in ("id", "queue", "class", "attempts", "exception")) for row in rows
    ]
    assert identity in cli("failed", *at).stdout
    assert "in raise_it" in one.stdout
    assert "exception" in json.loads(cli("failed", identity, *at, "--json").stdout)


@pytest.mark.bad_input("B103")
def test_what_a_jobs_data_holds_never_commands_the_terminal(site, cli, at):
    site.queue.push("do", {"mode": EVIL}, queue="high")
    quarantine(site, f"not a job {EVIL}".encode())
    [row] = json.loads(cli("quarantine", "list", "high", *at, "--json").stdout)
    [failed] = json.loads(cli("failed", *at, "--json").stdout)
    shown = [
        cli("failed", *at), cli("failed", failed["id"], *at),
        cli("quarantine", "list", "high", *at), cli("quarantine", "show", "high", row["id"], *at),
    ]  # fmt: skip

    assert not any(set("\x1b\x07\u202e") & set(done.stdout) for done in shown)
    assert all("\\x1b[31m" in done.stdout for done in shown)


@pytest.mark.bad_input("B096")
def test_an_unknown_id_is_told_and_the_others_are_done(site, cli, at):
    first, second = fail(site, 2)
    retried, forgotten, shown = (
        cli("retry", "nope", first, *at), cli("forget", second, "nope", *at), cli("failed", "nope", *at)
    )  # fmt: skip

    assert [(1, "failed job nope not found\n")] * 3 == [
        (done.returncode, done.stderr) for done in (retried, forgotten, shown)
    ]
    assert "1 job put back\n" == retried.stdout
    assert (1, 0) == (site.queue.size("high"), site.queue.stores.failed.count())


@pytest.mark.bad_input("B096")
def test_retry_all_takes_every_batch_or_one_queue(site, cli, at):
    fail(site, 2, "low")
    fail(site, 3, "high")
    high, rest = cli("retry", "--queue", "high", *at), cli("retry", "all", *at)

    put_back = "jobs put back on connection default"
    assert [f"3 {put_back}: high 3\n", f"2 {put_back}: low 2\n"] == [high.stdout, rest.stdout]
    assert (3, 2, 0) == (site.queue.size("high"), site.queue.size("low"), site.queue.stores.failed.count())


def test_flush_and_prune_drop_what_is_old_enough(site, cli, at, server):
    old, new = fail(site, 2)
    server.zadd(f"{PREFIX}queuepool:failed:times", {old: server.time()[0] - 25 * 3600})
    pruned, left = cli("prune-failed", *at), [record.id for record in site.queue.stores.failed.page()]
    flushed = cli("flush", *at)

    assert [new] == left
    assert ["dropped 1 failed job on connection default\n"] * 2 == [pruned.stdout, flushed.stdout]
    assert 0 == site.queue.stores.failed.count()


# The quarantine


def test_a_quarantined_payload_is_shown_as_it_is_put_back_or_dropped(site, cli, at):
    quarantine(site, b"one\xff\0", b"two", b"three", b"x" * 20_000)
    rows = json.loads(cli("quarantine", "list", "high", *at, "--json").stdout)
    ids = [row["id"] for row in rows]
    show = [sys.executable, "-m", "queuepool", "quarantine", "show", "high", ids[0], "--raw", *at]
    raw = warm.run(show, env=site.env(), capture_output=True, check=True).stdout
    long = cli("quarantine", "show", "high", ids[3], *at).stdout

    assert [5, 3, 5, 20_000] == [row["bytes"] for row in rows]
    assert b"one\xff\0" == raw
    assert ("x" * 8192 in long, "x" * 8193 in long, "11808 bytes more" in long) == (True, False, True)
    assert 0 == cli("quarantine", "retry", "high", ids[1], *at).returncode
    assert 0 == cli("quarantine", "drop", "high", ids[0], *at).returncode
    assert 1 == cli("quarantine", "drop", "high", ids[0], *at).returncode
    assert (
        "dropped 2 payloads of queue high on connection default\n"
        == cli("quarantine", "drop", "high", "--all", *at).stdout
    )
    assert b"two" == site.queue.sizes("high").oldest


# Check


def test_check_finds_nothing_worse_than_a_server_that_forgets(site):
    done = site.run("check", *site.flags())
    grades = [line.split()[0] for line in done.stdout.splitlines()]

    assert 0 == done.returncode
    assert {"ok", "warn"} == set(grades)
    assert "a crash of Redis loses the jobs pushed since the last snapshot" in done.stdout
    assert (
        "jobs: App\\Jobs\\Report@build, App\\Jobs\\SecretMail, App\\Jobs\\SendMail, Import, add, do, slow"
        in done.stdout
    )


@pytest.mark.fault("F49")
def test_check_tells_a_server_that_drops_jobs_when_it_is_full(cli, at, server):
    server.config_set("maxmemory-policy", "allkeys-lru")
    done = cli("check", *at, "--json")
    server.config_set("maxmemory-policy", "noeviction")

    assert 1 == done.returncode
    assert ["maxmemory-policy allkeys-lru"] == [
        row["words"].partition(":")[0] for row in json.loads(done.stdout) if row["grade"] == "FAIL"
    ]


def test_check_tells_once_that_a_server_is_full(site, config, server):
    (site.path / "pool.ini").write_text((site.path / "pool.ini").read_text() + "[alerts]\nexec = /bin/true\n")
    server.config_set("maxmemory", 1)
    try:
        done = site.run(
            "check", *config, "--json", check=False
        )  # it also tries to take the key of an alert, which is a new one
    finally:
        server.config_set("maxmemory", 0)
    told = [row["words"] for row in json.loads(done.stdout) if row["grade"] == "FAIL"]

    assert (1, 1) == (done.returncode, len(told))
    assert told[0].startswith("the server is full and refuses new jobs: ")


def test_check_names_the_commands_that_are_not_permitted_and_leaves_nothing_behind(cli, redis_socket, server):
    server.acl_setuser("limited", True, passwords=["+pw"], keys=["*"], commands=["+@all", "-blpop", "-info"])
    done = cli("check", "--url", f"unix://limited:pw@{redis_socket}", "--json")
    server.acl_deluser("limited")
    words = {row["words"]: row["grade"] for row in json.loads(done.stdout)}

    assert (1, "FAIL") == (done.returncode, words.get("the user may not run 'blpop' (ACL)"))
    unknown = "version, persistence and eviction are unknown: the user may not run 'info' (ACL)"
    assert "warn" == words.get(unknown)
    assert [] == server.keys("*queuepool:check:*")


@pytest.mark.by_turns("mode", "line", "code")
@pytest.mark.bad_input("B151")
@pytest.mark.parametrize(
    ("mode", "line", "code"),
    [
        (0o755, "ok   alerts exec {}: it can be run", 0),
        (None, "FAIL alerts exec {}: there is no such file", 1),
        ("folder", "FAIL alerts exec {}: is not a file", 1),
        (0o644, "FAIL alerts exec {}: cannot be run by uid {}: chmod +x it", 1),
    ],
)
def test_check_says_whether_the_program_of_alerts_can_be_run(site, config, mode, line, code):
    program = site.path / "page"
    if mode == "folder":
        program.mkdir()
    elif mode is not None:
        program.write_text("#!/bin/sh\n")
        program.chmod(mode)
    (site.path / "pool.ini").write_text((site.path / "pool.ini").read_text() + f"[alerts]\nexec = {program} a b\n")
    done = site.run("check", *config, check=False)

    assert code == done.returncode
    assert line.format(program, os.geteuid()) in done.stdout.splitlines()


def test_check_says_which_log_cannot_be_written_to(site, config):
    file = site.path / "pool.ini"
    text = file.read_text()
    file.write_text(text.replace("[pool]", "[pool]\nlog = pool.log"))
    good = site.run("check", *config)
    file.write_text(text.replace("[pool]", "[pool]\nlog = none/pool.log"))
    told = site.run("check", *config, check=False)

    assert (0, False) == (good.returncode, (site.path / "pool.log").exists())
    assert (1, True) == (told.returncode, "FAIL log none/pool.log: there is no directory none\n" in told.stdout)


def test_check_tells_every_fault_of_the_configuration_with_exit_code_78(site):
    (site.path / "pool.ini").write_text("[pool]\nworkers = 0\ntimout = 5\n")
    done = site.run("check", "-c", "pool.ini", check=False)

    assert (78, 2) == (done.returncode, done.stdout.count("FAIL configuration: pool.ini:"))


@pytest.mark.thorough("unit/test_unserved_queues.py has the rule and its words")
def test_check_warns_of_a_queue_that_a_job_names_and_no_pool_serves(site, config):
    (site.path / "mails.py").write_text("from queuepool import job\n@job(queue='emails')\ndef mail() -> None: ...\n")
    done = site.run("check", *config, "--modules", "mails")

    assert "warn queues: no pool in this configuration serves queue emails" in done.stdout
    assert "; set queue = high,emails in [pool:fast]\n" in done.stdout


def test_check_tells_modules_that_do_not_import(site, at):
    (site.path / "noisy.py").write_text("print('hello')\nraise RuntimeError('not today')\n")
    done = site.run("check", *at, "--modules", "noisy", "--json", check=False)

    assert 1 == done.returncode
    assert ["cannot import noisy: RuntimeError: not today"] == [
        row["words"] for row in json.loads(done.stdout) if row["grade"] == "FAIL"
    ]
