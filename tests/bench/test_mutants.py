"""The small faults of ``scripts/mutants`` are real ones, in every layer, and all default tests look for them."""

from __future__ import annotations

import ast

import pytest

from tests.bench.mutants import ROOT, TURNS, chosen
from tests.unit.test_architecture import LAYERS


@pytest.mark.thorough("test_each_changes_what_one_file_means has those of a seed")
def test_a_seed_chooses_one_in_each_layer_and_the_same_each_time():
    found = chosen(1)

    assert len(LAYERS) == len({mutant.path for mutant in found})
    assert found == chosen(1) != chosen(2)


def test_each_changes_what_one_file_means(tmp_path):
    for mutant in chosen(1):
        (tmp_path / mutant.path).parent.mkdir(parents=True, exist_ok=True)
        mutant.write(tmp_path)
        before, after = (ast.parse((folder / mutant.path).read_text()) for folder in (ROOT, tmp_path))

        assert ast.dump(before) != ast.dump(after), str(mutant)


def test_every_folder_of_tests_has_its_turn():
    folders = {
        f"tests/{path.parent.relative_to(ROOT / 'tests').parts[0]}" for path in ROOT.glob("tests/*/**/test_*.py")
    }

    assert folders == {folder for turn in TURNS for folder in turn}
