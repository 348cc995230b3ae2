"""What was found, as tables for page and terminal."""

from unveil.experiment.theory.choices import Chooser
from unveil.experiment.theory.finding import Finding
from unveil.experiment.theory.minimisers import Minimiser
from unveil.experiment.theory.monte_carlo import Estimated
from unveil.experiment.theory.run import Theory
from unveil.experiment.theory.text import cell, choice_name, interval, percentage
from unveil.report.page import Cell, Column, Table, number


def propositions(theory: Theory) -> Table:
    """Every claim with its verdict."""
    return Table(
        "Claims, each checked over every log of a tiny world: the bias (E[L] − L_ideal) / L_ideal, exact",
        [Column("claim"), Column("bias", True), Column("formula", True), Column("verdict")],
        [_claim(finding) for finding in theory.findings],
        sortable=False,
    )


def _claim(finding: Finding) -> list[Cell | str]:
    formula = "–" if finding.formula is None else cell(finding.formula)
    claim = f"{finding.topic}: {finding.claim}, {finding.setting}"
    return [claim, cell(finding.bias), formula, finding.verdict]


def choosers(theory: Theory) -> Table:
    """Choice model by loss."""
    losses = list(theory.choosers[0].bias)
    return Table(
        "The bias of each loss by how the user chooses, exact, in the tiny world whose θ changes with the step; and by "
        "how much the formula of P(event) is off at most",
        [
            Column("the user takes"),
            Column("R"),
            *(Column(loss, True) for loss in losses),
            Column("depends on exposure"),
            Column("formula off", True),
        ],
        [_chooser(each, losses) for each in theory.choosers],
        sortable=False,
    )


def _chooser(each: Chooser, losses: list[str]) -> list[Cell | str]:
    error = "–" if each.formula_error is None else Cell(f"{each.formula_error:.0e}", each.formula_error)
    depends = "yes" if each.depends_on_exposure else "no"
    return [choice_name(each.choice), each.relevance, *(cell(each.bias[loss]) for loss in losses), depends, error]


def estimated(theory: Theory) -> list[Table]:
    """What drawn logs say, beside the closed form: a table for each way of choosing."""
    return [_of_choice(theory, choice) for choice in dict.fromkeys(row.choice for row in theory.estimated)]


def _of_choice(theory: Theory, choice: str) -> Table:
    return Table(
        f"The user takes {choice_name(choice)}: bias over {theory.settings.draws:,} logs",
        [
            Column("loss"),
            Column("formula", True),
            Column("bias", True),
            Column("interval", True),
            Column("one log", True, "spread"),
            Column("found"),
            Column("agrees"),
        ],
        [_estimated(row) for row in theory.estimated if row.choice == choice],
        sortable=False,
    )


def _estimated(row: Estimated) -> list[Cell | str]:
    return [
        row.estimator,
        "–" if row.formula is None else cell(row.formula),
        cell(row.mean),
        interval(row.low, row.high),
        Cell(f"±{row.spread:.1%}", row.spread),
        row.found,
        {None: "–", True: "yes", False: "no"}[row.agrees],
    ]


def minimisers(theory: Theory) -> Table:
    """What each loss would learn at each severity."""
    return Table(
        "What minimises each loss, for the user who takes the best of the exposed; distance: total variation from what "
        "minimises the ideal loss; first: how often the true favourite has the highest probability; for each slot by "
        "itself, for one softmax a user, and for that softmax fitted to one log (95% interval over logs)",
        [
            Column("p", True),
            Column("loss"),
            Column("bias", True, "of the loss"),
            Column("distance", True, "slot"),
            Column("first", True, "slot"),
            Column("distance", True, "user"),
            Column("first", True, "user"),
            Column("first", True, "one log"),
        ],
        [_minimiser(row) for row in theory.minimisers],
        sortable=False,
    )


def _minimiser(row: Minimiser) -> list[Cell | str]:
    return [
        number(row.severity, 0),
        row.estimator,
        "–" if row.bias is None else cell(row.bias),
        number(row.slot_distance),
        Cell(percentage(row.slot_first), row.slot_first),
        number(row.user_distance),
        Cell(percentage(row.user_first), row.user_first),
        Cell(f"{percentage(row.log_first)} [{percentage(row.low)}, {percentage(row.high)}]", row.log_first),
    ]


def distances(theory: Theory) -> Table:
    """The same distance under every choice model."""
    losses = list(next(iter(theory.distances.values())))
    return Table(
        f"Total variation of what minimises each loss from what minimises the ideal one, each slot by itself, at "
        f"severity {theory.settings.severity:g}",
        [Column("the user takes"), *(Column(loss, True) for loss in losses)],
        [[choice_name(choice), *(number(row[loss], 3) for loss in losses)] for choice, row in theory.distances.items()],
        sortable=False,
    )


def example(theory: Theory) -> Table:
    """One slot, item by item."""
    slot = theory.example
    return Table(
        f"One slot of the tiny world, user {slot.user} at step {slot.step}: the user takes {choice_name(slot.choice)}, "
        "and each loss would learn these probabilities",
        [
            Column("item"),
            Column("γ", True),
            Column("θ", True),
            Column("taken", True),
            *(Column(loss, True) for loss in slot.learnt),
        ],
        [
            [
                item,
                *(number(value, 3) for value in (slot.gamma[n], slot.theta[n], slot.taken[n])),
                *(number(row[n], 3) for row in slot.learnt.values()),
            ]
            for n, item in enumerate(slot.items)
        ],
        sortable=False,
    )
