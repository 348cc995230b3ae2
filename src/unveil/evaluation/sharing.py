"""How the cases of an evaluation are shared between processes; one by itself takes them all."""

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray


class Sharing(Protocol):
    """Each batch of cases is judged by one process, as it would be by a single one: results are the same to the bit."""

    def judges(self, nth: int) -> bool:
        """Whether it falls to this process to judge the n-th batch of cases."""

    def together(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Sum columns over the processes, in place: each has zeros where it fell to another to judge."""


class Everything:
    """There is nobody to share with."""

    def judges(self, nth: int) -> bool:
        """Every batch."""
        return True

    def together(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """They are whole."""


EVERYTHING = Everything()
