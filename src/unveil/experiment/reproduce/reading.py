"""The reading of an answer as Markdown: for those who open the folder."""

from collections.abc import Sequence

from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.words import caution
from unveil.report.names import listed
from unveil.runs.progress import spell


def reading(answer: Answer, command: str) -> str:
    """Of a question on semi-synthetic data."""
    question = answer.question
    paragraphs = [*question.reading(answer), caution(answer.results)]
    return markdown(
        f"{question.name.upper()}: {question.title}", paragraphs, question.sheets(answer), command, _made(answer)
    )


def markdown(title: str, paragraphs: Sequence[str], sheets: Sequence[Sheet], command: str, made: str) -> str:
    """Question, reading, tables, and how it was made."""
    return "\n".join(
        [
            f"# {title}",
            "",
            *(line for paragraph in paragraphs for line in (paragraph, "")),
            *(line for sheet in sheets for line in _table(sheet)),
            "## How it was made",
            "",
            f"    {command}",
            "",
            made,
            "",
        ]
    )


def _table(sheet: Sheet) -> list[str]:
    rows = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in (sheet.head, *sheet.rows)]
    rule = "|" + "---|" * len(sheet.head)
    return [f"## {sheet.title}", "", rows[0], rule, *rows[1:], "", sheet.foot, ""]


def _cell(text: str) -> str:
    return text.strip().replace("*", "\\*").replace("|", "\\|")


def _made(answer: Answer) -> str:
    plan = answer.plan
    last = f"; the last run took {spell(answer.seconds)} and made {answer.made} of them" if answer.made else ""
    return (
        f"Preset `{plan.study.preset}`: {plan.study.about}{_clips(plan)}. Data: {answer.source.about}, "
        f"fingerprint `{answer.source.fingerprint[:16]}`. {len(answer.results.cells)} cells, "
        f"{spell(answer.worker_seconds)} of one core in all{last}. `results.json` and `results.csv` hold every figure, "
        f"`index.html` shows them, `about.json` names the versions."
    )


def _clips(plan: Plan) -> str:
    """; θ is clipped from below at 0.02 for IPS, ITPS."""
    told: dict[str, list[str]] = {}
    for arm in dict.fromkeys(plan.estimators):
        clip = plan.study.recipe(arm, 0).estimator.get("clip")
        if clip is not None:
            told.setdefault(str(clip), []).append(arm)
    return "".join(f"; θ is clipped from below at {clip} for {listed(arms)}" for clip, arms in told.items())
