import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.run_folders import Finished
from tests.serving.server.conftest import LIMITS, TITLES, Client
from unveil.serving.exposure import ExposureTable, next_steps
from unveil.serving.server.model_store import ItemInfo, ModelStore
from unveil.serving.server.schemas import RecommendRequest


def ask(client: Client, **question: object) -> dict[str, Any]:
    answer = client.post("/v1/recommend", json=question)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ids(answer: dict[str, Any]) -> list[str]:
    return [item["item_id"] for item in answer["items"]]


def test_a_history_is_answered_as_the_recommender_would(client: Client, finished: Finished) -> None:
    answer = ask(client, history=["001", "002"], k=5)
    expected = finished.run.recommender.recommend_for([["001", "002"]], 5).frame
    assert ids(answer) == expected["item_id"].to_list()
    scores = [item["score"] for item in answer["items"]]
    np.testing.assert_allclose(scores, expected["score"], atol=1e-5)
    first = answer["items"][0]
    assert (first["rank"], first["title"]) == (1, TITLES[first["item_id"]])
    assert (answer["fallback"], answer["unknown_items"]) == (None, [])


def test_a_known_user_is_answered_from_the_log(client: Client, finished: Finished) -> None:
    expected = finished.run.recommender.recommend(["0003"], 4).frame["item_id"].to_list()
    assert ids(ask(client, user="0003", k=4)) == expected


def test_unknown_ids_are_reported_and_passed_over(client: Client) -> None:
    answer = ask(client, history=["x", "001", "y", "x"], k=3)
    assert answer["unknown_items"] == ["x", "y"]
    assert ids(answer) == ids(ask(client, history=["001"], k=3))
    narrowed = ask(client, history=["001"], k=1, candidates=["a", "003"], exclude=["b", "a", "004"])
    assert (narrowed["unknown_items"], narrowed["unknown_choices"]) == ([], ["a", "b"])


@pytest.mark.parametrize("question", [{"history": ["x", "y"]}, {"history": []}, {}, {"user": "nobody"}, {"novelty": 1}])
def test_where_nothing_is_known_popularity_answers_and_says_so(
    question: dict[str, Any], client: Client, store: ModelStore
) -> None:
    answer = ask(client, **question, k=5)
    count_V = store.model(None).recommender.count_V
    expected = [f"0{place:02d}" for place in np.argsort(-count_V, kind="stable")[:5]]
    assert ids(answer) == expected
    assert answer["fallback"] == "popularity"


def test_what_may_be_listed(client: Client) -> None:
    everything = ids(ask(client, history=["001"], k=20, filter_seen=False))
    best, next_best = [item for item in everything if item != "001"][:2]
    chosen = ids(ask(client, history=["001"], k=20, candidates=["001", next_best, best, "x"]))
    assert chosen == [best, next_best]
    assert ids(ask(client, history=["001"], k=3, exclude=everything[:2], filter_seen=False)) == everything[2:5]
    drama = {item for n, item in enumerate(TITLES) if n % 3 < 2 and 1990 + n >= 2000}
    listed = ids(ask(client, history=["001"], k=20, where=["genre=Drama", "year>=2000"]))
    assert set(listed) <= drama
    assert len(listed) == len(drama)
    both = ids(ask(client, history=["001"], where=["genre=Horror"], candidates=["002", "003", "005"], k=9))
    assert set(both) == {"002", "005"}


def test_the_dial_lists_what_is_less_popular(client: Client) -> None:
    def popularity(novelty: float) -> float:
        answer = ask(client, history=["001", "002"], novelty=novelty)
        return float(sum(item["popularity"] for item in answer["items"]))

    assert popularity(0) >= popularity(0.5) >= popularity(1)
    assert popularity(0) > popularity(1)


def test_items_come_with_the_propensity_of_training(client: Client, finished: Finished) -> None:
    recommender = finished.run.recommender
    assert recommender.exposure is not None
    questions: list[dict[str, object]] = [{"history": ["001"]}, {"user": "0003"}, {"history": []}]
    for question in questions:
        for item in ask(client, **question, k=3)["items"]:
            theta = recommender.exposure.at(None)[recommender.items.find(item["item_id"])]
            assert item["propensity"] == pytest.approx(float(theta), rel=1e-6)
            assert item["propensity_source"] == "popularity-temporal"
    assert client.get("/v1/models").json()[0]["propensity"] == "popularity-temporal"


