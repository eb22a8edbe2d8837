"""Where a test diverts the pushes of all queues instead of to their stores: see ``queuepool.testing``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from queuepool.config.settings import ConnectionSettings

if TYPE_CHECKING:
    from queuepool.jobs.door import Terms
    from queuepool.stores.contract import PushStore
    from queuepool.stores.factory import Stores


class Push(NamedTuple):
    """What one call pushes."""

    ids: Sequence[str]
    #: name and data of each job, the data as Python objects
    jobs: Sequence[tuple[str, object]]
    terms: Terms


class Diversion(Protocol):
    """Takes the place of the stores. Threads may share it."""

    #: what put it in force, for an error
    what: str

    def settings(self, settings: ConnectionSettings) -> ConnectionSettings:
        """The settings to push by, in place of these."""

    def stores(self, settings: ConnectionSettings) -> Stores:
        """The stores to use, in place of those that the settings name."""

    def pushes(self, settings: ConnectionSettings, pushes: PushStore, push: Push) -> PushStore:
        """Where to push this, in place of ``pushes``."""

    def flow_pushes(self, settings: ConnectionSettings, pushes: PushStore, members: Sequence[Push]) -> PushStore:
        """Where to write a flow of these members, in place of ``pushes``."""

    def run(self) -> None:
        """Called at the end of a push, which raises what this raises."""


#: the one in force in this process; ``None`` outside of such tests
active: Diversion | None = None


def divert(to: Diversion | None) -> None:
    """Put a diversion in force for all queues of this process, even existing ones; ``None`` ends it."""
    global active
    active = to
