"""The page of the theory."""

from unveil.experiment.theory import figures, tables, words
from unveil.experiment.theory.propositions import ALL, EXPOSED
from unveil.experiment.theory.run import Theory
from unveil.experiment.theory.text import choice_name, relative
from unveil.report.page import Block, Code, Figures, KeyFigure, Note, Page, Section, Text

_LEDE = (
    "A loss is unbiased if, over all logs that could have come about, it is on average the loss one would minimise "
    "knowing the truth. Here the claims are computed instead of quoted: exactly, over every log of a tiny world; on a "
    "larger one from drawn logs; and down to what minimises each loss, which is what a model learns."
)


def theory_page(theory: Theory) -> Page:
    """The whole page."""
    return Page(
        title="Which losses are unbiased, for whom, and what they would learn",
        lede=_LEDE,
        key_figures=_key_figures(theory),
        sections=[
            Section(
                "The claims", [Text(words.claims(theory.findings)), tables.propositions(theory), Note(words.SCALE)]
            ),
            Section("Who chooses how", [Text(words.by_users(theory)), tables.choosers(theory)]),
            Section("On a larger world", _larger(theory)),
            Section("What each loss would learn", _learnt(theory)),
            Section("What this leaves out", [Note(words.SCOPE)]),
            Section("To see it again", [Code(_command(theory))]),
        ],
    )


def _larger(theory: Theory) -> list[Block]:
    return [Text(words.drawn(theory)), Figures([figures.biases(theory)]), *tables.estimated(theory)]


def _learnt(theory: Theory) -> list[Block]:
    return [
        Text(
            "With its scores free, the softmax that minimises an expected loss at a slot is the expected weight of "
            "each item, divided by their sum. So it can be written down, and held against that of the ideal loss."
        ),
        tables.example(theory),
        Text(words.minima(theory)),
        tables.distances(theory),
        *(Text(paragraph) for paragraph in words.severities(theory)),
        Figures(figures.firsts(theory)),
        tables.minimisers(theory),
    ]


def _key_figures(theory: Theory) -> list[KeyFigure]:
    holds = sum(finding.holds for finding in theory.findings)
    counted = KeyFigure(f"{holds} of {len(theory.findings)}", "claims hold, exactly computed")
    biases = [(choice, words.key_bias(theory, choice)) for choice in (ALL, EXPOSED)]
    return [
        counted,
        *(
            KeyFigure(relative(bias), f"bias of ITPS if the user takes {choice_name(choice)}")
            for choice, bias in biases
            if bias is not None
        ),
    ]


def _command(theory: Theory) -> str:
    size = theory.settings
    return f"unveil theory --severity {size.severity:g} --seed {size.seed} --draws {size.draws} -o theory"
