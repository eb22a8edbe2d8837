"""Draws the pages of the dashboard, and a frame of queuepool top, for the documentation: see scripts/screenshots."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from tests.support.chromium import Window, window
from tests.support.eventually import eventually
from tests.support.redis_server import free_port
from tests.support.terminal import terminal

ROOT = Path(__file__).parents[1]
#: of a picture, in pixels: what is further down is cut off
WIDTH, HEIGHT = 1280, 800
#: seconds for which the pools work before they are drawn, and for which a page is given to draw itself
SECONDS, SETTLES = 180.0, 0.5
#: seconds of which the rates on the terminal are
SECONDS_OF_TOP = 15.0
PATH = f"{ROOT}:{ROOT / 'scripts/demo_app'}"


@contextmanager
def demo(folder: Path) -> Iterator[str]:
    """The address of the demo in the browser, whose files are below this folder."""
    listen = f"127.0.0.1:{free_port()}"
    env = {**os.environ, "DEMO_LISTEN": listen, "TMPDIR": str(folder)}
    process = subprocess.Popen([ROOT / "scripts/demo", "--web"], env=env)
    try:
        eventually(lambda: process.poll() is not None or is_there(listen), 120)
        if process.poll() is not None:
            sys.exit("screenshots: the demo has ended: see above")
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.wait(60)


def is_there(listen: str) -> bool:
    try:
        return bool(facts(f"http://{listen}", "running")["jobs"])
    except OSError:
        return False


def facts(address: str, page: str) -> Any:
    with urlopen(f"{address}/api/v1/{page}", timeout=20) as answer:
        return json.load(answer)


def pages(address: str) -> dict[str, str]:
    """The paths of the pages, by the names of their pictures."""
    [failed, *_] = facts(address, "failed?error=KeyError&limit=1")["jobs"]
    [flow, *_] = facts(address, "flows?state=failed&limit=1")["flows"]
    return {
        "overview": "/",
        "alerts": "/alerts",
        "queue": "/queues/default/mail",
        "running": "/running",
        "failed": "/failed?column=country&column=order",
        "job": f"/jobs/{quote(failed['id'], safe='')}",
        "flow": f"/flows/default/{flow['id']}",
    }


def draw(browser: Window, url: str, file: Path) -> None:
    """One page, with all that its script changes."""
    browser.go(url)
    time.sleep(SETTLES)
    if file.stem == "dashboard-job":  # its trace has the path of this clone
        browser.run("document.querySelector('details[open]').open = false")
    file.write_bytes(browser.picture())
    print(file)


def top(folder: Path) -> str:
    """What a terminal shows of the demo's first pool, but for empty rows and the line that says where this demo is."""
    [file] = folder.glob("*/pool.ini")
    with terminal("top", cwd=file.parent, columns=110, lines=26, QUEUEPOOL_CONFIG=str(file), PYTHONPATH=PATH) as shown:
        time.sleep(SECONDS_OF_TOP)
        text = re.sub(r"(?m)^store .*\n", "", shown.shows("shop", "mail").strip())
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


def main() -> None:
    about = "Draw seven pages of the dashboard, and a frame of queuepool top."
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=about)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for which the pools work before that")
    parser.add_argument("--into", type=Path, default=ROOT / "docs")
    given = parser.parse_args()
    if not (shutil.which("chromedriver") and shutil.which("chromium")):
        sys.exit("screenshots: needs Debian's packages chromium and chromium-driver")
    with tempfile.TemporaryDirectory() as folder, demo(Path(folder)) as address:
        time.sleep(given.seconds)
        (given.into / "top.txt").write_text(top(Path(folder)))
        with window() as browser:
            browser.size(WIDTH, HEIGHT)
            browser.prefer("light")
            for name, path in pages(address).items():
                draw(browser, address + path, given.into / f"dashboard-{name}.webp")
            browser.prefer("dark")
            draw(browser, f"{address}/", given.into / "dashboard-dark.webp")


if __name__ == "__main__":
    main()
