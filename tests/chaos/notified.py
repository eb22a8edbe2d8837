"""The operator's program: writes each notice of an alert into the ledger."""

from __future__ import annotations

import json
import sys

from tests.chaos.own_ledger import LEDGER

notice = json.load(sys.stdin)
facts = {name: notice[name] for name in ("state", "kind", "subject", "pool")}
LEDGER.write("notice", **facts)
