"""`python -m memeval`, the same as the command `memeval`."""

from __future__ import annotations

from memeval.cli import main

if __name__ == "__main__":
    main()
