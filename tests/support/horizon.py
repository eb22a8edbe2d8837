"""What Laravel Horizon reads: by its own code, or by the same commands where its source is not there.

Source: Horizon 5.29.1, Repositories/ and Http/Controllers/. Each method here has the command and the keys of the one
that it names.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.support.laravel_peer import LIMIT

SCRIPT = Path(__file__).parents[1] / "laravel" / "horizon.php"
#: where the source of laravel/horizon is, as composer or git has put it there
SOURCE = "QP_HORIZON"
_JOB = ("id", "connection", "queue", "name", "status", "payload", "exception", "completed_at", "retried_by")


@dataclass(frozen=True)
class Horizon:
    """The real one: its controllers, in PHP."""

    socket: str
    prefix: str
    own: str

    def dashboard(self) -> Mapping[str, Any]:
        """What its API answers, by name."""
        return dict(self.run("dashboard"))

    def run(self, *words: str) -> Any:
        env = {**os.environ, "QP_SOCKET": self.socket, "QP_PREFIX": self.prefix, "QP_HORIZON_PREFIX": self.own}
        command = ["php", str(SCRIPT), *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert (0, "") == (done.returncode, done.stderr), f"{done.stdout}{done.stderr}"
        return json.loads(done.stdout)


@dataclass(frozen=True)
class Recorded:
    """Its reads, as they are written down here."""

    server: Any
    own: str

    def dashboard(self) -> Mapping[str, Any]:
        supervisors = self._living("supervisor", 29, ("name", "master", "status", "processes", "options"))
        masters = self._living("master", 14, ("name", "environment", "status", "supervisors"))
        queues = self._measured("queue")
        shown = {one["name"]: one | {"supervisors": _of(one["name"], supervisors)} for one in masters}
        return {
            "stats": {
                "processes": sum(sum(one["processes"].values()) for one in supervisors),
                "jobsPerMinute": sum(int(self._get(f"queue:{one}", "throughput")) for one in queues),
                "status": _status(masters),
            },
            "masters": shown,
            "jobs": self._measured("job"),
            "queues": queues,
            **{kind: self._jobs(f"{kind}_jobs") for kind in ("pending", "completed", "failed")},
        }

    def _living(self, kind: str, seconds: int, fields: tuple[str, ...]) -> list[dict[str, Any]]:
        """Redis[Master]SupervisorRepository::names, ::get."""
        since = int(time.time()) - seconds
        names = self.server.zrevrangebyscore(f"{self.own}{kind}s", "+inf", since)
        rows = [self.server.hmget(f"{self.own}{kind}:{name.decode()}", fields) for name in names]
        found = [dict(zip(fields, (value.decode() for value in row), strict=True)) for row in rows if row[0]]
        in_json = ("processes", "options", "supervisors")
        return [{key: json.loads(one[key]) if key in in_json else one[key] for key in one} for one in found]

    def _measured(self, kind: str) -> list[str]:
        """RedisMetricsRepository::measuredJobs, ::measuredQueues."""
        names = [name.decode() for name in self.server.smembers(f"{self.own}measured_{kind}s")]
        return sorted(name.partition(f"{kind}:")[2] or name for name in names)

    def _get(self, key: str, field: str) -> str:
        return (self.server.hget(f"{self.own}{key}", field) or b"0").decode()

    def _jobs(self, key: str) -> dict[str, Any]:
        """RedisJobRepository::getJobsByType, ::countJobsByType."""
        ids = self.server.zrange(f"{self.own}{key}", 0, 49)
        rows = [self.server.hmget(f"{self.own}{one.decode()}", _JOB) for one in ids]
        found = [dict(zip(_JOB, (value and value.decode() for value in row), strict=True)) for row in rows if row[0]]
        jobs = [one | {"payload": json.loads(one["payload"])} for one in found]
        minutes = 10080 if "failed" in key else 60
        return {"jobs": jobs, "total": self.server.zcount(f"{self.own}{key}", "-inf", 60 * minutes - int(time.time()))}


def recorded(socket: str, own: str) -> Recorded:
    return Recorded(redis.Redis(unix_socket_path=socket), own)


def _of(master: str, supervisors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """MasterSupervisorController::index."""
    return [one for one in supervisors if one["master"] == master]


def _status(masters: list[dict[str, Any]]) -> str:
    """DashboardStatsController::currentStatus."""
    if not masters:
        return "inactive"
    return "paused" if all(one["status"] == "paused" for one in masters) else "running"
