"""The figures of a loop, as they are called, drawn and explained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: The figure that conclusions are drawn from.
HEADLINE = "efd"

Group = Literal["novelty", "diversity", "log", "truth", "training"]


@dataclass(frozen=True)
class Shown:
    """How a figure is told. `{k}` stands for the places of a list."""

    title: str
    about: str
    group: Group
    digits: int = 3

    def named(self, k: int) -> str:
        """The title, with the number of places."""
        return self.title.format(k=k)

    def explained(self, k: int) -> str:
        """What it is, with the number of places."""
        return self.about.format(k=k)


FIGURES: Mapping[str, Shown] = {
    "efd": Shown(
        "EFD@{k}",
        "Novelty of the lists in bits: mean over users and their {k} items of −log2 θ̂, the item's share of the log so "
        "far, with one interaction added to every item.",
        "novelty",
    ),
    "efd_first": Shown(
        "EFD@{k} by the first log",
        "The same lists, but θ̂ as it was before any feedback: what users took since does not move it.",
        "novelty",
    ),
    "arp": Shown(
        "ARP@{k}", "Average popularity: how often the recommended items were taken in the log so far.", "novelty", 1
    ),
    "gini": Shown(
        "Gini@{k}",
        "How unequally places in the lists are shared out among all items: 0 equally, 1 all to one.",
        "diversity",
    ),
    "coverage": Shown("Coverage@{k}", "Share of all items that stand in at least one list.", "diversity"),
    "collective": Shown(
        "Collective diversity",
        "Effective number of recommended items, 2^entropy of their shares of all places: so many items, equally often "
        "recommended, would be as diverse.",
        "diversity",
        1,
    ),
    "individual": Shown(
        "Individual diversity",
        "Mean over users of how unlike two items of one list are: 1 − the cosine between the sets of users who took "
        "them in the first log.",
        "diversity",
    ),
    "overlap": Shown(
        "Overlap", "Mean over all pairs of users of the share of the {k} places that they have in common.", "diversity"
    ),
    "log_gini": Shown("Gini of the log", "How unequally the events of the log so far fall on the items.", "log", 4),
    "taken_efd": Shown(
        "Novelty of what was taken", "Mean −log2 θ̂ of the items taken in the round, by the log before it.", "log"
    ),
    "taken": Shown(
        "Users who took something", "The rest found nothing to take, or had nothing left to be shown.", "log"
    ),
    "relevance": Shown("Relevance of the lists", "Mean true relevance γ of the recommended items.", "truth"),
    "taken_relevance": Shown(
        "Relevance of what was taken", "Mean true relevance γ of the items taken in the round.", "truth"
    ),
    "standing": Shown(
        "Standing of the lists",
        "Of the items a user has not met, the share that is truly less relevant than a recommended one, on average: "
        "1 the best there is, 0.5 chance.",
        "truth",
    ),
    "taken_standing": Shown(
        "Standing of what was taken", "The same of the items taken in the round, among all not met before it.", "truth"
    ),
    "short": Shown("Short lists", "Share of users with fewer than {k} unseen items left.", "log"),
    "events": Shown("Events", "Events of the log that the round's model is trained on.", "log", 0),
    "loss": Shown("Loss", "Risk of the last epoch of the round's training, as its estimator weighs it.", "training"),
    "ess": Shown(
        "Worth of the sample", "(Σw)² / Σw² of the estimator's weights, as a share of the events.", "training"
    ),
}
