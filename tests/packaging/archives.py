"""What is in the wheel and the sdist; ``scripts/package`` builds them and runs this file.

``wheel-files.txt`` lists folders and kinds of files, not names: a new module of a package changes nothing there, and a
folder or a kind of file that nobody meant to ship is noticed. That no single file is missing is compared with git.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import queuepool

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("wheel-files.txt").read_text().split()


def files_of_wheel() -> set[str]:
    [path] = (ROOT / "dist").glob("*.whl")
    with ZipFile(path) as wheel:
        return set(wheel.namelist())


def files_of_sdist() -> set[str]:
    """Without the folder that all of them are in."""
    [path] = (ROOT / "dist").glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        return {member.name.partition("/")[2] for member in sdist if not member.isdir()}


def files_in_git() -> set[str]:
    """Those that are there now, also if they are not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return set(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines())


def metadata() -> Message:
    [path] = (ROOT / "dist").glob("*.whl")
    with ZipFile(path) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(wheel.read(name))


def matches(name: str, pattern: str) -> bool:
    return PurePosixPath(name).match(pattern)


def test_the_wheel_has_folders_and_kinds_of_files_that_are_listed_and_no_others():
    files = files_of_wheel()

    assert [] == sorted(name for name in files if not any(matches(name, pattern) for pattern in KEPT))
    assert [] == [pattern for pattern in KEPT if not any(matches(name, pattern) for name in files)]


def test_the_wheel_has_every_file_of_the_package():
    of_package = {name for name in files_in_git() if name.startswith("queuepool/")}

    assert of_package | {"queuepool_probe.py"} == {name for name in files_of_wheel() if ".dist-info/" not in name}


def test_the_sdist_is_the_repository():
    files = {name for name in files_of_sdist() if not name.startswith("queuepool_worker.egg-info/")}

    assert files_in_git() | {"PKG-INFO"} == files


def test_the_metadata_names_the_license_the_version_and_the_pythons_that_are_tested():
    found = metadata()
    classifiers = found.get_all("Classifier", [])
    versions = re.findall(r'(?m)^versions="(.*)"', (ROOT / "scripts/pythons").read_text())[0].split()

    assert ("MIT", ["LICENSE"]) == (found["License-Expression"], found.get_all("License-File"))
    assert queuepool.__version__ == found["Version"]
    assert versions == re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
