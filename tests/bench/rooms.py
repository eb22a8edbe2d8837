"""How large the package is, and how much of it one plain job passes: ``scripts/bench --rooms``."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.redis_server import start_redis

PACKAGE = Path(__file__).parents[2] / "queuepool"

_JOBS = """
import json, os, sys
from queuepool import job

files, calls, functions = set(), [0], set()

def seen(frame, event, argument):
    if event == "call" and "/queuepool/" in frame.f_code.co_filename:
        files.add(frame.f_code.co_filename)
        functions.add(frame.f_code)
        calls[0] += 1

@job
def plain(number):
    if number == 10:  # the next ones pass what this one does; the first ones also what is done once
        sys.setprofile(seen)
    if number == 11:
        sys.setprofile(None)
        with open(os.environ["ROOMS"], "w") as found:
            json.dump([sorted(files), calls[0], len(functions)], found)
"""


@contextmanager
def _store(name: str, folder: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Its URL, and the commands that prepare it."""
    if name == "SQLite":
        yield f"sqlite:///{folder}/q.db", [["migrate"]]
        return
    server = start_redis(folder)
    try:
        yield f"unix://{folder}/redis.sock", []
    finally:
        server.terminate()
        server.wait()


def one_job(store: str) -> tuple[list[str], int, int]:
    """Files, calls and functions of ours, from the handler of one plain job to that of the next, without metrics.

    The job is among those of a second that get a line in the log.
    """
    with tempfile.TemporaryDirectory() as folder, _store(store, folder) as (url, first):
        here = Path(folder)
        (here / "plain_jobs.py").write_text(_JOBS)
        (here / "pool.ini").write_text(
            f"[pool]\nmodules = plain_jobs\nmetrics = no\nreserve_ahead = 1\n[connection]\nurl = {url}\n"
        )
        env = {**os.environ, "PYTHONPATH": f"{PACKAGE.parent}:{here}", "ROOMS": str(here / "rooms")}
        queuepool = [sys.executable, "-m", "queuepool"]
        pushes = [["push", "plain_jobs.plain", f"--data=[{number}]"] for number in range(13)]
        for arguments in [*first, *pushes, ["work", "--stop-when-empty"]]:
            command = [*queuepool, *arguments, "-c", str(here / "pool.ini")]
            subprocess.run(command, env=env, check=True, capture_output=True)
        files, calls, functions = json.loads((here / "rooms").read_text())
        return files, calls, functions


def classes(trees: list[ast.Module]) -> list[ast.ClassDef]:
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def main() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    found = classes([ast.parse(path.read_text()) for path in paths])
    names = Counter(one.name for one in found)
    twice = sorted(name for name, times in names.items() if times > 1)
    passed = {store: one_job(store) for store in ("SQLite", "Redis")}
    rows = {
        "files": len(paths),
        "lines": sum(len(path.read_text().splitlines()) for path in paths),
        "classes": len(found),
        "protocols": sum("Protocol" in ast.unparse(base) for one in found for base in one.bases),
        "class names with two meanings": len(twice),
    }
    for store, (files, calls, functions) in passed.items():
        rows[f"files that one plain job passes, {store}"] = len(files)
        rows[f"calls of one plain job, {store}"] = calls
        rows[f"functions of one plain job, {store}"] = functions
    for name, value in rows.items():
        print(f"{name:42}{value:8,}")
    print("two meanings:", ", ".join(twice))
    for store, (files, *_) in passed.items():
        print(f"passed, {store}:", ", ".join(str(Path(file).relative_to(PACKAGE)) for file in files))


if __name__ == "__main__":
    main()
