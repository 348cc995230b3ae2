"""What a person reads: a bar on a terminal, lines in a file."""

import io

from rich.console import Console

from unveil.training.checkpoint import Best, Epoch
from unveil.training.progress import Lines, Live, Plan, watcher

FIRST = Epoch(4, 7.25, 1e-3, 100, 1.5, None)
SECOND = Epoch(5, 6.5, 1e-3, 100, 1.5, {"NDCG@10": 0.125, "MRR": 0.1})


def told(*, terminal: bool) -> tuple[str, object]:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system=None)
    watch = watcher(console)
    watch.start(Plan(epochs=5, batches=2, done=3, monitor="NDCG@10"))
    for epoch, best in ((FIRST, None), (SECOND, Best(5, 0.125))):
        for _ in range(2):
            watch.batch(epoch.loss)
        watch.epoch(epoch, best)
    watch.stop()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue(), watch


def test_a_file_gets_one_line_per_epoch() -> None:
    text, watch = told(terminal=False)
    assert isinstance(watch, Lines)
    assert text.splitlines() == [
        "epoch 4/5 · loss 7.2500 · 1.5 s",
        "epoch 5/5 · loss 6.5000 · 1.5 s · validation NDCG@10 0.1250 · best 0.1250 at epoch 5",
    ]


def test_a_terminal_gets_a_bar_with_loss_best_and_time() -> None:
    text, watch = told(terminal=True)
    assert isinstance(watch, Live)
    for piece in ("epoch 5/5", "loss 6.5000", "10/10", "0:00:00"):
        assert piece in text


def test_the_end_is_where_patience_ends_unless_validation_improves() -> None:
    plan = Plan(epochs=100, batches=2, done=0, monitor="NDCG@10", grace=6)
    assert [plan.end(best) for best in (None, Best(2, 0.1), Best(97, 0.1))] == [100, 8, 100]
    assert Plan(100, 2, 0, "NDCG@10").end(Best(2, 0.1)) == 100
    watch = watcher(Console(file=io.StringIO(), force_terminal=True, width=120))
    assert isinstance(watch, Live)
    watch.start(plan)
    watch.epoch(SECOND, Best(5, 0.125))
    assert watch.bar.tasks[0].total == 2 * 11
    watch.stop()
