"""The data sets that can be fetched, as data: where, how large, under which terms, and the log inside."""

from dataclasses import dataclass
from difflib import get_close_matches

from unveil.errors import UnveilError


@dataclass(frozen=True)
class Dataset:
    """One published data set. `size` and `checksum` are None where nobody trustworthy has published them."""

    name: str
    title: str
    url: str
    page: str
    size: int | None
    checksum: str | None
    terms: str
    terms_url: str
    citation: str
    format: str
    logs: tuple[str, ...]  # inside, relative to the data set's folder; the first is the one meant by the plain name
    top: str = ""  # the single folder in which the archive wraps everything; it is left out when unpacking

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
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = get_close_matches(name, CATALOGUE, n=1)
    hint = f"Did you mean {near[0]}?" if near else "`unveil data fetch --list` shows them all."
    raise UnveilError("no such data set to fetch", found=name, expected=", ".join(CATALOGUE), hint=hint)


_GROUPLENS_TERMS = (
    "For research. Name the source, do not suggest that the University of Minnesota or GroupLens endorses you, "
    "{sharing}, and ask before any commercial use. The README decides."
)
_GROUPLENS_CITATION = (
    "F. M. Harper and J. A. Konstan. The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015. "
    "https://doi.org/10.1145/2827872"
)


def _movielens(name: str, title: str, size: int, checksum: str, format: str, log: str) -> Dataset:
    files = "https://files.grouplens.org/datasets/movielens"
    sharing = "do not pass the data on without permission"
    if name == "ml-32m":
        sharing = "pass the data on only under these same terms, do not try to identify users"
    return Dataset(
        name=name,
        title=title,
        url=f"{files}/{name}.zip",
        page=f"https://grouplens.org/datasets/movielens/{name.removeprefix('ml-')}/",
        size=size,
        checksum=checksum,
        terms=_GROUPLENS_TERMS.format(sharing=sharing),
        terms_url=f"{files}/{name}-README.{'txt' if name in ('ml-100k', 'ml-1m') else 'html'}",
        citation=_GROUPLENS_CITATION,
        format=format,
        logs=(log,),
        top=name,
    )


_ALL = (
    # Sizes and SHA-256 of 100k, 1m, 20m and 25m: tensorflow/datasets, tensorflow_datasets/url_checksums/movielens.txt.
    _movielens(
        "ml-100k",
        "MovieLens 100K: 100,000 ratings, 943 users, 1,682 films, 1997-1998",
        4_924_029,
        "sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        "movielens-100k",
        "u.data",
    ),
    _movielens(
        "ml-1m",
        "MovieLens 1M: 1,000,209 ratings, 6,040 users, 3,706 films, 2000-2003",
        5_917_549,
        "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        "movielens-1m",
        "ratings.dat",
    ),
    _movielens(
        "ml-20m",
        "MovieLens 20M: 20,000,263 ratings, 138,493 users, 1995-2015",
        198_702_078,
        "sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        "csv",
        "ratings.csv",
    ),
    _movielens(
        "ml-25m",
        "MovieLens 25M: 25,000,095 ratings, 162,541 users, 1995-2019",
        261_978_986,
        "sha256:8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
        "csv",
        "ratings.csv",
    ),
    # MD5: GroupLens, ml-32m.zip.md5, as quoted alike by several public projects, which also give the size.
    _movielens(
        "ml-32m",
        "MovieLens 32M: 32,000,204 ratings, 200,948 users, 1995-2023",
        238_950_008,
        "md5:d472be332d4daa821edc399621853b57",
        "csv",
        "ratings.csv",
    ),
    # Neither size nor checksum has been published for this file.
    Dataset(
        name="amazon-beauty",
        title="Amazon reviews 2014, Beauty: ratings only, unfiltered, up to July 2014",
        url="https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Beauty.csv",
        page="https://cseweb.ucsd.edu/~jmcauley/datasets/amazon/links.html",
        size=None,
        checksum=None,
        terms=(
            "Collected and offered for research by J. McAuley; no licence is stated. Cite the papers its page names. "
            "The reviews remain Amazon's and their authors'."
        ),
        terms_url="https://cseweb.ucsd.edu/~jmcauley/datasets/amazon/links.html",
        citation=(
            "R. He and J. McAuley. Ups and Downs: Modeling the Visual Evolution of Fashion Trends with One-Class "
            "Collaborative Filtering. WWW 2016. J. McAuley, C. Targett, J. Shi and A. van den Hengel. Image-based "
            "Recommendations on Styles and Substitutes. SIGIR 2015."
        ),
        format="amazon-2014",
        logs=("ratings_Beauty.csv",),
    ),
    # MD5: Zenodo's, as quoted alike by several public projects, one of which also gives the size and the members.
    Dataset(
        name="kuairand-pure",
        title="KuaiRand-Pure: exposures of a short-video feed, clicked or not, 27,285 users, 7,583 videos, 2022",
        url="https://zenodo.org/records/10439422/files/KuaiRand-Pure.tar.gz",
        page="https://kuairand.com",
        size=47_432_272,
        checksum="md5:0820331067a3784d9691136f772b35a7",
        terms="Creative Commons BY-SA 4.0: use it, name the authors, share what you derive under the same terms.",
        terms_url="https://creativecommons.org/licenses/by-sa/4.0/",
        citation=(
            "C. Gao et al. KuaiRand: An Unbiased Sequential Recommendation Dataset with Randomly Exposed Videos. "
            "CIKM 2022. https://doi.org/10.1145/3511808.3557624"
        ),
        format="kuairand",
        logs=(
            "data/log_standard_4_08_to_4_21_pure.csv",
            "data/log_standard_4_22_to_5_08_pure.csv",
            "data/log_random_4_22_to_5_08_pure.csv",
        ),
        top="KuaiRand-Pure",
    ),
)

CATALOGUE: dict[str, Dataset] = {entry.name: entry for entry in _ALL}
