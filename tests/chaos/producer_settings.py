"""A producer's settings, passed as JSON on its command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """A part of the plan; rates are a second."""

    url: str
    #: of the failed jobs and the control keys; empty: the same
    other: str
    prefix: str
    seed: int
    bulk: int
    backlog: int
    rate: float
    naps: float
    nap: tuple[float, float]
    long: float
    delayed: float
    hostile: float
    steps: float
    graphs: float
    limits: float
    lanes: int
    beside: float
    deadly: float
    lane_modes: list[str]
    refused: float
    modes: list[str]
    step_modes: list[str]
    grace: float
    timeout: float = 0.3
    #: the name of the stream of what is no tiny job
    stream: str = "h"
    most: int = 0
    #: seconds that some of the tiny jobs take, in whose midst a worker then is most of the time
    longer: float = 0.0
    #: whether to push a payload that comes into quarantine
    alerts: bool = False
