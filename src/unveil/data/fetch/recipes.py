"""From the files of a data set as published to those that this package reads."""

from pathlib import Path

import polars as pl

from unveil.errors import UnveilError
from unveil.files import explained

_LIKED = 2.0  # watch ratio from which a view is an interaction, and an observed view a like


def kuairec(folder: Path) -> None:
    """A log of the big matrix, and a test of the small one, in which every user saw (all but) every video.

    log.csv: views of a ratio ≥ 2 in time order, without the small matrix's users × videos; observed_likes.csv: views
    of a ratio ≥ 2 of the small matrix; observed_items.txt: its videos.
    """
    names = {"user_id": pl.Int64, "video_id": pl.Int64, "timestamp": pl.Float64, "watch_ratio": pl.Float64}
    try:
        big, small = (
            pl.scan_csv(folder / "data" / f"{size}_matrix.csv", schema_overrides=names).select(*names)
            for size in ("big", "small")
        )
        observed = small.select(pl.exclude("timestamp")).collect()
        user, video = (observed[name].unique().sort() for name in ("user_id", "video_id"))
        inside = pl.col("user_id").is_in(user.implode()) & pl.col("video_id").is_in(video.implode())
        log = big.filter(pl.col("watch_ratio") >= _LIKED, ~inside).drop_nulls().collect()
    except (pl.exceptions.PolarsError, FileNotFoundError) as error:
        expected = f"data/big_matrix.csv and data/small_matrix.csv with {', '.join(names)}"
        raise UnveilError("not the files of KuaiRec", found=str(error).splitlines()[0], expected=expected) from None
    with explained(folder):
        log = log.sort("timestamp", maintain_order=True)
        log.select("user_id", item_id="video_id", timestamp="timestamp").write_csv(folder / "log.csv")
        likes = observed.filter(pl.col("watch_ratio") >= _LIKED)
        likes.select("user_id", item_id="video_id").write_csv(folder / "observed_likes.csv")
        (folder / "observed_items.txt").write_text("".join(f"{each}\n" for each in video))


RECIPES = {"kuairec": kuairec}
