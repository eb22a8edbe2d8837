"""A look at the server before a pool or a lone worker starts."""

from __future__ import annotations

from contextlib import closing

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError, StoreUnfit
from queuepool.stores.factory import Stores


def refuse_unfit(settings: ConnectionSettings, queue: str) -> None:
    """Raise ``StoreUnfit`` when the server is unsuitable; one that does not answer passes."""
    with closing(Stores(settings)) as stores:
        try:
            stores.examine(queue)
        except StoreUnfit:
            raise
        except StoreError:
            return
