"""The hint for a module that cannot be imported depends on where its file lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuepool.errors import BootFailure
from queuepool.worker import boot

JOB = "from queuepool import job\n@job({!r})\ndef run() -> None: ...\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An application's directory, which a console script does not have on its path."""
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(place: Path, text: str = "") -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def problem(name: str) -> str:
    with pytest.raises(BootFailure) as failure:
        boot.import_modules([name])
    return str(failure.value)


def test_a_misspelt_name_is_told_where_it_was_looked_for_and_the_nearest_one(here):
    write(here / "hint_jobs.py")

    where = f"{here} (the working directory), and PYTHONPATH is not set"
    assert f"cannot import hint_jbos: there is no hint_jbos in {where}; did you mean hint_jobs?" == problem("hint_jbos")


def test_a_misspelt_module_of_a_package_is_told_the_package(here):
    write(here / "hint_shop" / "__init__.py")
    write(here / "hint_shop" / "tasks.py")

    said = f"there is no task in the package hint_shop ({here}/hint_shop/__init__.py); did you mean hint_shop.tasks?"
    assert f"cannot import hint_shop.task: {said}" == problem("hint_shop.task")


def test_a_files_name_is_told_to_be_a_modules(here):
    write(here / "hint_ok.py")

    assert problem("hint_ok.py").endswith("; say hint_ok, without .py")


def test_a_src_layout_is_told_how_to_be_found(here):
    write(here / "src" / "hint_src" / "__init__.py")
    write(here / "src" / "hint_src" / "tasks.py")

    hint = f"it is in {here}/src: set PYTHONPATH=src, or pip install -e . if it is a project"
    assert problem("hint_src.tasks").endswith(f"; {hint}")


def test_a_module_of_a_package_below_is_told_its_whole_name(here):
    write(here / "hint_app" / "__init__.py")
    write(here / "hint_app" / "inner_jobs.py")

    assert problem("inner_jobs").endswith("; did you mean hint_app.inner_jobs?")


def test_a_start_from_within_the_package_is_told_the_directory_above(here, monkeypatch):
    write(here / "hint_in" / "jobs.py")
    monkeypatch.chdir(here / "hint_in")

    assert problem("hint_in.jobs").endswith(f"; it is in {here}: start there")


def test_what_a_module_imports_and_is_not_installed_is_told_with_its_line(here):
    write(here / "hint_needs.py", "\nimport no_such_library\n")
    with pytest.raises(BootFailure) as failure:
        boot.import_modules(["hint_needs"])

    assert "No module named 'no_such_library'; is it installed in /" in str(failure.value)
    assert "hint_needs.py" in failure.value.trace
    assert "line 2" in failure.value.trace


def test_a_module_that_ends_the_program_is_told_what_to_do(here):
    write(here / "hint_main.py", "import sys\nsys.exit(0)\n")

    assert "SystemExit: 0; what a module runs as a program belongs under if __name__" in problem("hint_main")


@pytest.mark.parametrize("name", ["email", "queue"])
def test_pythons_own_module_of_that_name_is_told(here, name):
    write(here / f"{name}.py", JOB.format(name))

    assert f"{name} is Python's own module (" in problem(name)
    assert problem(name).endswith(f", not {here}/{name}.py: give yours another name")


def test_one_of_several_modules_may_have_no_job_but_not_all_of_them(here, monkeypatch):
    monkeypatch.setattr("queuepool.jobs.registry.REGISTRY._handlers", {})
    write(here / "hint_boot.py")
    write(here / "hint_have.py", JOB.format("hint_have.run"))
    with pytest.raises(BootFailure) as failure:
        boot.import_jobs(["hint_boot"], [])
    boot.import_jobs(["hint_boot", "hint_have"], [])
    boot.import_jobs([], [])

    assert f"no job is registered by hint_boot ({here}/hint_boot.py)" in str(failure.value)
