"""The files in conf/ that run a pool as a service: systemd's units, the container's, Kubernetes' and KEDA's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import queuepool_probe
from queuepool.board.about import absolute
from queuepool.cli.verbs import VERBS
from queuepool.config.settings import KEYS
from tests.support.pools import ROOT

CONF = ROOT / "conf"
UNITS = ("queuepool.service", "queuepool@.service")
CONTAINERS = ("Containerfile", "compose.yml", "kubernetes.yml")
#: above this systemd calls a service exposed
MOST_EXPOSED = 5.0

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


def text_of(name: str) -> str:
    return (CONF / name).read_text()


def code_of(name: str) -> str:
    """The file without its comments."""
    return re.sub(r"(?m)^\s*#.*\n", "", text_of(name))


def installed(name: str, folder: Path) -> Path:
    """The unit with paths and a user that exist here; a template as one of its pools."""
    text = re.sub(r"/srv/app/venv/bin/queuepool", "/bin/true", text_of(name)).replace("/srv/app", "/")
    path = folder / name.replace("@.", "@mails.")
    path.write_text(text.replace("User=www-data", "User=daemon"))
    return path


@needs_systemd
@pytest.mark.parametrize("name", UNITS)
def test_systemd_understands_every_line_of_a_unit(name, tmp_path):
    command = ["systemd-analyze", "verify", "--man=no", str(installed(name, tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


@needs_systemd
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_leaves_little_exposed(name, tmp_path):
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(installed(name, tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)

    assert level, done.stderr
    assert float(level[1]) < MOST_EXPOSED


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_runs_verbs_that_there_are_and_reloads_within_the_time_that_it_has(name):
    text = code_of(name)
    verbs = re.findall(r"(?m)^Exec\w+=/srv/app/venv/bin/queuepool (\S+)", text)
    wait, limit = re.search(r"reload .*--wait (\d+)", text), re.search(r"TimeoutStartSec=(\d+)", text)

    assert ["start", "reload"] == verbs
    assert set(verbs) <= set(VERBS)
    assert wait
    assert limit
    assert int(wait[1]) < int(limit[1])


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_keeps_its_boards_where_the_next_start_and_roots_commands_look(name):
    """Left to itself a pool takes the temporary directory, which PrivateTmp empties whenever the pool ends."""
    text = code_of(name)
    kept = re.search(r"(?m)^RuntimeDirectory=(\w+)", text)

    assert ["/run/queuepool"] * 2 == re.findall(r"(?m)^Exec.* --runtime-dir (\S+)", text)
    assert kept
    assert "queuepool" == kept[1]
    assert "RuntimeDirectoryPreserve=yes" in text


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_asks_questions_and_sets_variables_that_there_are(name):
    text = code_of(name)
    questions = re.findall(r'"queuepool-probe", "(\w+)"', text)
    variables = set(re.findall(r"QUEUEPOOL_(\w+)", text)) - {"CONFIG"}
    keys = {f"{section}_{key}".upper() for section in ("pool", "connection") for key in KEYS[section]}

    assert questions
    assert set(questions) <= set(queuepool_probe._QUESTIONS)
    assert variables <= keys


@pytest.mark.parametrize("name", ["compose.yml", "kubernetes.yml", "keda.yml"])
def test_a_file_is_plain_yaml(name):
    """As far as that can be seen without a parser: no tabs, even indents, closed brackets and quotes."""
    for line in filter(None, code_of(name).splitlines()):
        assert "\t" not in line
        assert (len(line) - len(line.lstrip())) % 2 == 0
        assert [line.count(opening) for opening in "[{"] == [line.count(closing) for closing in "]}"]
        assert line.count('"') % 2 == 0
        assert re.match(r" *(- )?([\w.-]+:( |$)|\{|\")", line), line


def test_the_board_survives_the_container():
    place = re.search(r"QUEUEPOOL_POOL_RUNTIME_DIR=(\S+)", text_of("Containerfile"))

    assert place
    assert f"mkdir -m 0700 {place[1]}" in text_of("Containerfile")
    assert f'"run:{place[1]}"' in text_of("compose.yml")
    assert f"{{name: run, mountPath: {place[1]}, subPath: queuepool}}" in text_of("kubernetes.yml")
    assert absolute(Path(place[1])) == place[1]


def test_keda_counts_running_jobs_and_keeps_a_pod():
    text = code_of("keda.yml")
    lists = re.findall(r'listName: "(\S+)"', text)

    assert ["queues:default", "queues:default:reserved"] == lists
    assert 'formula: "ready + reserved"' in text
    assert int(re.search(r"minReplicaCount: (\d+)", text)[1]) >= 1  # type: ignore[index]
