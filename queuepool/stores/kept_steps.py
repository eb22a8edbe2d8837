"""The contract of kept steps: what the steps of a job have returned and how far its cursors are, until it is done.

They belong to the job's id, and so to all its attempts. Only the worker that holds the job's lease writes them. The
verb of ``stores.contract`` that ends the lease also carries out what its ``StepsEnd`` says, in the same step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from queuepool.payload.lease import Lease

#: seconds that all of a job are kept after one was written, or a lease ended; and for a delayed job, after its delay
STEPS_LAST = 30 * 86400.0


class KeptSteps(Protocol):
    """The kept steps in one store. Raises ``StoreDown`` and ``StoreError``."""

    def of_job(self, job_id: str) -> dict[str, bytes]:
        """What is kept of this job: JSON by the names of its steps, and by those of its cursors after ``CURSOR``."""

    def keep(self, lease: Lease, job_id: str, values: Mapping[str, bytes]) -> bool:
        """Keep these values, all or none; ``False`` if the lease was lost. It may be repeated."""

    def forget(self, job_id: str, name: str) -> bool:
        """Forget one of them; ``False`` if it was not kept."""
