from hypothesis import given
from hypothesis import strategies as st

from unveil.data.indexing import Vocabulary

ids = st.lists(st.text(max_size=6), max_size=30)


def test_ids_keep_their_form() -> None:
    vocabulary = Vocabulary(["0104257", "104257", "b", "B"])
    assert list(vocabulary.ids) == ["0104257", "104257", "B", "b"]
    assert vocabulary.index(["104257", "nobody", "0104257"]).tolist() == [1, -1, 0]
    assert "0104257" in vocabulary
    assert "nobody" not in vocabulary
    assert vocabulary[0] == "0104257"


@given(ids)
def test_sorted_and_order_free(raw: list[str]) -> None:
    vocabulary = Vocabulary(raw)
    assert list(vocabulary.ids) == sorted(set(raw))
    assert vocabulary == Vocabulary(reversed(raw))


@given(ids)
def test_there_and_back(raw: list[str]) -> None:
    vocabulary = Vocabulary(raw)
    assert list(vocabulary.raw(vocabulary.index(raw))) == raw
    assert len(vocabulary) == len(set(raw))


@given(ids, st.text(max_size=6))
def test_one_is_found_where_many_are(raw: list[str], other: str) -> None:
    vocabulary = Vocabulary(raw)
    asked = [*raw, other]
    assert [vocabulary.find(each) for each in asked] == vocabulary.index(asked).tolist()
    assert (other in vocabulary) == (other in raw)


def test_a_vocabulary_shows_a_few_of_its_ids() -> None:
    assert repr(Vocabulary(["a"])) == "Vocabulary(1 id: a)"
    assert repr(Vocabulary("abcd")) == "Vocabulary(4 ids: a, b, c, …)"
