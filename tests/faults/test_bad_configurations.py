"""The real command refuses each bad setting in a line on standard error, and starts nothing."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.faults.corpus.cases import cases
from tests.faults.corpus.configs import ACCEPTED, FILES, PASSWORDS, REFUSED, SECRET
from tests.support import in_process
from tests.support.commands import Done, queuepool
from tests.support.each import each

ROOT = os.geteuid() == 0
FAILED, CONFIG, NOT_RUNNING = 1, 78, 3


class Sections:
    """One file of many blocks, what the command said of it, and of which block it said it."""

    def __init__(self, folder: Path, blocks: dict[str, str], verb: str) -> None:
        self._ends: dict[str, int] = {}
        text = f"[pool]\nruntime_dir = {folder}/run\n[connection]\nurl = unix:///nonexistent.sock\n"
        for number, (name, block) in enumerate(blocks.items()):
            text += block.replace("{name}", f"n{number}") + "\n"
            self._ends[name] = text.count("\n")
        self.path = folder / "pool.ini"
        self.path.write_text(text)
        self.path.chmod(0o600)
        self.done = queuepool(verb, "-c", "pool.ini", cwd=folder)

    def said_of(self, name: str) -> list[str]:
        lines = [line for line in self.done.stderr.splitlines() if name == self._block_of(line)]
        return [line.partition(": ")[2] for line in lines]

    def _block_of(self, line: str) -> str | None:
        number = int(re.match(r"pool\.ini:(\d+): ", line)[1])  # type: ignore[index]
        return next((name for name, end in self._ends.items() if number <= end), None)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Sections:
    return Sections(tmp_path_factory.mktemp("refused"), {name: block for name, (block, _) in REFUSED.items()}, "start")


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Sections:
    return Sections(tmp_path_factory.mktemp("accepted"), ACCEPTED, "status")


@each("name", cases(REFUSED))
def test_bad_input(refused: Sections, name: str) -> None:
    said, words = refused.said_of(name), REFUSED[name][1].split("|")

    assert len(words) == len(said), said
    assert [] == [line for word, line in zip(words, said, strict=True) if word not in line]
    assert 250 > max(map(len, said))


def test_all_that_is_wrong_is_told_at_once_and_nothing_is_started(refused: Sections) -> None:
    assert (CONFIG, "") == (refused.done.returncode, refused.done.stdout)
    assert [] == [path.name for path in refused.path.parent.iterdir() if path != refused.path]
    assert SECRET not in refused.done.stderr


@each("name", cases(ACCEPTED))
def test_bad_input_that_is_none(accepted: Sections, name: str) -> None:
    assert [] == accepted.said_of(name)
    assert NOT_RUNNING == accepted.done.returncode
    assert len(ACCEPTED) == accepted.done.stdout.count("not running")


def told(done: Done) -> tuple[int, int, str]:
    """Exit code, lines, and what the only line says."""
    return done.returncode, len(done.stderr.splitlines()), done.stderr.strip()


@each("name", cases(FILES))
def test_bad_input_file(tmp_path: Path, monkeypatch, capsys, name: str) -> None:
    data, words = FILES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.ini").write_bytes(data)
    code, lines, said = told(in_process.queuepool(capsys, "status", "-c", "pool.ini", "--runtime-dir", "run"))

    assert (CONFIG, 1) == (code, lines) if words else (NOT_RUNNING, 0) == (code, lines)
    assert words in said


@pytest.mark.bad_input("B071", "B072")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("directory", "is a directory"),
        ("fifo", "is not a regular file"),
        ("gigabyte", "is larger than 1 MB"),
        ("missing", "No such file"),
        ("loop", "symbolic links"),
        pytest.param(
            "unreadable",
            "Permission denied",
            marks=pytest.mark.skipif(ROOT, reason="root reads everything"),
        ),
    ],
)
def test_bad_input_that_is_no_file_of_ours(odd_files: Path, entry: str, words: str) -> None:
    code, lines, said = told(queuepool("start", "-c", entry, cwd=odd_files))

    assert (CONFIG, 1) == (code, lines)
    assert words in said


@pytest.fixture
def odd_files(tmp_path: Path) -> Path:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "gigabyte").open("wb") as huge:
        huge.truncate(1 << 30)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "unreadable").write_text("[pool]\n")
    (tmp_path / "unreadable").chmod(0)
    return tmp_path


@pytest.mark.bad_input("B070")
def test_a_password_of_any_characters_is_what_was_written(tmp_path: Path, redis_socket: str, server) -> None:
    text = "[pool]\n[connection]\n"
    for number, password in enumerate(PASSWORDS):
        server.acl_setuser(f"u{number}", True, passwords=[f"+{unquote(password)}"], keys=["*"], commands=["+@all"])
        text += f"[pool:p{number}]\nconnection = c{number}\n"
        text += f"[connection:c{number}]\nurl = unix://u{number}:{password}@{redis_socket}\n"
    (tmp_path / "pool.ini").write_text(text)
    (tmp_path / "pool.ini").chmod(0o600)
    done = queuepool("check", "-c", "pool.ini", "--json", cwd=tmp_path)
    for number in range(len(PASSWORDS)):
        server.acl_deluser(f"u{number}")

    assert len(PASSWORDS) == sum("answers" in row["words"] for row in json.loads(done.stdout))
    assert [] == [password for password in PASSWORDS if password in done.stdout]


@pytest.mark.bad_input("B076")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("missing", "No such file"),
        ("no-socket", "Connection refused"),
        ("nobody-listens", "Connection refused"),
        pytest.param("forbidden", "Permission denied", marks=pytest.mark.skipif(ROOT, reason="root may connect")),
    ],
)
def test_bad_input_socket(tmp_path: Path, entry: str, words: str) -> None:
    (tmp_path / "no-socket").touch()
    for name in ("nobody-listens", "forbidden"):
        with socket.socket(socket.AF_UNIX) as lost_replies:
            lost_replies.bind(str(tmp_path / name))
    (tmp_path / "forbidden").chmod(0)
    code, lines, said = told(queuepool("size", "--url", f"unix://{tmp_path}/{entry}"))

    assert (FAILED, 1) == (code, lines)
    assert words in said


def linked_pidfile(path: Path) -> None:
    path.mkdir()
    (path / "master.pid").symlink_to("/tmp/nobody")


def world_writable(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.bad_input("B080")
@pytest.mark.parametrize(
    ("entry", "make", "words"),
    [
        ("below-a-file", lambda path: path.parent.write_text(""), "/run: File exists"),
        ("world-writable", world_writable, "/run/default is open to others (mode 0777): chmod 700 /"),
        ("symlink", lambda path: path.symlink_to("/tmp"), "/run/default is a symbolic link: remove it"),
        ("a-file", lambda path: path.write_text(""), "File exists"),
        ("pidfile-is-a-directory", lambda path: (path / "master.pid").mkdir(parents=True), "Is a directory"),
        ("pidfile-is-a-symlink", linked_pidfile, "Too many levels of symbolic links"),
    ],
)
def test_bad_input_runtime_directory(tmp_path: Path, entry: str, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "run" / "default"
    if "below" not in entry:
        path.parent.mkdir()
    make(path)
    if (path / "master.pid").is_symlink() or (path / "master.pid").is_dir():
        path.chmod(0o700)
    code, lines, said = told(queuepool("start", "--runtime-dir", str(path.parent), cwd=tmp_path))

    assert (CONFIG, 1) == (code, lines), said
    assert words in said
