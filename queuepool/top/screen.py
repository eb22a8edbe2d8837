"""The terminal: the one file that draws and reads keys."""

from __future__ import annotations

import curses
import locale
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

from queuepool.top.layout import Display, Line, Style
from queuepool.unix.signals import listen_for

#: most keys that are taken at once: of a storm of resizes or a held key, one frame is drawn
_MOST_KEYS = 200
#: milliseconds after which ESC is a key by itself and no longer the beginning of another
_ESCAPE_DELAY = 50
_KEYS = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_PPAGE: "page up",
    curses.KEY_NPAGE: "page down",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_ENTER: "enter",
    curses.KEY_BACKSPACE: "backspace",
    curses.KEY_BTAB: "back tab",
}


def can_draw() -> bool:
    """Whether both ends of this process are a terminal that can be drawn on: one with ``TERM=dumb`` cannot."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        curses.setupterm()
        return bool(curses.tigetstr("cup"))
    except curses.error:  # no TERM, or one that this system does not know
        return False


def drawing(use: Callable[[Screen], None]) -> None:
    """Run ``use`` with the terminal taken over; it is given back whatever happens. TERM ends it, as ``q`` does."""
    with suppress(locale.Error):  # a locale that this system does not have: the C locale stays
        locale.setlocale(locale.LC_ALL, "")
    curses.set_escdelay(_ESCAPE_DELAY)
    with suppress(_Ended):
        listen_for(signal.SIGTERM, _end)
        curses.wrapper(lambda window: use(Screen(window)))


class _Ended(BaseException):
    """TERM has come; never leaves ``drawing``."""


def _end(signum: int, frame: FrameType | None) -> None:
    raise _Ended


class Screen:
    """The terminal while it is ours."""

    def __init__(self, window: curses.window) -> None:
        self._window = window
        self._looks = _looks()
        with suppress(curses.error):  # a terminal whose cursor cannot be hidden
            curses.curs_set(0)

    def place(self) -> Display:
        """Its size now. Raises ``OSError`` when the terminal is gone."""
        size = os.get_terminal_size(sys.stdout.fileno())
        # The kernel reports a new size only to the processes in the foreground: we may have been stopped.
        if size.lines and size.columns and curses.is_term_resized(size.lines, size.columns):
            curses.resizeterm(size.lines, size.columns)
        lines, columns = self._window.getmaxyx()
        return Display(columns, lines, locale.getencoding())

    def draw(self, lines: Sequence[Line]) -> None:
        """Show these lines in place of what was there; only the differences are sent."""
        self._window.erase()
        for number, spans in enumerate(lines):
            with suppress(curses.error):  # after the last cell of the last line there is no place for the cursor
                self._window.move(number, 0)
                self._window.clrtoeol()  # what a wide line before it has left here
                for span in spans:
                    self._window.addstr(span.text, self._looks[span.style])
        self._window.refresh()

    def keys(self, seconds: float) -> list[str]:
        """The keys that were pressed; waits up to ``seconds`` for the first one."""
        found: list[str] = []
        self._window.timeout(max(int(seconds * 1000), 1))
        with suppress(curses.error):  # no more
            while len(found) < _MOST_KEYS:
                key = self._window.get_wch()
                found.append(key if isinstance(key, str) else _KEYS.get(key, ""))
                self._window.timeout(0)
        return found


def _looks() -> Mapping[Style, int]:
    plain = dict.fromkeys(Style, curses.A_NORMAL)
    plain |= {Style.STRONG: curses.A_BOLD, Style.FAINT: curses.A_DIM, Style.SELECTED: curses.A_REVERSE}
    plain |= {Style.TITLE: curses.A_BOLD | curses.A_UNDERLINE}
    if not curses.has_colors() or os.environ.get("NO_COLOR"):
        return plain | {Style.WARNING: curses.A_BOLD, Style.BAD: curses.A_BOLD | curses.A_REVERSE}
    curses.use_default_colors()
    colors = {Style.GOOD: curses.COLOR_GREEN, Style.WARNING: curses.COLOR_YELLOW, Style.BAD: curses.COLOR_RED}
    for number, (style, color) in enumerate(colors.items(), 1):
        curses.init_pair(number, color, -1)
        plain[style] = curses.color_pair(number) | (curses.A_BOLD if style is Style.BAD else 0)
    return plain
