"""Peak memory of the running process."""

import resource
import sys


def peak_mib() -> float:
    """The largest resident set so far, in MiB (Linux counts in KiB, macOS in bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / (1 << 10)
