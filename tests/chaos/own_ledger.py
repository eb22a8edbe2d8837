"""This process's ledger, shared by its jobs and listeners, so that it takes one descriptor."""

from __future__ import annotations

import os

from tests.chaos.ledger import Ledger

LEDGER = Ledger(os.environ["CHAOS_LEDGER"])
