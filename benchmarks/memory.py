"""Memory of the running process."""

import resource
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_mib() -> float:
    """The largest resident set so far, in MiB (Linux counts in KiB, macOS in bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / (1 << 10)


def own_peak_mib() -> float:
    """Where Linux tells it, the peak of this program alone: getrusage counts what the parent held at the fork too."""
    return _said("VmHWM") if _STATUS.exists() else peak_mib()


def reset_peak() -> float:
    """Begin to look for a new peak where Linux can, and give what is held now."""
    if not _STATUS.exists():
        return peak_mib()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _said("VmRSS")


def _said(name: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024
