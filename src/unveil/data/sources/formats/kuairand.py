"""KuaiRand `log_*.csv`: what was shown, clicked or not, by which policy; times in ms."""

from dataclasses import replace

import polars as pl

from unveil.data.sources.content import Content
from unveil.data.sources.delimited import header_of, read_headed
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table

_MARKS = {"user_id", "video_id", "time_ms", "is_click"}


class KuaiRand:
    """Every row is an exposure."""

    name = "kuairand"
    summary = "KuaiRand log_*.csv: exposures with clicks, ms"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the names in the header."""
        return Likeness.CERTAIN if set(header_of(content, ",")) >= _MARKS else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """As any other CSV, and each row marked as exposed."""
        table = read_headed(content, ",", options.columns)
        if "exposed" in table.names:
            return table
        exposed = table.frame.with_columns(exposed=pl.lit(True))
        return replace(table, frame=exposed, names={**table.names, "exposed": "exposed"})


register(KuaiRand())
