"""The jobs that a test's process knows."""

from __future__ import annotations

from queuepool.errors import UnknownJob
from queuepool.jobs.registry import REGISTRY, Handler, Registry


class TestsRegistry(Registry):
    """Those of ``REGISTRY``, and what a framework registers in a pool at its boot, such as Django's tasks."""

    def find(self, name: str) -> Handler:
        try:
            return REGISTRY.find(name)
        except UnknownJob:
            for register in REGISTRY.sources:
                register()
            return REGISTRY.find(name)
