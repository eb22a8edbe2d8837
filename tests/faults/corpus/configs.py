"""Sections of a configuration that must be refused, all in one file, and some that must be accepted.

``{name}`` stands for a name of the section's own. Where the program differs from the catalogue, it says so beside the
entry.
"""

from __future__ import annotations


def pool(*lines: str) -> str:
    return "\n".join(["[pool:{name}]", *lines])


def connection(*lines: str) -> str:
    return "\n".join(["[connection:{name}]", *lines])


def schedule(*lines: str, job: str = "job = app.report") -> str:
    return "\n".join(["[schedule:{name}]", *([job] if job else []), *lines])


def each(
    entry: str, key: str, values: tuple[str, ...], words: str, section: str = "pool"
) -> dict[str, tuple[str, str]]:
    """A section for each value of a key."""
    make = {"pool": pool, "connection": connection, "schedule": schedule}[section]
    return {f"{entry} {key} {value[:40]!a}": (make(f"{key} = {value}"), words) for value in values}


SHORT = "connection = {name}\n[connection:{name}]\nrenew = no\nretry_after = 90"
SECRET = "s3cr3t"

#: by entry: the block, and what each complaint says, separated by |
REFUSED: dict[str, tuple[str, str]] = {
    # With `renew` (the default) leases are renewed, and a timeout may outlast one; without it the rule holds.
    "B065 timeout not below the lease": (pool("timeout = 90", SHORT), "not below retry_after (90)"),
    "B065 timeout within the grace of the lease": (pool("timeout = 89", "grace = 2", SHORT), "at most 87"),
    "B065 no timeout without renewal": (pool("timeout = 0", SHORT), "jobs would run twice"),
    # `auto` is one worker for each CPU.
    **each("B066", "workers", ("0", "-1", "1.5", "1e9", "1000000000", "1025", "４", "Auto", ""), "from 1 to 1024"),
    **each("B067", "timeout", ("1_000", "1m30", "inf", "nan", "1e3", "-1", "", "６０", "60 s", "1w"), "is not a time"),
    "B067 a timeout of eleven years": (pool("timeout = 96360h"), "longer than ten years"),
    "B068 unknown key": (pool("worker = 4"), "did you mean 'workers'?"),
    "B068 wrong case": (pool("Workers = 4"), "did you mean 'workers'?"),
    "B068 key of the other section": (pool("url = redis://h"), "it belongs in [connection]"),
    "B068 unknown section": ("[pol:{name}]", "did you mean [pool:"),
    "B068 section in the wrong case": ("[Pool:{name}]", "did you mean [pool:"),
    "B069 key twice": (pool("tries = 1", "tries = 2"), "is already in line"),
    "B069 section twice": (pool() + "\n" + pool(), "is already in line"),
    "B071 a value over two lines": (pool("modules = a,", "  b"), "nothing between two commas|is not `key = value`"),
    "B071 a tab within a value": (pool("queue = a,\tb"), "contains a tab"),
    "B071 an inline comment": (pool("workers = 4 ; four"), "inline comments are not supported"),
    # There is no `include`: one file is what there is to look at.
    "B073 include": (pool("include = other.ini"), "unknown key"),
    **each(
        "B074", "url",
        (f"redis://:p@{SECRET}@h", f"redis://:{SECRET}@s@h:1/0", f"redis://:{SECRET}/x@h"),
        "in a password write @ / ?", "connection",
    ),
    **each(
        "B074", "url",
        (f":{SECRET}@h", f"//:{SECRET}@h", f"http://:{SECRET}@h", "localhost:6379", "", f"REDIS://:{SECRET}@h"),
        "must begin with redis://", "connection",
    ),
    **each(
        "B074", "url",
        (f"redis://:{SECRET}@h:0", f"redis://:{SECRET}@h:70000", f"redis://:{SECRET}@h:abc", f"redis://:{SECRET}@::1:6379",
         f"redis://:{SECRET}@", f"redis://:{SECRET}"),
        "has no host, or a port", "connection",
    ),
    **each(
        "B074", "url", (f"redis://:{SECRET}@h/-1", f"redis://:{SECRET}@h/100000", f"redis://:{SECRET}@h/0/x"),
        "database is not a number", "connection",
    ),
    "B074 url with a query": (connection(f"url = redis://:{SECRET}@h?junk=1"), "takes none"),
    "B076 socket path of 108 bytes": (connection("url = unix:///" + "x" * 107), "is not a path of 2 to 107 bytes"),
    **each("B077", "queue", ("a b", "*", "é", "e\u0301", "q" * 10_000, "a/b"), "is not a queue name"),
    **each("B077", "queue", ("a,,b", "a,"), "nothing between two commas"),
    "B077 queue empty": (pool("queue ="), "must not be empty"),
    **each("B077", "queue", ("x:reserved", "x:delayed", "x:notify"), "a key of another queue"),
    **each("B077", "queue", ("{}", "{a}{b}", "{a"), "braces are for one hash tag"),
    "B078 same queue twice": (pool("queue = a,b,a"), "is given twice"),
    "B078 same queue twice, weighted": (pool("queue = a*6,b*2,a*1"), "'a' is given twice"),
    **each("B077", "queue", ("a*0", "a*-1", "a*1000000", "a*1.5", "a*", "a*6*2", "a*x"), "weight is a whole number"),
    "B077 queues with and without a weight": (pool("queue = a*6,b"), "'b' has no weight, but others have"),
    # The program never changes its user: that is for systemd's User=, and so there are no such keys.
    "B079 user": (pool("user = nosuch"), "unknown key"),
    "B079 group": (pool("group = nosuch"), "unknown key"),
    # 0 = no limit.
    **each("B081", "memory", ("1", "15.9", "10485760"), "below any worker's baseline (16 MB)"),
    **each("B081", "memory", ("10T", "50%", "128K", "-1", ""), "is not a size"),
    "B081 memory_hard below memory": (pool("memory = 256", "memory_hard = 128"), "is below memory (256)"),
    # 0 = off; the jitter is a tenth and no setting.
    **each("B082", "max_jobs", ("-1", "1.5", "many"), "is not a whole number"),
    **each("B082", "max_time", ("-1", "x"), "is not a time"),
    "B082 jitter": (pool("jitter = 200%"), "unknown key"),
    **each("B171", "concurrency", ("0", "-1", "1001", "many", "1.5", "auto", "１", ""), "not a number from 1 to 1000"),
    "B171 with preload": (pool("concurrency = 9", "preload = yes"), "preload: contradicts concurrency (9)"),
    "B171 with rest": (pool("rest = 0.1", "concurrency = 9"), "no moment between two jobs"),
    "B171 with reserve_ahead": (pool("reserve_ahead = 2", "concurrency = 9"), "starts at once"),
    "B171 no such loop": (pool("loop = gevent"), "it can be: asyncio, uvloop"),
    "B171 a loop for one job": (pool("loop = uvloop"), "is for workers with a concurrency above 1"),
    **each("B172", "max_workers", ("0", "-1", "1025", "auto", "2..16", "１"), "not a number from 1 to 1024"),
    **each("B172", "min_workers", ("0", "-1", "1.5"), "not a number from 1 to 1024"),
    "B172 more than the most": (pool("min_workers = 8", "max_workers = 6"), "min_workers: 8 is above max_workers (6)"),
    "B172 more than at first": (pool("min_workers = 8", "workers = 2"), "min_workers: 8 is above workers (2)"),
    "B172 fewer than at first": (pool("max_workers = 3"), "max_workers: 3 is below workers (4)"),
    "B172 with auto": (pool("workers = auto", "max_workers = 9"), "max_workers: contradicts workers = auto"),
    "B172 without metrics": (pool("max_workers = 9", "metrics = no"), "max_workers: needs metrics = yes"),
    "B190 without metrics": (pool("horizon = laravel_horizon:", "metrics = no"), "horizon: needs metrics = yes"),
    **each("B172", "target_wait", ("-1", "x", ""), "is not a time"),
    "B172 target_wait 0": (pool("target_wait = 0"), "must be above 0 seconds"),
    "B172 scale_down_after 0": (pool("scale_down_after = 0"), "must be above 0 seconds"),
    **each("B172", "memory_reserve", ("100%", "-1%", "ten%", "%"), "is not a share of the memory"),
    **each("B172", "memory_reserve", ("x", "-1", ""), "is not a size"),
    **each("B116", "soft_timeout", ("-1", "x", ""), "is not a time"),
    "B116 soft_timeout above timeout": (pool("timeout = 30", "soft_timeout = 1m"), "60 is not below timeout (30)"),
    "B116 soft_timeout as timeout": (pool("soft_timeout = 60"), "60 is not below timeout (60)"),
    "B069 schedule twice": (schedule("every = 1s") + "\n[schedule:{name}]", "is already in line"),
    **each("B127", "cron", ("0 0 30 2 *", "0 0 31 4,6 *"), "never comes due: no such day", "schedule"),
    **each("B127", "cron", ("* * * *", "@daily", "0 3 * * * *"), "is not a cron expression of five", "schedule"),
    **each("B127", "cron", ("61 * * * *", "0 x * * *", "*/0 * * * *"), "is not a cron expression: bad", "schedule"),
    "B128 unknown time zone": (schedule("cron = 0 3 * * *", "timezone = Mars/Olympus"), "is not a time zone like"),
    "B128 time zone in the wrong case": (schedule("cron = 0 3 * * *", "timezone = utc"), "did you mean UTC?"),
    "B129 no JSON": (schedule("every = 1s", "data = {kind: daily}"), "is not JSON (Expecting property name"),
    "B129 NaN": (schedule("every = 1s", 'data = {"a": NaN}'), "NaN is not a number in JSON"),
    "B129 an object without properties": (
        schedule("every = 1s", "object = App\\X", "data = [1]", job=""), "is not a JSON object",
    ),
    **each("B131", "every", ("0", "1.5", "0.5s"), "is not a number of whole seconds from 1 up", "schedule"),
    **each("B131", "every", ("-1", "daily"), "is not a time", "schedule"),
    "B131 late": (schedule("every = 1s", "late = -1"), "is not a time"),
    "B131 cron and every": (schedule("every = 1s", "cron = 0 3 * * *"), "contradicts cron: give only one of them"),
    "B131 neither cron nor every": (schedule(), "has neither cron nor every"),
    "B131 job and object": (schedule("every = 1s", "object = App\\X"), "contradicts job: give only one of them"),
    "B131 neither job nor object": (schedule("every = 1s", job=""), "has neither job nor object"),
    "B131 no name of a job": (schedule("every = 1s", "job = send mail", job=""), "is not the name of a job"),
    "B131 no connection": (schedule("every = 1s", "connection = nosuch"), "there is no connection 'nosuch'"),
}  # fmt: skip

