"""A real Prometheus of its own, and promtool: Debian's package ``prometheus`` has both."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.support.eventually import eventually
from tests.support.redis_server import free_port


def program(name: str) -> str:
    """The program's path. Without it, skips the test: `scripts/setup` goes on where it cannot be installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}, of Debian's package prometheus")
    return str(found)


def promtool(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run promtool to its end."""
    return subprocess.run([program("promtool"), *words], input=given, capture_output=True, timeout=60)


class Prometheus:
    """The server at a port of this host."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self._url}/-/ready", timeout=5) as response:
                return bool(response.status == 200)
        except (URLError, OSError):
            return False

    def series(self, expression: str) -> list[dict[str, str]]:
        """The labels of each series that an expression has now."""
        return [one["metric"] for one in self._result(expression)]

    def values(self, expression: str, label: str) -> dict[str, float]:
        """The values of an expression, by this label."""
        return {one["metric"].get(label, ""): float(one["value"][1]) for one in self._result(expression)}

    def _result(self, expression: str) -> list[dict[str, Any]]:
        query = urlencode({"query": expression})
        with urlopen(f"{self._url}/api/v1/query?{query}", timeout=30) as response:
            found: list[dict[str, Any]] = json.load(response)["data"]["result"]
            return found


@contextmanager
def prometheus(folder: Path, config: str) -> Iterator[Prometheus]:
    """A server with this configuration and data in ``folder``, ready to answer; it ends with the block."""
    (folder / "prometheus.yml").write_text(config)
    port = free_port()
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "prometheus.log").open("wb") as log:
        server = subprocess.Popen(
            [program("prometheus"), *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
        )
    found = Prometheus(port)
    try:
        eventually(lambda: server.poll() is not None or found.is_ready())
        yield found
    finally:
        server.terminate()
        server.wait()
