"""Import the user's modules: after the fork, so that a recycled worker runs new code.

If an import fails, one line says why: where the module was looked for, and what was probably meant.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from queuepool.errors import BootFailure
from queuepool.jobs import at_import
from queuepool.jobs.registry import NO_MODULES, REGISTRY
from queuepool.log.captured import log_incomplete
from queuepool.log.tracebacks import summary, traceback_of
from queuepool.unix import at_fork
from queuepool.unix.places import working_directory
from queuepool.worker import django_support

T = TypeVar("T")
#: most characters of an exception's own text
_MOST_TEXT = 500
#: most classes in a message
_MOST_NAMES = 3


def other_threads() -> int:
    """How many Python threads run besides the calling one; they do not survive a fork."""
    return len(sys._current_frames()) - 1


def import_jobs(modules: Iterable[str], listeners: Iterable[str]) -> None:
    """Import modules and listeners. Raises ``BootFailure``, also if no job is registered afterwards.

    A worker without jobs would fail every job that it takes as unknown. A single module need not register any: it may
    set up what the others need.
    """
    imported = import_application(modules)
    import_modules(listeners)
    if not REGISTRY.names():
        raise BootFailure(without_jobs(imported, REGISTRY.without_handle) if imported else NO_MODULES)


def import_application(modules: Iterable[str]) -> list[ModuleType]:
    """Set up Django if ``DJANGO_SETTINGS_MODULE`` is set, then import the modules. Raises ``BootFailure``."""
    _carry_out(os.environ.get("DJANGO_SETTINGS_MODULE", ""), django_support.set_up)
    return import_modules(modules)


def import_modules(names: Iterable[str]) -> list[ModuleType]:
    """Import each module. Raises ``BootFailure`` with the original traceback, less our own frames."""
    imported = []
    for name in names:
        imported.append(_carry_out(name, partial(importlib.import_module, name)))
        if problem := shadowed_by_python(imported[-1]):
            raise BootFailure(problem)
    return imported


def _carry_out(name: str, step: Callable[[], T]) -> T:
    """Run one step of a boot; it runs user code from the module ``name``. Raises ``BootFailure``."""
    pid = os.getpid()
    # Like `python -m`: a console script does not have the working directory on its path.
    here = working_directory()
    if here and str(here) not in sys.path:
        sys.path.insert(0, str(here))
    try:
        with at_import.under_way():
            return step()
    # Even SystemExit: a module that calls sys.exit() at its import has not been imported.
    except BaseException as error:
        at_fork.leave_if_copy(pid, error)
        raise BootFailure(problem_of(name, error), "" if is_missing(name, error) else _frames_of(error)) from error
    finally:
        at_fork.leave_if_copy(pid)  # a child that the module forked would be a second worker in this slot
        log_incomplete()  # otherwise what the module printed would begin the first job's line


def _frames_of(error: BaseException) -> str:
    """The traceback, without its last line if the problem already says the same."""
    head, _, last = traceback_of(error).rstrip("\n").rpartition("\n")
    return head if last == summary(error) else f"{head}\n{last}"


def problem_of(name: str, error: BaseException) -> str:
    """The message for an import of ``name`` that raised ``error``."""
    if is_missing(name, error):
        missing = str(error.name)  # type: ignore[attr-defined]
        hint = _meant(name, missing)
        return f"cannot import {name}: {_where_it_is_not(missing)}" + (f"; {hint}" if hint else "")
    text = " ".join(summary(error).split())[:_MOST_TEXT]
    if isinstance(error, ModuleNotFoundError):
        return f"cannot import {name}: {text}; is it installed in {sys.prefix}?"
    hint = "; what a module runs as a program belongs under if __name__ == '__main__'"
    return f"cannot import {name}: {text}{hint if isinstance(error, SystemExit) else ''}"


def is_missing(name: str, error: BaseException) -> bool:
    """Whether the module itself, or a package that should contain it, is missing."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return bool(missing) and f"{name}.".startswith(f"{missing}.")


