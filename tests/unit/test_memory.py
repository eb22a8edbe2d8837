"""How much memory there is: of this host, and of control groups as files."""

from __future__ import annotations

from pathlib import Path

from queuepool.config.values import MemoryReserve, memory_reserve
from queuepool.unix.proc import Memory, limit_of, memory
from tests.support.each import each

MB = 1024 * 1024


def group(folder: Path, most: object, used: int, cached: int = 0) -> Path:
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {cached}\nslab 2\n")
    return folder


def test_this_host_has_memory_and_some_of_it_is_free():
    found = memory()

    assert found
    assert 0.0 < found.available <= found.total


def test_a_group_has_left_what_it_may_use_and_what_it_only_keeps_in_mind(tmp_path):
    assert Memory(512.0, 212.0) == limit_of(group(tmp_path, 512 * MB, 400 * MB, cached=100 * MB))


@each("most", ["max", "", "many"])
def test_a_group_without_a_limit_says_nothing(tmp_path, most):
    assert limit_of(group(tmp_path, most, MB)) is None


def test_a_group_that_cannot_be_read_says_nothing(tmp_path):
    assert limit_of(tmp_path / "gone") is None


@each(("raw", "megabytes"), [("10%", 204.8), ("512", 512.0), ("1G", 1024.0), ("0", 0.0), ("0%", 0.0)])
def test_a_reserve_is_a_size_or_a_share(raw, megabytes):
    reserve = memory_reserve(raw)

    assert megabytes == reserve.megabytes(2048.0)
    assert reserve == memory_reserve(str(MemoryReserve(reserve.amount, reserve.is_share)))
