"""The reading follows the figures: every conclusion has a figure that turns it around."""

from tests.experiment.demo.small import made_up, means, users
from unveil.experiment.demo.words import caution, closes, gap_text, reading


def read(popularity: float, naive: float, itps: float, ideal: float) -> str:
    return "\n".join(reading(made_up(means(popularity, naive, itps, ideal))))


def test_a_gain_is_called_a_gain() -> None:
    text = read(0.1, naive=0.3, itps=0.4, ideal=0.5)
    assert "ITPS scores above the naive loss on true favourites" in text
    assert "it closes 50% of the gap to the ideal." in text
    assert "learnt more than to recommend what is popular" in text


def test_a_loss_is_called_a_loss() -> None:
    text = read(0.1, naive=0.4, itps=0.3, ideal=0.5)
    assert "ITPS scores below the naive loss" in text
    assert "it closes none of the gap" in text


def test_what_cannot_be_told_apart_is_not() -> None:
    text = read(0.1, naive=0.4, itps=0.4001, ideal=0.5)
    assert "ITPS cannot be told from the naive loss" in text
    assert "it may close none of the gap to the ideal." in text


def test_a_model_no_better_than_popularity_is_said_to_be() -> None:
    assert "learnt no more than to recommend what is popular" in read(0.4, naive=0.3, itps=0.35, ideal=0.5)


def test_an_ideal_that_is_not_best_leaves_no_gap() -> None:
    outcome = made_up(means(0.1, naive=0.5, itps=0.6, ideal=0.4))
    text = "\n".join(reading(outcome))
    assert "here there is no gap to close" in text
    assert "closes" not in text
    assert "it finds no gap to close." in text
    assert (gap_text(outcome, "itps"), closes(outcome, "itps")) == ("–", "finds no gap to close")


def test_the_two_evaluations_may_disagree() -> None:
    text = read(0.1, naive=0.3, itps=0.4, ideal=0.5)
    assert "By the truth the order of the means is ideal, ITPS, naive; by the standard evaluation" in text
    assert "would have us choose naive, and the truth ITPS" in text


def test_the_two_evaluations_may_agree() -> None:
    arms = {name: (users(mean), users(mean)) for name, mean in (("naive", 0.2), ("itps", 0.3), ("ideal", 0.4))}
    text = "\n".join(reading(made_up({"popularity": (users(0.1), users(0.1)), **arms})))
    assert "Here the two agree." in text
    arms["ideal"] = (users(0.4), users(0.1))
    text = "\n".join(reading(made_up({"popularity": (users(0.1), users(0.1)), **arms})))
    assert "both put ITPS first" in text


def test_the_ideal_loss_is_excused_only_where_its_lists_are_not_the_best() -> None:
    arms = means(0.1, naive=0.3, itps=0.4, ideal=0.5)
    best = reading(made_up(arms, relevance={"ideal": 0.9}))[-1]
    second = reading(made_up(arms, relevance={"itps": 0.9, "ideal": 0.8}))[-1]
    assert "ideal 0.900, naive 0.500, ITPS 0.500" in best
    assert "not first" not in best
    assert "The ideal loss is not first here" in second


def test_one_trial_says_what_its_intervals_leave_out() -> None:
    arms = means(0.1, naive=0.3, itps=0.4, ideal=0.5)
    assert "another training" in caution(made_up(arms))
    assert "2 replicates" in caution(made_up(arms, arms))
