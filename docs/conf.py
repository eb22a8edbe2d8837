"""Sphinx: the pages of this directory as a site and as man pages. ``scripts/docs`` builds both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes

from queuepool import __version__

project = "queuepool"
copyright = "the authors of queuepool"  # noqa: A001 - Sphinx's word
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"queuepool {__version__}"
smartquotes = False  # -- is the beginning of a flag
myst_heading_anchors = 4  # as GitHub makes them, so that links work in both places
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
nitpicky = True
#: types in signatures that have no page here: Python's, and ours that are not public
nitpick_ignore_regex = [
    ("py:.*", r"(collections|datetime|pathlib|typing)\..*"),
    ("py:.*", r"queuepool\.(config|events\.listeners|jobs|payload|settlement)\..*"),
    ("py:.*", r"datetime|Delay|Sizes|PhpValue|Seconds|Batch|R|R_co|T|P|P\.args|P\.kwargs"),
]
man_pages = [
    ("reference/cli", "queuepool", "run background jobs", ["the authors of queuepool"], 1),
    ("reference/configuration", "pool.ini", "configuration of queuepool", ["the authors of queuepool"], 5),
]
#: pages that queuepool(1) has after its own
_PARTS_OF_MAN = ("signals", "exit-codes", "titles")


def _draw_tree(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """The tree of errors is drawn with lines of its own: to RST it would be one paragraph."""
    if what == "module" and name == "queuepool.errors":
        lines[1:] = ["", "::", "", *(f"   {line}" for line in lines[1:]), ""]


def _unlink_the_rest(app: Any, page: str, source: list[str]) -> None:
    """Pages of the repository that are not in the site, as CONTRIBUTING.md, stay as their names."""
    source[0] = re.sub(r"\[([^]]+)\]\((?:\.\./)+[A-Z]+\.md(?:#[^)]*)?\)", r"\1", source[0])


def _append_parts(app: Any, page: str, source: list[str]) -> None:
    """A man page has no other pages to link to."""
    if app.builder.name == "man" and page == "reference/cli":
        parts = [(Path(app.srcdir) / f"reference/{part}.md").read_text() for part in _PARTS_OF_MAN]
        source[0] = "\n".join([source[0], *(part.replace("\n## ", "\n### ").replace("# ", "## ", 1) for part in parts)])


def _drop_links(app: Any, tree: nodes.document, page: str) -> None:
    """In a man page an internal link would be an empty pair of brackets."""
    if app.builder.name == "man":
        for link in list(tree.findall(nodes.reference)):
            link.replace_self(link.children)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _draw_tree)
    app.connect("source-read", _unlink_the_rest)
    app.connect("source-read", _append_parts)
    app.connect("doctree-resolved", _drop_links)
