"""The last section of the demo's page: the world, the split, the training and the judging, for those who repeat it."""

from unveil.experiment.demo.files import interval
from unveil.experiment.demo.run import Demo, Shown
from unveil.report.names import named
from unveil.report.page import Block, Code, Column, Note, Table, Text, plain
from unveil.settings import plain as as_tree
from unveil.simulation.builtin import WorldSpec


def made(shown: Shown) -> list[Block]:
    """How to get the same figures again, and what they stand on."""
    truth, trial = shown.truth, shown.outcome.trials[0]
    world, spec = truth.world.describe(), WorldSpec(**truth.world.origin["spec"])
    return [
        Text(
            "At every step of a user, each item is shown with probability θ; of what is shown, the user takes the item "
            "of highest γ, and is pleased with it with probability γ. If so, the log gets an event with its own step "
            "and its true propensity. Users may take an item again, as in the data of the paper that this follows."
        ),
        Note(
            f"Relevance is personal: at the last step the {world.users:,} users have {world.favourites} different "
            f"favourites, and the commonest of these is shared by {world.commonest_favourite:.1%} of them."
        ),
        Text(
            f"The last event of a history is its test case, the one before it the validation case, the rest is for "
            f"training: {len(trial.split.train):,} events. For the evaluation on true relevance the target of a case, "
            f"validation and test alike, is replaced by the item of highest γ at its own user and step; of these "
            f"targets {trial.unlearnable:.1%} were never taken in the training part. Since users may come back to an "
            f"item, what they have taken before competes like everything else. Equal scores count against the target. "
            f"Intervals: {interval(shown.outcome)}."
        ),
        _training(shown.demo),
        _world(spec),
        Text(
            "Beside this page lie every figure (results.csv, results.json), the log (log.csv) and the world (world/). "
            "To run all of it again, to draw the log again, and to train on it with settings of your own:"
        ),
        Code(_commands(shown.demo)),
        Text(f"Fingerprint of the log: {truth.log.fingerprint()[:16]}."),
    ]


def _training(demo: Demo) -> Table:
    recipe = demo.recipe
    network, task, training = recipe.model, recipe.task, recipe.training
    heads = as_tree(network)["heads"]
    return Table(
        "The training, the same for every loss",
        [Column("setting"), Column("value")],
        [
            ["losses", ", ".join(named(name) for name in demo.estimators)],
            ["network", f"BERT4Rec, width {network.width}, {network.blocks} block, {heads} heads"],
            ["history", f"the last {network.length} events; each hidden with probability {task.mask_probability:g}"],
            ["rows in which only the last event is hidden", f"{task.last_share:.0%}"],
            ["epochs, rows in a batch", f"{training.epochs}, {task.batch_size}"],
            ["learning rate", f"{training.lr:g}, {training.schedule} decay, dropout {network.dropout:g}"],
            ["kept", f"the best validation {training.monitor}, one every {training.validate_every} epochs"],
            ["seeds", ", ".join(str(demo.seed + replicate) for replicate in range(demo.replicates))],
        ],
        sortable=False,
    )


def _world(spec: WorldSpec) -> Table:
    return Table(
        "The parameters of the world",
        [Column("parameter"), Column("value", True), Column("meaning")],
        [[name, plain(value), says] for name, value, says in spec.sentences()],
        sortable=False,
    )


def _commands(demo: Demo) -> str:
    size = f"--users {demo.spec.users} --epochs {demo.recipe.training.epochs} --replicates {demo.replicates}"
    return (
        f"unveil demo --seed {demo.seed} {size}\n"
        f"unveil world draw demo/world --seed {demo.seed} -o log.csv\n"
        f"unveil train log.csv -o run --world demo/world --estimator itps"
    )
