"""A real Chromium, driven by its own driver over HTTP; tests that need it are skipped where it is missing."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from tests.support.eventually import eventually
from tests.support.redis_server import free_port

#: nothing is asked of a network
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
#: keys, as WebDriver names them
TAB, ENTER = "\ue004", "\ue007"
#: notes what the policy of a page refuses, from its first byte on
_LISTENER = """
window.refused = [];
document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
    window.refused.push(`${effectiveDirective} ${blockedURI}`);
});
"""
#: most presses of the key Tab from one end of a page to the other
_MOST_TABS = 400


@dataclass
class Window:
    """A window of the browser."""

    session: str

    def go(self, url: str) -> None:
        self._ask("POST", "/url", {"url": url})

    def size(self, width: int, height: int = 900) -> None:
        """As the page sees it, whatever the least width of a window is."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """``light`` or ``dark``."""
        self.tell("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def tell(self, command: str, about: dict[str, Any]) -> Any:
        """A command of Chromium's own protocol, and its answer."""
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": about})

    def run(self, script: str) -> Any:
        """What the body of a function returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def run_to_its_end(self, script: str) -> Any:
        """What the promise that the body of a function returns comes to."""
        body = f"const done = arguments[0]; (async () => {{ {script} }})().then(done, (error) => done(String(error)));"
        return self._ask("POST", "/execute/async", {"script": body, "args": []})

    def before_each_page(self, script: str) -> None:
        """Run it in each page that is opened from now on, before its own scripts."""
        self.tell("Page.addScriptToEvaluateOnNewDocument", {"source": script})

    def refused(self) -> list[str]:
        """What the page's policy has refused."""
        found: list[str] = self.run("return window.refused")
        return found

    def tab_to(self, css: str) -> None:
        """Press Tab until this has the focus, from where it is now."""
        is_there = f"return Boolean(document.activeElement) && document.activeElement.matches({json.dumps(css)})"
        for _ in range(_MOST_TABS):
            self.press(TAB)
            if self.run(is_there):
                return
        raise AssertionError(f"Tab does not come to {css}")

    def press(self, keys: str) -> None:
        """On the keyboard, wherever the focus is."""
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def click(self, css: str) -> None:
        """As a person would: once it is visible and nothing is above it, as while a page is drawn."""
        refusals = list[str]()

        def is_clicked() -> bool:
            found = self._ask("POST", "/element", {"using": "css selector", "value": css})
            try:
                self._ask("POST", f"/element/{found[_ELEMENT]}/click", {})
            except HTTPError as error:
                refusals.append(error.read().decode())
                return False
            return True

        try:
            eventually(is_clicked)
        except AssertionError as error:
            raise AssertionError(f"{css} cannot be clicked: {refusals[-1][:500]}") from error

    def picture(self) -> bytes:
        """What the window shows, as WebP: a third of a PNG."""
        return b64decode(self.tell("Page.captureScreenshot", {"format": "webp", "quality": 85})["data"])

    def complaints(self) -> list[str]:
        """What the console says since the last call: errors of scripts, and what the policy has refused."""
        return [
            line["message"] for line in self._ask("POST", "/se/log", {"type": "browser"}) if line["level"] == "SEVERE"
        ]

    def _ask(self, method: str, path: str, facts: dict[str, Any]) -> Any:
        return _asked(method, f"{self.session}{path}", facts)


@contextmanager
def window(*, has_script: bool = True) -> Iterator[Window]:
    """A window of a new browser with an empty profile."""
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if not (driver and browser):
        pytest.skip("needs chromium and chromedriver: Debian's packages chromium and chromium-driver")
    with tempfile.TemporaryDirectory(prefix="queuepool-chromium-") as folder:
        port = free_port()
        process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            root = f"http://127.0.0.1:{port}"
            eventually(lambda: _is_ready(root))
            settings = {} if has_script else {"profile.managed_default_content_settings.javascript": 2}
            options = {"binary": browser, "args": [*_FLAGS, f"--user-data-dir={folder}"], "prefs": settings}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            session = _asked("POST", f"{root}/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            found = Window(f"{root}/session/{session}")
            try:
                found.before_each_page(_LISTENER)
                yield found
            finally:  # else what is left of the browser still writes into its folder
                _asked("DELETE", f"{root}/session/{session}", {})
        finally:
            process.terminate()
            process.wait(30)


def _is_ready(root: str) -> bool:
    with suppress(URLError, OSError):
        return bool(_asked("GET", f"{root}/status", {})["ready"])
    return False


def _asked(method: str, url: str, facts: dict[str, Any]) -> Any:
    body = json.dumps(facts).encode() if method == "POST" else None
    request = Request(url, body, {"content-type": "application/json"}, method=method)
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]
