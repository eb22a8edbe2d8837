"""Files to which processes append that may be killed in the middle of a line."""

from __future__ import annotations

import pytest

from tests.support.lines import Appended, parted


@pytest.mark.parametrize("torn", [b"", b"{", b'{"pid": 1, "ev', b'{"at": {"x": 1}', b'{"at": {"x": 1}, "of": {'])
@pytest.mark.parametrize("whole", [b"{}", b'{"pid": 2, "of": {"y": {}}}'])
def test_a_line_behind_a_torn_one_is_read(torn, whole):
    before, found = parted(torn + whole)

    assert torn == before
    assert found == parted(whole)[1]


def test_a_line_without_an_end_of_its_own_is_none():
    with pytest.raises(ValueError, match="no JSON"):
        parted(b'{"pid": 1')


def test_each_look_reads_what_was_added(tmp_path):
    appended = Appended(tmp_path / "trail")
    assert [] == appended.read()
    for added, found in ((b'{"n": 1}\n{"n"', [1]), (b': {"n": 2}\n', [1, 2]), (b'{"n": 3}\n', [1, 2, 3])):
        with (tmp_path / "trail").open("ab") as file:
            file.write(added)
        assert found == [line["n"] for line in appended.read()]
