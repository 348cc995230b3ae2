"""Lists as they are asked for on the command line: after one history, for the users of a file, or for all."""

from dataclasses import replace
from pathlib import Path

from unveil.errors import UnveilError
from unveil.serving.recommender import Recommendations, Recommender


def lists_for(
    folder: Path, *, history: str | None = None, users: Path | None = None, k: int = 10, filter_seen: bool = True
) -> Recommendations:
    """What to recommend. A history is text with commas between ids; a file of users has one id a line.

    A history is nobody's in particular: its list has no column of users.
    """
    if history is not None and users is not None:
        raise UnveilError("a history and a file of users were both given", expected="one of them")
    recommender = Recommender.load(folder)
    if history is not None:
        ids = [part.strip() for part in history.split(",") if part.strip()]
        lists = recommender.recommend_for([ids], k, filter_seen=filter_seen)
        return replace(lists, frame=lists.frame.drop("user_id"))
    return recommender.recommend(None if users is None else _ids(users), k, filter_seen=filter_seen)


def _ids(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError:
        raise UnveilError("not text in UTF-8", where=path, expected="one user id a line") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise UnveilError("the file is empty", where=path, expected="one user id a line")
    return ids
