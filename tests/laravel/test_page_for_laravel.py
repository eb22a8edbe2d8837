"""The listings of docs/laravel.md, as they stand, with the real Laravel: one job, a chain and a batch in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_pages_and_examples import ROOT, blocks
from tests.support.chains import OUTCOMES
from tests.support.laravel_peer import Peer
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("both")

PAGE = ROOT / "docs" / "laravel.md"
CLASS, DISPATCH, CHAIN, BATCH = (block.code for block in blocks(PAGE, "php"))
[RESIZE] = [block.code for block in blocks(PAGE, "python") if block.module == "app/images"]
#: what the page leaves to the application
REST = """
class PublishImage extends ResizeImage
{
    public function handle(): void
    {
        write_line(['published' => $this->image]);
    }
}

class Album
{
    public static function publish($batch): void
    {
        write_line(['album' => $batch->totalJobs]);
    }

    public static function failed($error): void
    {
        write_line(['error' => $error->getMessage()]);
    }
}
"""
USES = "<?php\nuse App\\Jobs\\{Album, PublishImage, ResizeImage};\nuse Illuminate\\Support\\Facades\\Bus;\n"
HANDLER = "from tests.support.poolapp import note\n" + RESIZE.replace(
    "-> None: ...",
    '-> None:\n    note(event="resized", image=image, width=width)\n    assert image != 13, "not this one"',
)


@pytest.fixture
def boot(laravel: Peer, tmp_path: Path) -> str:
    """The file with the application's classes."""
    path = tmp_path / "classes.php"
    foundation = f"require '{ROOT}/tests/laravel/foundation.php';"
    path.write_text(CLASS.replace("class ResizeImage", f"{foundation}\n\nclass ResizeImage", 1) + REST)
    return str(path)


def perform(laravel: Peer, boot: str, listing: str) -> None:
    path = Path(boot).with_name("listing.php")
    path.write_text(USES + listing)
    laravel.run("perform", str(path), boot=boot)


def resize(site: Site) -> list[tuple[int, int]]:
    """Run what waits for Python, and return all that was resized so far."""
    (site.path / "images.py").write_text(HANDLER)
    (site.path / "pool.ini").write_text(f"[connection]\n{OUTCOMES}\n")
    site.work("-c", str(site.path / "pool.ini"), "--queue", "python", "--modules", "images")
    return [(line["image"], line["width"]) for line in site.trail(event="resized")]


@pytest.mark.thorough("the chain of the page has it")
def test_one_job(both: tuple[Site, Peer], boot: str) -> None:
    site, laravel = both
    perform(laravel, boot, DISPATCH)

    assert [(7, 800)] == resize(site)
    assert (0, 0) == (site.queue.size("python"), site.queue.size("outcomes"))


def test_a_chain_in_both_languages(both: tuple[Site, Peer], boot: str) -> None:
    site, laravel = both
    perform(laravel, boot, CHAIN)
    assert [(7, 800)] == resize(site)
    laravel.run("work", queue="outcomes,default", stop_when_empty=True, boot=boot)
    assert [{"published": 7}] == laravel.lines()
    assert [(7, 800), (7, 80)] == resize(site)
    assert (0, 0) == (site.queue.size("python"), site.queue.size("outcomes"))


@pytest.mark.thorough("test_chains_and_batches has one that fails")
def test_a_chain_that_fails_calls_what_php_wants_called(both: tuple[Site, Peer], boot: str) -> None:
    site, laravel = both
    perform(laravel, boot, CHAIN.replace("ResizeImage(7))", "ResizeImage(13))", 1))
    resize(site)
    laravel.run("work", queue="outcomes,default", stop_when_empty=True, boot=boot)

    assert [{"error": "AssertionError: not this one"}] == laravel.lines()


@pytest.mark.thorough("test_chains_and_batches has one; the chain of the page is run here")
def test_a_batch(both: tuple[Site, Peer], boot: str) -> None:
    site, laravel = both
    perform(laravel, boot, BATCH)
    assert [(7, 800), (8, 800)] == resize(site)
    laravel.run("work", queue="outcomes", stop_when_empty=True, boot=boot)

    assert [{"album": 2}] == laravel.lines()
