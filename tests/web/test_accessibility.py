"""axe-core finds nothing serious on any page, light and dark, on a telephone and on a wide screen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.chromium import Window
from tests.web.test_in_a_browser import PAGES, WIDTHS, browser, place, shop

pytestmark = pytest.mark.thorough("it starts a browser")
__all__ = ["browser", "place", "shop"]
AXE = Path(sys.prefix) / "axe.min.js"
#: what must not be found
GRAVE = ("serious", "critical")
_LOOK = """
const { violations } = await axe.run({ resultTypes: ["violations"] });
return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html }) => [impact, `${id}: ${html.slice(0, 200)}`]));
"""


@pytest.fixture(scope="module")
def inspector(browser: Window) -> Window:
    if not AXE.exists():
        pytest.skip("needs axe-core, which scripts/setup tests browser takes from npm, if there is one")
    browser.before_each_page(AXE.read_text())
    return browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_shuts_anybody_out(inspector, shop, scheme, width):
    inspector.size(width)
    inspector.prefer(scheme)
    found = []
    for page in PAGES:
        inspector.go(shop + page)
        all_found = inspector.run_to_its_end(_LOOK)
        assert isinstance(all_found, list), all_found
        found += [f"{page}: {words}" for impact, words in all_found if impact in GRAVE]
    assert "" == "\n".join(found)
