"""Which column plays which role."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.data.readers.table import ALIASES, ROLES, assign_roles, canonical, is_header
from unveil.errors import UnveilError

CASES = {
    "userId,movieId,rating,timestamp": {"user": 0, "item": 1, "rating": 2, "time": 3},
    "asin,parent_asin,user_id": {"user": 2, "item": 1},
    "reviewerID,asin,overall,unixReviewTime": {"user": 0, "item": 1, "rating": 2, "time": 3},
    "session_id,uid,item_id": {"user": 1, "item": 2},
    "sid,item,ts": {"user": 0, "item": 1, "time": 2},
    "USER ID, Item-Id ,Date": {"user": 0, "item": 1, "time": 2},
    "user_id,userId,item_id": {"user": 0, "item": 2},
    "user_id,video_id,date,time_ms,is_click": {"user": 0, "item": 1, "time": 3, "clicked": 4},
    "visitorid,product_id,datetime,pscore,rank,is_rand,step": {
        "user": 0,
        "item": 1,
        "time": 2,
        "propensity": 3,
        "position": 4,
        "randomised": 5,
        "step": 6,
    },
}


@pytest.mark.parametrize("header", CASES)
def test_names_of_the_field(header: str) -> None:
    names = header.split(",")
    assert assign_roles(names, {}, "log") == {role: names[place] for role, place in CASES[header].items()}
    assert is_header(names, {})


def test_a_chosen_column_wins() -> None:
    names = ["user_id", "customer", "item_id", "sku", "timestamp", "seen"]
    chosen = {"user": "customer", "item": "sku", "time": "seen"}
    assert assign_roles(names, chosen, "log") == chosen


def test_a_chosen_column_plays_no_second_role() -> None:
    with pytest.raises(UnveilError, match="no item column among"):
        assign_roles(["item_id", "x"], {"user": "item_id"}, "log")
    with pytest.raises(UnveilError, match="cannot be both"):
        assign_roles(["a", "b"], {"user": "a", "item": "a"}, "log")


def test_a_column_can_be_left_out() -> None:
    names = ["user_id", "item_id", "label", "rank"]
    assert assign_roles(names, {"clicked": "none", "position": "none"}, "log") == {"user": "user_id", "item": "item_id"}
    assert assign_roles([*names, "none"], {"clicked": "none"}, "log") == {
        "user": "user_id",
        "item": "item_id",
        "clicked": "none",
        "position": "rank",
    }
    with pytest.raises(UnveilError, match="no such column: found 'none'"):
        assign_roles(names, {"user": "none"}, "log")


@pytest.mark.parametrize(
    ("names", "role"),
    [
        (["uid", "reviewerID", "item_id"], "user"),
        (["user_id", "movieId", "video_id"], "item"),
        (["user_id", "item_id", "ts", "created_at"], "time"),
        (["user_id", "item_id", "overall", "stars"], "rating"),
    ],
)
def test_two_equally_good_names_are_an_error(names: list[str], role: str) -> None:
    with pytest.raises(UnveilError, match=f"several columns could be the {role}: .*--{role}-col"):
        assign_roles(names, {}, "log")


def test_two_columns_of_one_name_cannot_be_chosen() -> None:
    with pytest.raises(UnveilError, match="several columns have the same name"):
        assign_roles(["u", "u", "item_id"], {"user": "u"}, "log")


@given(st.permutations([canonical(role) for role in ROLES]))
def test_canonical_names_are_found_in_any_order(names: list[str]) -> None:
    assert assign_roles(names, {}, "log") == {role: canonical(role) for role in ROLES}


def test_no_alias_belongs_to_two_roles() -> None:
    every = [alias for ranks in ALIASES.values() for rank in ranks for alias in rank]
    assert len(every) == len(set(every))
    assert set(ALIASES) == set(ROLES)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["user_id", "user_id", "item_id"], {}),
        (["who", "who", "item_id"], {"user": "who"}),
        ([" who", "who ", "item_id"], {"user": "who"}),
    ],
)
def test_namesakes_are_not_told_apart(names: list[str], chosen: dict[str, str]) -> None:
    with pytest.raises(UnveilError, match=r"several columns have the same name: found '(user_id|who)'"):
        assign_roles(names, chosen, "log")