def shadowed_by_python(module: ModuleType) -> str:
    """The message if Python's own module of that name was imported instead of the user's; else empty."""
    name, file = module.__name__, getattr(module, "__file__", None) or "built in"
    here = working_directory()
    own = next((path for path in _files_of(here, name) if path.exists()), None) if here else None
    if name not in sys.stdlib_module_names or own is None or file == str(own):
        return ""
    return f"{name} is Python's own module ({file}), not {own}: give yours another name"


def without_jobs(modules: list[ModuleType], without_handle: Collection[str]) -> str:
    """The message if these modules registered no job; ``without_handle`` are classes that only lack ``handle()``."""
    files = ", ".join(
        f"{one.__name__} ({getattr(one, '__file__', None) or 'a package without a file'})" for one in modules
    )
    if names := sorted(without_handle)[:_MOST_NAMES]:
        return f"no job is registered by {files}: {', '.join(names)} {'has' if len(names) == 1 else 'have'} no handle()"
    return f"no job is registered by {files}: is @job missing, or the module that uses it not imported?"


def _where_it_is_not(missing: str) -> str:
    parent, _, last = missing.rpartition(".")
    package = sys.modules.get(parent)
    if package is None:
        there = os.environ.get("PYTHONPATH")
        also = f"nor on PYTHONPATH ({there})" if there else "and PYTHONPATH is not set"
        here = working_directory()
        place = f"{here} (the working directory)" if here else "the working directory, which was removed"
        return f"there is no {missing} in {place}, {also}"
    file = getattr(package, "__file__", None) or "a package without a file"
    if not hasattr(package, "__path__"):
        return f"{parent} ({file}) is a module, not a package"
    return f"there is no {last} in the package {parent} ({file})"


def _meant(name: str, missing: str) -> str:
    """What was probably meant; empty if there is no guess."""
    parent, _, last = missing.rpartition(".")
    if last == "py" and parent in sys.modules:
        return f"say {parent}, without .py"
    if parent:
        names = _names_in(getattr(sys.modules.get(parent), "__path__", []))
        return _close(last, names, f"{parent}.")
    return _elsewhere(name, missing) or _close(last, _names_in([*_here(), *_python_path()]))


def _elsewhere(name: str, top: str) -> str:
    """The hint if the module is in a directory just below or above the working directory; else empty."""
    here = working_directory()
    if here is None:
        return ""
    if here.name == top and any(path.exists() for path in _files_of(here.parent, name)):
        return f"it is in {here.parent}: start there"
    for folder in _folders(here):
        if any(path.exists() for path in _files_of(folder, top)):
            if (folder / "__init__.py").exists():
                return f"did you mean {folder.name}.{name}?"
            return f"it is in {folder}: set PYTHONPATH={folder.name}, or pip install -e . if it is a project"
    return ""


def _folders(place: Path) -> Iterator[Path]:
    """The directories in ``place``; ``src``, the usual one, comes first."""
    with suppress(OSError):
        below = sorted(place.iterdir(), key=lambda path: (path.name != "src", path.name))
        yield from (path for path in below if path.is_dir() and not path.name.startswith("."))


def _files_of(folder: Path, name: str) -> tuple[Path, Path]:
    """Where a module of that name would be: as a file or as a package."""
    place = folder.joinpath(*name.split("."))
    return place.with_name(f"{place.name}.py"), place / "__init__.py"


def _close(word: str, names: list[str], before: str = "") -> str:
    close = get_close_matches(word, names, 1)
    return f"did you mean {before}{close[0]}?" if close else ""


def _names_in(places: list[str]) -> list[str]:
    return [module.name for module in pkgutil.iter_modules(places)]


def _here() -> list[str]:
    here = working_directory()
    return [str(here)] if here else []


def _python_path() -> list[str]:
    return [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
