"""The pages of the documentation: their links lead somewhere, and their examples work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from queuepool.cli.verbs import VERBS
from queuepool.config.loader import load
from tests.support.each import each
from tests.support.reference import flags, verbs

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: a block of code after this comment, which says why, is not tried
LEFT_OUT = "<!-- not run: "


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^ *(```|~~~).*?^ *\1", "", text))


def anchors(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^ *```.*?^ *```", "", path.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_is_read_in_a_few_minutes():
    assert len((ROOT / "README.md").read_text().split()) <= 1_200


@each("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    links = re.findall(r"\]\((?!https?:|mailto:)([^)\s]*)\)", without_code(page.read_text()))

    assert [] == [link for link in links if not leads_somewhere(page, link)]


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target))


class Block(NamedTuple):
    """A block of code, and the paragraph before it."""

    code: str
    before: str

    @property
    def module(self) -> str:
        """The file that its first line or that paragraph names, without ``.py``; empty without one."""
        found = re.match(r"# ([\w/]+)\.py\n", self.code) or re.search(r"`([\w/]+)\.py`", self.before)
        return found[1] if found else ""


def blocks(page: Path, language: str) -> Iterator[Block]:
    """Those in this language, but for those that are left out."""
    text = page.read_text()
    for found in re.finditer(rf"(?ms)^( *)```{language}\n(.*?)^\1```", text):
        before = text[: found.start()].rstrip("\n ").rpartition("\n\n")[2]
        if not before.startswith(LEFT_OUT):
            yield Block(re.sub(f"(?m)^{found[1]}", "", found[2]), before)


def having(language: str) -> list[Path]:
    return [page for page in PAGES if any(blocks(page, language))]


@pytest.fixture(scope="module")
def queue(tmp_path_factory) -> str:
    """The URL of a queue in SQLite."""
    url = f"sqlite:///{tmp_path_factory.mktemp('queue')}/queue.db"
    subprocess.run([sys.executable, "-m", "queuepool", "migrate", "--url", url], check=True, capture_output=True)
    return url


#: their modules are projects, which have tests of their own
PROJECTS = {ROOT / "docs/django.md", ROOT / "docs/web-frameworks.md"}


@pytest.mark.thorough("the documentation; the examples' own tests run by default")
@pytest.mark.parametrize("page", [page for page in having("python") if page not in PROJECTS], ids=named)
@pytest.mark.by_turns("page")
def test_the_python_of_a_page_runs(page, queue, tmp_path):
    """In its order, on that queue: the variable wins over the file. Flows with members in PHP need one setting more."""
    ini = next(blocks(page, "ini"), Block("[pool]\n", "")).code
    (tmp_path / "pool.ini").write_text(ini)
    program = [part_of_program(block, tmp_path) for block in blocks(page, "python")]
    (tmp_path / "page.py").write_text("\n".join(program))
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{sys.prefix}/otel", "QUEUEPOOL_CONNECTION_URL": queue}
    if reports := re.search(r"(?m)^flow_reports = (\w+)$", ini):
        env["QUEUEPOOL_CONNECTION_FLOW_REPORTS"] = reports[1]
    done = subprocess.run(
        [sys.executable, "-c", "import page"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=30
    )

    assert (0, "") == (done.returncode, done.stderr)


def part_of_program(block: Block, folder: Path) -> str:
    """The code itself, or where it is a module its import; pages show a module in several blocks."""
    if not block.module:
        return block.code
    path = folder / f"{block.module}.py"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(block.code)
    return f"import {block.module.replace('/', '.')}\n"


@each("page", having("ini"))
def test_the_configuration_of_a_page_is_one(page, tmp_path):
    for name, text in {"queuepool.keys": "k1:0123456789abcdef", "queuepool.key": 32 * "k"}.items():
        (tmp_path / name).write_text(f"{text}\n")
        (tmp_path / name).chmod(0o600)
    for block in blocks(page, "ini"):
        variables = dict.fromkeys(re.findall(r"(?<!\$)\$\{(\w+)\}", block.code), 32 * "x")
        path = tmp_path / "pool.ini"
        without_certificates = re.sub(r"[?&]ssl\w+=[^&\s]*", "", block.code)
        path.write_text(without_certificates.replace("/etc/", f"{tmp_path}/"))
        path.chmod(0o600)
        load(path, environ=variables)


@each("page", PAGES)
def test_the_commands_of_a_page_exist(page):
    """Those in blocks and in sentences."""
    lines = [line.strip() for block in blocks(page, "sh") for line in block.code.splitlines()]
    spans = re.findall(r"`(queuepool [a-z][^`]*)`", page.read_text())
    commands = [line for line in (*lines, *spans) if line.startswith("queuepool ")]

    assert [] == [line for line in commands if not is_a_command(line)]


def is_a_command(line: str) -> bool:
    _, verb, *words = shlex.split(line, comments=True)
    if verb not in VERBS:
        return False
    path = f"queuepool {verb}"
    known = flags(
        verbs()[f"{path} {words[0]}" if verb in ("flow", "limits", "quarantine", "schedule") and words else path]
    )
    return {word.partition("=")[0] for word in words if word.startswith("-")} <= known | {"-h", "--help"}
