"""Logs larger than memory: Parquet files packed once, then used like any other log with its pages on the disk."""

from unveil.data.packed.folder import MANIFEST
from unveil.data.packed.log import PackedLog
from unveil.data.packed.pack import pack

__all__ = ["MANIFEST", "PackedLog", "pack"]
