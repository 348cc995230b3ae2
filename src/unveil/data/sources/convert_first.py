"""Commands that take a log as it is: what is wrong with one is put right by another command, and they say by which."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unveil.errors import UnveilError

#: The options of reading, as hints name them.
_OPTION = re.compile(r"--(?:[a-z]+-col|format|time-unit|encoding|query)\b")


@contextmanager
def convert_first(source: str | Path) -> Iterator[None]:
    """Inside, hints that name an option of reading send people to `unveil data convert`, which has them."""
    try:
        yield
    except UnveilError as error:
        if error.hint is None or not _OPTION.search(error.hint):
            raise
        command = f"unveil data convert {shlex.quote(str(source))} -o converted.csv"
        hint = f"Convert the log first and name the new file here: `{command}` has the options for it. {error.hint}"
        raise UnveilError(
            error.problem, where=error.where, found=error.found, expected=error.expected, hint=hint
        ) from None
