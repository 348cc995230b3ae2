"""The log of RQ4, filtered as the paper's was: rare items out, then short users; nothing where that was done before."""

from dataclasses import dataclass
from pathlib import Path

from unveil.data.fetch import data_home
from unveil.data.filters import Filters
from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.errors import UnveilError
from unveil.experiment.rq4.published import recognised

#: The data set of the paper that `unveil data fetch` does not know, and its file in the folder of that name.
_BY_HAND, _FILES = "beauty", ("beauty.txt", "beauty.txt.gz")


@dataclass(frozen=True)
class LogChoice:
    """A data set by its name or path; filters that are None are the paper's."""

    data: str
    min_item: int | None = None
    min_user: int | None = None

    def read(self) -> Interactions:
        """The log. One that has a data set's published size already is left as it is, as beauty has to be."""
        log = self._raw()
        if self.min_item is None and self.min_user is None and recognised(log):
            return log
        least = [paper if given is None else given for given, paper in ((self.min_item, 5), (self.min_user, 5))]
        left = Filters(min_item=least[0], min_user=least[1])(log)
        if not len(left.interacted()):
            hint = "Lower --min-item and --min-user."
            raise UnveilError("nothing is left of the log after filtering", where=self.data, hint=hint)
        return left

    def _raw(self) -> Interactions:
        by_hand = self.data == _BY_HAND and not Path(self.data).exists()
        path = _put_by_hand() if by_hand else self.data
        with convert_first(path):
            return Interactions.read(path)


def _put_by_hand() -> Path:
    """Where somebody has put the published file among the fetched data sets."""
    places = [data_home() / _BY_HAND / name for name in _FILES]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        published = "It is the beauty.txt that is published with BERT4Rec (FeiSun/BERT4Rec, data/beauty.txt)"
        hint = f"{published}: put it at {places[0]}, or name its path."
        raise UnveilError("this data set cannot be fetched", found=_BY_HAND, hint=hint)
    return found
