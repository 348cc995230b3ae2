import pytest

from unveil.wording import quantity


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 users"), (1, "1 user"), (2, "2 users"), (-1, "-1 users"), (12_345, "12,345 users")]
)
def test_one_is_one_and_many_are_many(count: int, text: str) -> None:
    assert quantity(count, "user") == text


def test_a_plural_of_its_own() -> None:
    assert quantity(1, "history", "histories") == "1 history"
    assert quantity(3, "history", "histories") == "3 histories"
