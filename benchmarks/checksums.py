"""What checksums and writing through to the disk cost, as ratios in one run: `python -m benchmarks.checksums`.

A packed log of generated events is opened with its checksums and without; a model folder is loaded with its hashes and
without; a file is written through to the disk and not. The least of some turns counts.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl

from unveil import checksums, files
from unveil.data.interactions import Sequences
from unveil.data.packed import PackedLog, pack
from unveil.serving.recommender import Recommender


def least(work: Callable[[], object], turns: int) -> float:
    """Seconds of the fastest turn."""
    found = []
    for _ in range(turns):
        checksums._known.cache_clear()
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def opened(folder: Path) -> Sequences:
    return PackedLog.open(folder).histories()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--model", type=Path, help="folder of a trained model")
    how = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        folder, parts = Path(place) / "packed", Path(place) / "log.parquet"
        users, items = how.events // 50, 20_000
        columns = {"user_id": users, "item_id": items, "timestamp": 10**9}
        pl.DataFrame({name: rng.integers(0, most, how.events) for name, most in columns.items()}).write_parquet(parts)
        begun = time.perf_counter()
        pack([parts], folder)
        packing, size = time.perf_counter() - begun, sum(each.stat().st_size for each in folder.iterdir())
        checked = least(lambda: opened(folder), how.turns)
        with patch.object(checksums, "crc32", lambda path: ""), patch("unveil.data.packed.log.check_file"):
            plain = least(lambda: opened(folder), how.turns)
        figures = {"check_gb_per_s": size / (checked - plain) / 1e9, "check_vs_pack": (checked - plain) / packing}
        print(f"{how.events:,} events, {size / 1e6:,.0f} MB: checked in {checked - plain:.2f} s")
        path, content = Path(place) / "checkpoint", rng.bytes(20_000_000)
        through = least(lambda: files.write_whole(path, content), how.turns)
        with patch.object(files, "sync"):
            cached = least(lambda: files.write_whole(path, content), how.turns)
        figures["write_vs_unsynced"] = through / cached
        print(f"a file of 20 MB: written through to the disk in {through * 1e3:.0f} ms")
    if how.model is not None:
        with_hashes = least(lambda: Recommender.load(how.model), how.turns)
        with patch("unveil.serving.model_files.check_file"):
            figures["load_vs_unchecked"] = with_hashes / least(lambda: Recommender.load(how.model), how.turns)
        print(f"model: loaded in {with_hashes * 1e3:.0f} ms")
    print(" ".join(f"{name}={value:.3g}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
