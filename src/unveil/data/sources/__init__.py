"""Readers: any log in, exactly. One file a format (in `formats`), found by content or named."""

from unveil.data.sources.options import ReadOptions
from unveil.data.sources.reading import read
from unveil.data.sources.registry import known_formats

__all__ = ["ReadOptions", "known_formats", "read"]
