"""``python -m queuepool`` runs the console script."""

from __future__ import annotations

from queuepool.cli import main

if __name__ == "__main__":
    main()
