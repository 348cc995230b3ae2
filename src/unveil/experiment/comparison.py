"""What a comparison needs, looked at before any work is done: the naive loss, and for a gap the ideal one as well."""

from collections.abc import Iterable, Sequence

from unveil.errors import UnveilError
from unveil.experiment.outcome import BASE, BOUND


def refuse_no_gap(arms: Sequence[str]) -> None:
    """Naive and ideal are the ends of the gap, and its shares are of what lies between them."""
    found = set(arms)
    if not {BASE, BOUND} < found:
        expected = "naive, ideal and at least one between them"
        raise UnveilError("a gap has two ends", where="--estimators", found=", ".join(arms), expected=expected)


def refuse_alike(numbers: Iterable[float], where: str) -> None:
    """Cells and their luck go by six digits of such a number: two that share them would be one, counted twice."""
    told: dict[str, float] = {}
    for number in numbers:
        other = told.setdefault(f"{number:g}", number)
        if other != number:
            expected = "numbers that differ in their first six digits"
            raise UnveilError(
                "too near to be told apart", where=where, found=f"{other} and {number}", expected=expected
            )


def refuse_no_gain(arms: Sequence[str]) -> None:
    """A gain is over naive; that of the ideal loss, which knows the truth, is nobody's."""
    found = set(arms)
    if BASE not in found or found <= {BASE, BOUND}:
        expected = "naive and at least one that is not ideal"
        raise UnveilError("a gain is over naive", where="--estimators", found=", ".join(arms), expected=expected)
