"""How an answer to RQ4 was made, for those who repeat it."""

from unveil.estimators.base import ESTIMATORS
from unveil.experiment.rq4.run import RealAnswer
from unveil.experiment.rq4.training_page import trained
from unveil.report.names import against, named
from unveil.report.page import Block, Cell, Code, Column, Table, Text, plain
from unveil.runs.progress import spell
from unveil.studies.arms import Variant
from unveil.training.recipe import Recipe

_CASES = (
    "The last event of a history is its test case, the one before it the validation case; the context of a case is all "
    "that comes before it. What a user has met does not compete; equal scores count against the target. Negatives are "
    "drawn once for each replicate and shared by all arms; a user’s validation and test case meet the same draw, but "
    "for the two targets and what was met between them. θ̂ is made from the training part alone."
)


def made(answer: RealAnswer, command: str) -> list[Block]:
    """Cases, log, settings, command."""
    return [
        Text(_CASES),
        Text(_log(answer)),
        Text(_choice(answer)),
        _settings(answer),
        Code(command),
        Text(_times(answer)),
    ]


def made_in_words(answer: RealAnswer) -> str:
    """The same as one paragraph."""
    study = answer.plan.study
    return " ".join([f"Preset `{study.preset}`: {study.about}.", _log(answer), _choice(answer), _CASES, _times(answer)])


def _log(answer: RealAnswer) -> str:
    known = f", the size of the paper’s {answer.data}" if answer.data else ""
    return (
        f"The log: {answer.log}{known}; fingerprint {answer.log.fingerprint()[:16]}. Ties in time stay in file order. "
        f"{answer.split}."
    )


def _choice(answer: RealAnswer) -> str:
    study = answer.plan.study
    return (
        f"The epoch that is kept is the one with the highest validation NDCG@10 against {against(study.validation)}. λ "
        f"of the control is chosen on the validation cases, for each ranking apart, among "
        f"{', '.join(f'{each:g}' for each in study.strengths)}; it shares the naive model’s weights."
    )


def _times(answer: RealAnswer) -> str:
    cells = len(answer.results.cells)
    return (
        f"{cells} cells, {spell(answer.worker_seconds)} of one core in all. `results.json` and `results.csv` hold "
        f"every figure, `about.json` names the versions and the time of this run."
    )


def _settings(answer: RealAnswer) -> Table:
    study = answer.plan.study
    titles = ("width", "blocks", "heads", "tokens", "batch", "dropout", "mask ρ", "epochs", "exponent", "clip of θ̂")
    columns = [Column("estimator"), *(Column(title, True) for title in titles)]
    rows = [_setting(arm, study.recipe(arm, 0)) for arm in trained(answer.results)]
    return Table(f"Preset {study.preset}: {study.about}", columns, rows, sortable=False)


def _setting(arm: str, recipe: Recipe) -> list[Cell | str]:
    network, task = recipe.model, recipe.task
    sizes = (
        network.width,
        getattr(network, "blocks", 0),
        getattr(network, "heads", 0),
        network.length,
        task.batch_size,
    )
    rest = (network.dropout, task.mask_probability, recipe.training.epochs)
    known = ESTIMATORS.options(Variant.of(arm).estimator)
    options = (
        recipe.estimator.get(name, default) if name in known else "–"
        for name, default in (("exponent", 1.0), ("clip", 0.0))
    )
    told = (each if isinstance(each, str) else plain(float(each)) for each in options)  # a clip may be 5%
    return [named(arm), *(plain(value) for value in (*sizes, *rest)), *told]
