"""Numbers with their nouns, for people."""


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """How many of what.

    >>> quantity(1, "user"), quantity(1200, "user"), quantity(0, "history", "histories")
    ('1 user', '1,200 users', '0 histories')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
