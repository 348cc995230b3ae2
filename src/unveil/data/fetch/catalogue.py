"""The data sets that can be fetched. All of them are in `catalogue.toml`."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from unveil.errors import unknown


@dataclass(frozen=True)
class Dataset:
    """One published data set. `size` and `checksum` are None where nobody trustworthy has published them."""

    name: str
    title: str
    url: str
    page: str
    terms: str
    terms_url: str
    citation: str
    format: str
    logs: tuple[str, ...]  # inside, relative to the data set's folder; the first is the one meant by the plain name
    top: str = ""  # the single folder in which the archive wraps everything; it is left out when unpacking
    size: int | None = None
    checksum: str | None = None

    @property
    def file(self) -> str:
        """The name of the published file."""
        return self.url.rsplit("/", 1)[-1]

    @property
    def packed(self) -> bool:
        """Whether the published file is an archive."""
        return self.file.endswith((".zip", ".tar.gz"))


def dataset(name: str) -> Dataset:
    """The data set of that name; an unknown one is an error with the nearest name."""
    if name not in CATALOGUE:
        raise unknown("data set to fetch", name, CATALOGUE)
    return CATALOGUE[name]


_TEXT = files("unveil.data.fetch").joinpath("catalogue.toml").read_text(encoding="utf-8")
CATALOGUE = {
    name: Dataset(name, **entry | {"logs": tuple(entry["logs"])}) for name, entry in tomllib.loads(_TEXT).items()
}
