"""What one run has, and how long its faults last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``jobs`` are pushed evenly over the rounds, each of which has every fault once."""

    hosts: int = 4
    workers: int = 1
    jobs: int = 2_000
    rounds: int = 1
    seed: int = 1
    #: seconds of a lease, and by which two clocks are wrong: one ahead, one behind
    retry_after: float = 6.0
    clock: int = 3_600

    @property
    def short(self) -> float:
        """Seconds of a fault that ends before the leases do."""
        return 0.5 * self.retry_after

    @property
    def long(self) -> float:
        """Seconds in which leases that nobody renews have ended, and their jobs have begun elsewhere."""
        return 1.5 * self.retry_after

    @property
    def part(self) -> int:
        """Hosts that a fault of the network hits."""
        return max(1, self.hosts // 4)

    @property
    def few(self) -> int:
        """Hosts that are lost at once."""
        return max(1, self.hosts // 10)

    @property
    def seconds_of_round(self) -> float:
        """What ``play_round`` rests."""
        return 7 * self.short + 3 * self.long
