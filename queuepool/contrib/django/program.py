"""``queuepool VERB`` with the settings of a Django project, in a process that has none of its code.

``manage.py`` has imported the whole project when it comes to its command: a master in that process would hand this code
to all of its workers, and a restart would not run what is new. So it writes the settings into a file without a name,
which no other process can open, and becomes this program: ``program.py DESCRIPTOR VERB …``.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Take the settings, then run the verb."""
    with open(int(sys.argv.pop(1)), encoding="utf-8") as file:
        sys.path[:] = json.loads(file.readline())  # first: ours is found there
        text = file.read()

    from queuepool.cli import main as run
    from queuepool.config import application
    from queuepool.contrib.django.handover import read

    found = read(text)
    application.provide(lambda: found)
    run()


if __name__ == "__main__":
    main()