ACCEPTED: dict[str, str] = {
    "B066 workers auto": pool("workers = auto"),
    "B067 spaces around a time": pool("timeout =   60  "),
    "B190 not shown": pool("horizon =", "metrics = no"),
    "B172 both": pool("workers = 2", "min_workers = 1", "max_workers = 1024", "memory_reserve = 0.5%"),
    "B172 the least": pool("min_workers = 1", "max_workers =", "memory_reserve = 0", "scale_down_after = 0.1"),
    "B172 no range": pool("workers = 3", "min_workers = 3", "max_workers = 3"),
    "B067 units": pool("timeout = 60s", "grace = 0.5", "max_time = 2m"),
    "B071 tabs around a value": pool("workers\t=\t2\t"),
    "B077 names": pool("queue = {tag}:x,a-b_c.d,:reserved:x," + "q" * 200),
    # Without a warning: they may be meant.
    "B078 a thousand queues": pool("queue = " + ",".join(map(str, range(1000)))),
    **{f"B171 concurrency {number}": pool(f"concurrency = {number}") for number in (2, 1000)},
    "B171 one job at a time": pool("concurrency = 1", "loop = asyncio", "preload = yes", "rest = 1"),
    "B081 memory units": pool("memory = 128MB", "memory_hard = 1G"),
    "B081 no memory limit": pool("memory = 0"),
    "B082 no limits": pool("max_jobs = 0", "max_time = 0"),
    "B116 no timeout": pool("timeout = 0", "soft_timeout = 1h"),
}

PASSWORDS = ("a%%b", "a#b", "a;b", "a ;b", "a #b", "a=b", "a\"b'c", "a b", "pässwörd", "[x]", "%40%2F%3F")

#: by entry: a file's bytes, and the complaint; none where it is to be taken
FILES: dict[str, tuple[bytes, str]] = {
    "B071 BOM": (b"\xef\xbb\xbf[pool]\nworkers = 2\n", ""),
    "B071 CRLF": (b"[pool]\r\nworkers = 2\r\n", ""),
    "B071 no final newline": (b"[pool]\nworkers = 2", ""),
    "B071 NUL": (b"[pool]\nworkers = \0\n", "pool.ini:2: contains a NUL byte"),
    "B071 invalid UTF-8": (b"[pool]\n\n; caf\xe9\n", "pool.ini:3: is not UTF-8"),
    "B071 UTF-16": ("[pool]\n".encode("utf-16"), "pool.ini:1: contains a NUL byte"),
    "B071 empty": (b"", "pool.ini: no [pool] section"),
    "B071 more than a megabyte": (b"[pool]\n" + b"; filler\n" * 120_000, "pool.ini: is larger than 1 MB"),
}
