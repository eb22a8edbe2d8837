"""The wheel, installed as users install it; ``scripts/package`` builds it and runs this file.

Each extra is installed into a copy of the bare environment, so that none works by what another one brings.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.archives import ROOT, metadata
from tests.support.eventually import eventually

WORK = ROOT / "build/package"
#: what each extra is for; in the bare environment it must fail
USES = {
    "sql-postgres": "from queuepool.stores.sql.engines import load_driver; load_driver('postgresql://db/app')",
    "sql-mysql": "from queuepool.stores.sql.engines import load_driver; load_driver('mysql://db/app')",
    "encrypted": "import queuepool.payload.aes",
    "uvloop": "import uvloop",
    "otel": "import queuepool.contrib.otel",
    "sentry": "import queuepool.contrib.sentry",
    "web": "import queuepool.web.server, queuepool.web; queuepool.web.dashboard(access=str)",
}
#: extras that bring nothing, and those for work on queuepool itself
OTHERS = {"sql", "laravel", "test", "check", "docs", "package", "metrics"}

#: seconds: an index may answer slowly
pytestmark = pytest.mark.timeout(300)


def install(environment: Path, extra: str = "") -> None:
    [wheel] = (ROOT / "dist").glob("*.whl")
    pip = [ROOT / ".venv-package/bin/python", "-m", "pip", "--python", environment / "bin/python"]
    subprocess.run(
        [*pip, "install", "-q", "--no-compile", "--disable-pip-version-check", f"{wheel}{extra}"], check=True
    )


@pytest.fixture(scope="session")
def bare() -> Path:
    """An environment with the wheel and what it always brings."""
    environment = WORK / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    install(environment)
    return environment


def run(environment: Path, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [environment / "bin/python", "-c", program], cwd=folder, env=env(), capture_output=True, text=True, timeout=60
    )


def env() -> dict[str, str]:
    """Without what could lead to the repository, or to a queue."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "QUEUEPOOL_"))}


def test_a_bare_installation_runs_a_job_from_its_own_queue(bare, tmp_path):
    shutil.copy(Path(__file__).with_name("users_jobs.py"), tmp_path)
    start = [
        bare / "bin/queuepool",
        "start",
        "--workers",
        "1",
        "--modules",
        "users_jobs",
        "--runtime-dir",
        tmp_path / "run",
    ]
    with subprocess.Popen(start, cwd=tmp_path, env=env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as pool:
        eventually((tmp_path / "queuepool.db").exists)
        pushed = run(bare, "import users_jobs; users_jobs.write.dispatch('written')", tmp_path)
        eventually(lambda: (tmp_path / "written").exists() or pool.poll() is not None)
        pool.send_signal(signal.SIGTERM)
        said = pool.communicate()[1].decode()

    assert (0, "") == (pushed.returncode, pushed.stderr)
    assert 0 == pool.returncode, said
    assert "done" == (tmp_path / "written").read_text()


def test_every_extra_is_tried(bare):
    assert {*USES} | OTHERS == {*metadata().get_all("Provides-Extra", [])}


@pytest.mark.parametrize("extra", USES)
def test_an_extra_brings_what_it_is_for(bare, extra, tmp_path):
    assert "ModuleNotFoundError" in run(bare, USES[extra], tmp_path).stderr
    environment = WORK / extra
    shutil.copytree(bare, environment, symlinks=True, copy_function=os.link)
    install(environment, f"[{extra}]")

    done = run(environment, USES[extra], tmp_path)

    assert (0, "") == (done.returncode, done.stderr)


def test_the_types_of_the_installed_package_reach_a_users_file(bare, tmp_path):
    shutil.copy(Path(__file__).with_name("users_jobs.py"), tmp_path)
    mypy = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--cache-dir", ROOT / "build/package-mypy"]
    done = subprocess.run(
        [*mypy, "--python-executable", bare / "bin/python", "users_jobs.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert 0 == done.returncode, done.stdout
