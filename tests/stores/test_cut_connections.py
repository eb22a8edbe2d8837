"""A Redis store has a connection for commands and one for messages: when a server dies, both are cut at once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from queuepool.errors import StoreDown
from queuepool.stores.factory import Stores


@pytest.mark.fault("F50")
def test_a_server_that_is_back_is_not_lost_again_with_the_second_connection(own_server, connection):
    with closing(Stores(replace(connection, url=f"unix://{own_server.path}"))) as stores:
        subscribed = stores.queue.wait_for_change(["default"], 0.0)
        own_server.kill()
        with pytest.raises(StoreDown):
            stores.queue.now()
        own_server.start()

        assert subscribed
        assert stores.queue.now() > 0
        assert stores.queue.wait_for_change(["default"], 0.0)  # anew, as messages may have been missed
