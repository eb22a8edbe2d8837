"""Queues that registered jobs name and that no pool serves are reported."""

from __future__ import annotations

from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import Handler, Registry, in_threads, unserved


def registry(**queues: str | None) -> Registry:
    """Jobs by name, with their queues."""
    made = Registry()
    for name, queue in queues.items():
        made.add(Handler(name, lambda: None, Options(queue=queue)))  # type: ignore[arg-type]
    return made


def test_a_queue_that_is_served_is_not_told():
    assert [] == unserved(registry(mail="emails"), {"emails"}, ["emails"])


def test_each_other_queue_is_told_once_with_some_of_its_jobs():
    several = {f"mail_{letter}": "emails" for letter in "abcde"}
    [emails, images] = unserved(
        registry(**several, resize="images"), {"high", "default"}, ["high", "default"], " in [pool:web]"
    )

    assert "serves queue emails" in emails
    assert "(mail_a, mail_b, mail_c and 2 more); set queue = high,default,emails,images in [pool:web]" in emails
    assert "serves queue images" in images


def test_a_job_without_a_queue_of_its_own_goes_where_its_producer_says():
    assert [] == unserved(registry(laravels=None, ours="default"), {"high"}, ["high"])


def test_jobs_that_a_worker_of_many_runs_in_threads_are_told_once():
    made = registry(b=None, a=None)

    async def coroutine() -> None: ...

    made.add(Handler("c", coroutine, Options(), coroutine))
    [warning] = in_threads(made)

    assert warning.startswith("2 plain functions run in threads, beside coroutines (a, b): ")
    assert [] == in_threads(Registry())
