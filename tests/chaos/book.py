"""This process's ledger: one for its jobs and its listeners, so that it has one descriptor."""

from __future__ import annotations

import os

from tests.chaos.ledger import Ledger

BOOK = Ledger(os.environ["CHAOS_LEDGER"])
