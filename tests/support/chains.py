"""Steps of Laravel's chains and batches: their handlers here, and how both programs are run by turns."""

from __future__ import annotations

from queuepool.config.urls import kind_of
from tests.support.laravel_peer import Peer
from tests.support.pools import Site
from tests.support.redis_server import PREFIX

STEP, UNIQUE, UNTIL = "App\\Jobs\\Step", "App\\Jobs\\UniqueStep", "App\\Jobs\\UniqueUntilStep"
OUTCOMES = "outcomes = outcomes"
#: how Laravel's locks are found: its cache prefix, and in Redis that of all keys
KEYS = {"redis": f"{PREFIX}laravel_cache:", "sql": "laravel_cache"}

STEPS = f"""
from tests.support.poolapp import note
from queuepool import current, job

def step(number, fails=False):
    note(event="step", number=number, queue=current().queue, attempt=current().attempts)
    if fails:
        raise RuntimeError("told to fail")

job({STEP!r})(step)
job({UNIQUE!r}, unique_id=lambda number, fails=False: number)(step)
job({UNTIL!r}, unique_id=lambda number, fails=False: number, unique_until="start")(step)
"""


def numbers(site: Site) -> list[int]:
    return [line["number"] for line in site.trail(event="step")]


def restart_key(site: Site) -> str:
    """The restart key, from whose prefix a connection knows where Laravel's locks are."""
    return f"{KEYS[kind_of(site.connection.url)]}illuminate:queue:restart"


def settings(site: Site, *more: str) -> str:
    """A configuration file."""
    return "\n".join(["[connection]", f"restart_key = {restart_key(site)}", *more])


def run_steps(site: Site, *config: str) -> None:
    """Run the steps that wait, in one worker."""
    (site.path / "pool.ini").write_text(settings(site, *config))
    site.work("-c", str(site.path / "pool.ini"), "--queue", "steps", "--modules", "steps")


def go_on(peer: Peer) -> None:
    """Let Laravel's worker run the outcomes that wait. Not beside ours: on SQLite, its pop fails at a locked file."""
    peer.run("work", queue="outcomes", stop_when_empty=True)
