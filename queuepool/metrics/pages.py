"""The pages that a pool's web process serves, by their exact paths. They are made from its board alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus

from queuepool import __version__
from queuepool.board.board import Board
from queuepool.board.counts import counts_of
from queuepool.board.health import health_of
from queuepool.board.status import overview
from queuepool.metrics import health
from queuepool.metrics.exposition import TYPE, exposition
from queuepool.metrics.facts import PoolFacts, read
from queuepool.metrics.http import Response
from queuepool.metrics.samples import of_pool, of_program


class Pages:
    """The pages of one pool."""

    def __init__(self, pool: str, connection: str, board: Board) -> None:
        self._pool, self._connection, self._board = pool, connection, board
        self._pages: Mapping[str, Callable[[], Response]] = {
            "/metrics": self._metrics,
            "/livez": lambda: self._health(health.not_live),
            "/readyz": lambda: self._health(health.not_ready),
            "/startedz": lambda: self._health(health.not_started),
            "/api/v1/status": self._status,
        }

    def answer(self, path: str) -> Response:
        """The page with exactly this path, else 404."""
        page = self._pages.get(path)
        return page() if page else Response.plain(HTTPStatus.NOT_FOUND)

    def _facts(self) -> PoolFacts:
        return read(self._pool, self._connection, self._board)

    def _metrics(self) -> Response:
        text = exposition([*of_program(), *of_pool(self._facts(), counts_of(self._board))])
        return Response(HTTPStatus.OK, text, TYPE)

    def _health(self, problem_of: Callable[[PoolFacts], str]) -> Response:
        problem = problem_of(self._facts())
        return Response.plain(HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK, problem)

    def _status(self) -> Response:
        found = overview(self._pool, self._board)
        facts = {"version": __version__, **found.to_json(), **health_of(found).to_json()}
        return Response(HTTPStatus.OK, f"{json.dumps(facts)}\n".encode(), "application/json")
