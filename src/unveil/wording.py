"""Numbers in words, for people."""

from collections.abc import Sequence


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """How many of what.

    >>> quantity(1, "user"), quantity(1200, "user"), quantity(0, "history", "histories")
    ('1 user', '1,200 users', '0 histories')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first of the names, and whether there are more.

    >>> some(["a", "b"]), some(["a", "b", "c"], 2)
    ('a, b', 'a, b, …')
    """
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def exit_reason(code: int | None) -> str:
    """How a process ended, by its exit code as Python gives it: below 0 for signals.

    >>> exit_reason(-9), exit_reason(-15), exit_reason(3)
    ('killed, most likely for want of memory', 'signal 15', 'exit code 3')
    """
    if code == -9:  # SIGKILL: the system sends it when memory runs out
        return "killed, most likely for want of memory"
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
