"""CPU seconds of `import memeval` and `memeval --help`, the best of several starts. The aim is 0.3 s.

python tests/benchmarks/bench_startup.py
"""

from __future__ import annotations

import resource
import subprocess
import sys

STARTS = 7


def cpu_seconds(*args: str) -> float:
    """User and system time of the quickest of several fresh processes: others only slow a start down."""
    best = float("inf")
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *args], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return best


if __name__ == "__main__":
    nothing = cpu_seconds("-c", "pass")
    print(f"python alone    {nothing:.3f} s")
    print(f"import memeval  {cpu_seconds('-c', 'import memeval'):.3f} s")
    print(f"memeval --help  {cpu_seconds('-m', 'memeval', '--help'):.3f} s")