def test_a_known_user_is_given_the_propensity_of_the_next_step(store: ModelStore) -> None:
    old = store.model(None)
    theta_SV = np.full((2, 30), 0.25, np.float32)
    theta_SV[1] = 0.5
    sequences = replace(old.recommender.sequences, n_steps=50)
    step = int(next_steps(sequences, np.array([3]))[0])
    table = ExposureTable("mine", "users", np.array([step, 49]), theta_SV)
    served = replace(old, recommender=replace(old.recommender, sequences=sequences, exposure=table))
    requests = [RecommendRequest(user="0003", k=1), RecommendRequest(history=["001"], k=1)]
    known, stranger = served.answer(requests)
    assert (known.items[0].propensity, stranger.items[0].propensity) == (0.25, 0.5)
    assert known.items[0].propensity_source == "mine, mean over users"


def test_reasons_are_what_leaving_one_out_does(client: Client, finished: Finished) -> None:
    answer = ask(client, history=["001", "002", "003"], k=2, reasons=3)

    def log_share(history: list[str], item: str) -> float:
        frame = finished.run.recommender.recommend_for([history], 30, filter_seen=False).frame
        scores = dict(zip(frame["item_id"], frame["score"], strict=True))
        return float(scores[item] - math.log(sum(math.exp(score) for score in scores.values())))

    for item in answer["items"]:
        effects = {why["item_id"]: why["effect"] for why in item["reasons"]}
        assert effects.keys() == {"001", "002", "003"}
        for left_out, effect in effects.items():
            without = [raw for raw in ("001", "002", "003") if raw != left_out]
            expected = log_share(["001", "002", "003"], item["item_id"]) - log_share(without, item["item_id"])
            assert effect == pytest.approx(expected, abs=1e-4)
        sizes = [abs(why["effect"]) for why in item["reasons"]]
        assert sizes == sorted(sizes, reverse=True)


def test_a_batch_is_answered_as_its_questions_are_one_by_one(client: Client) -> None:
    questions: list[dict[str, Any]] = [
        {"history": ["001"], "k": 3},
        {"history": ["x"]},
        {"user": "0004", "novelty": 0.5},
        {"history": ["001", "002"]},
    ]
    answers = client.post("/v1/recommend/batch", json={"questions": questions}).json()["answers"]
    for question, answer in zip(questions, answers, strict=True):
        alone = ask(client, **question)
        assert ids(answer) == ids(alone)
        assert answer["fallback"] == alone["fallback"]


def test_search_finds_titles_and_ids_the_popular_first(client: Client, store: ModelStore) -> None:
    def found(text: str, limit: int = 20) -> list[str]:
        return [hit["item_id"] for hit in client.get("/v1/items", params={"q": text, "limit": limit}).json()]

    assert found("number 17") == ["017"]
    assert found("NUMBER film 17") == ["017"]
    assert found("017") == ["017"]
    assert found("nothing") == []
    by_popularity = [f"0{v:02d}" for v in np.argsort(-store.model(None).recommender.count_V, kind="stable")]
    assert found("film", 30) == by_popularity
    assert found("", 3) == by_popularity[:3]
    side_by_side = [item for item in by_popularity if item == "001" or "010" <= item <= "019"]
    assert found("number 1", 12) == [*side_by_side, "021"]  # where 1 stands elsewhere comes after


def test_search_for_an_id_finds_that_item_before_the_popular(store: ModelStore) -> None:
    served = store.model(None)
    order = np.argsort(-served.recommender.count_V, kind="stable")
    popular, rare = served.ids[order[0]], served.ids[order[-1]]
    other = replace(served, info=ItemInfo({popular: f"better than {rare}"}))
    assert [hit.item_id for hit in other.search(f" {rare} ", 2)] == [rare, popular]


def test_what_is_served_is_told(client: Client, store: ModelStore) -> None:
    (told,) = client.get("/v1/models").json()
    assert (told["name"], told["network"], told["items"], told["users"]) == ("run", "sasrec", 30, 40)
    assert (told["version"], told["max_k"]) == (store.model(None).version, LIMITS.k)
