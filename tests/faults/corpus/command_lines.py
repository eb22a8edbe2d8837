"""Command lines that are refused with exit code 2, and the one line that each prints."""

from __future__ import annotations

SECRET = "s3cr3t"
#: the kernel takes no longer argument than this
LONG = "a" * (128 * 1024 - 1)

Words = list[str | bytes]

REFUSED: dict[str, tuple[Words, str]] = {
    "B089 command": (["strat"], "queuepool: there is no 'strat'; did you mean 'start'?"),
    "B089 command of a group": (["quarantine", "lst"], "queuepool quarantine: there is no 'lst'; did you mean 'list'?"),
    "B089 verb of another queue": (
        ["purge"],
        "queuepool: there is no 'purge'; here that is 'clear'; see queuepool --help",
    ),
    "B089 verb of Laravel": (["queue:work"], "there is no 'queue:work'; here that is 'work'; see"),
    "B089 option of another queue": (
        ["start", "--processes", "3"],
        "no '--processes'; did you mean '--workers'? See",
    ),
    "B089 option": (["start", "--workrs", "3"], "'--workers'"),
    "B089 key of a connection": (
        ["start", "--retry-after", "10"],
        "--retry-after is not a flag but a key of [connection]: set it there, or as QUEUEPOOL_CONNECTION_RETRY_AFTER",
    ),
    "B089 key of a pool": (
        ["start", "--connection", "x"],
        "start: --connection is not a flag but a key of [pool]: set it there, or as QUEUEPOOL_POOL_CONNECTION;",
    ),
    "B089 option of another verb": (["completion", "--url", "x"], "queuepool completion: there is no '--url'; see"),
    "B089 option like one": (["start", "--worker", "3"], "there is no '--worker'; did you mean '--workers'? See"),
    "B089 option like none": (["work", "--grace", "3"], "queuepool work: there is no '--grace'; see queuepool work"),
    "B089 option like three": (
        ["start", "--max", "3"],
        "there is no '--max'; did you mean '--max-workers' or '--max-crashes' or '--max-jobs'? See",
    ),
    "B090 without a value": (
        ["stop", "--wait"],
        "queuepool stop: --wait needs SECONDS, as in --wait 10; see queuepool stop --help",
    ),
    "B090 without a text": (["start", "--url"], "queuepool start: --url needs URL; see queuepool start --help"),
    "B090 switch with a value": (["start", "--json=3"], "queuepool start: --json takes no value; see queuepool start"),
    "B090 switch of a group with a value": (
        ["quarantine", "list", "--json=3"],
        "queuepool quarantine list: --json takes no value; see queuepool quarantine list --help",
    ),
    "B090 no argument of a few": (["completion"], "'{bash|zsh|fish}'. Choose from: bash, zsh, fish; see queuepool c"),
    "B090 empty": (["start", "--timeout="], "'--timeout': '' is not a time"),
    "B090 below zero": (["start", "--timeout=-5"], "'--timeout': '-5' is not a time"),
    "B090 twice": (["start", "--timeout", "5", "--timeout", "6"], "'--timeout': was given twice"),
    "B093 delay below zero": (["push", "do", "--delay", "-1"], "'--delay': '-1' is not a time"),
    "B093 delay of ages": (["push", "do", "--delay", "1e20"], "'--delay': '1e20' is not a time"),
    # Seconds alone are taken, so there is no moment that might have passed.
    "B093 delay in words": (["push", "do", "--delay", "tomorrow"], "'--delay': 'tomorrow' is not a time"),
    # There is no `kill`: workers are the master's to kill, jobs end by their timeouts.
    "B095 kill": (["kill", "1"], "there is no 'kill'"),
    "B095 kill all": (["kill", "all"], "there is no 'kill'"),
    "B096 retry of nothing": (["retry"], "name failed jobs by ID, or give all or --queue"),
    "B096 retry of an id and a queue": (["retry", "some-id", "--queue", "high"], "name failed jobs by ID, or give all"),
    "B100 argument that is no text": (["start", "--queue", b"\xff"], "'--queue': contains a line break or another"),
    "B100 line break": (["start", "--queue", "a\nb"], "'--queue': contains a line break"),
    "B100 line break in a name": (["push", "a\nb"], "'NAME': contains a line break"),
    "B100 escape sequence": (["size", "\x1b[31m"], "contains a line break or another character"),
    "B100 verb of 128 KiB": ([LONG], "there is no 'aaaa"),
    "B100 queue of 128 KiB": (["size", LONG], "is not a queue name"),
    "B100 option of 128 KiB": (["start", "--" + LONG[2:]], "there is no '--aaa"),
    "B100 job of no name": (["push", ""], "is not a job name"),
    "B101 configuration twice": (["start", "-c", "a", "-c", "b"], "'--config': was given twice"),
    "B101 configuration from standard input": (["start", "-c", "-"], "'--config': must be a file"),
    "B101 configuration from a url": (["start", "-c", f"redis://:{SECRET}@h"], "'--config': must be a file"),
    "B074 url": (["start", "--url", f"redis://:{SECRET}@@h"], "'--url': has one @ too many"),
    "B066 workers": (["scale", "many"], "'many' is not a whole number"),
    "B172 bounds of nothing": (["scale", "0..4"], "'0..4' is not a pair of bounds"),
    "B172 bounds the wrong way": (["scale", "16..2"], "'16..2' is not a pair of bounds"),
    "B172 half of the bounds": (["scale", "2.."], "'2..' is not a whole number"),
    "B172 bounds for a time": (["scale", "2..16", "--for", "1h"], "--for goes with a number of workers"),
    "B172 for no time": (["scale", "2", "--for", "0"], "'--for': must be above 0 seconds"),
    "B172 two numbers": (["scale", "-2", "-4"], "unexpected extra argument"),
    "B172 of a lone worker": (["work", "--max-workers", "4"], "--max-workers"),
    "B172 of a development run": (["listen", "--min-workers", "4"], "--min-workers"),
    "peek at too many": (
        ["check", "--peek", "10001"],
        "'--peek': '10001' is more than 10000, the most that can be read",
    ),
    "drop of nothing": (["quarantine", "drop", "high"], "name one payload by ID, or give --all"),
}
