"""What a person sees while the demo runs."""

import io

from rich.console import Console

from unveil.experiment.demo.progress import DemoBar, DemoLines, demo_watcher
from unveil.training.checkpoint import Best, Epoch
from unveil.training.progress import Plan


def told(*, terminal: bool, epochs: int = 4) -> tuple[str, object]:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system=None)
    with demo_watcher(2, console) as watch:
        for name in ("naive", "itps"):
            watch.next(name)
            watch.start(Plan(epochs=epochs, batches=3, done=0, monitor="NDCG@10"))
            for number in range(1, epochs + 1):
                for _ in range(3):
                    watch.batch(5.0)
                watch.epoch(Epoch(number, 5.0, 1e-3, 100, 0.1, None), Best(number, 0.125))
            watch.stop()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue(), watch


def test_a_file_gets_a_few_lines_with_loss_epoch_and_time_left() -> None:
    text, watch = told(terminal=False, epochs=7)
    assert isinstance(watch, DemoLines)
    lines = text.splitlines()
    assert [line.split(" · ")[:2] for line in lines] == [
        [f"{place}/2 {name:<5}", f"epoch {epoch}/7"]
        for place, name in ((1, "naive"), (2, "itps"))
        for epoch in (3, 6, 7)
    ]
    assert "loss 5.000 · best validation NDCG@10 0.125" in lines[0]
    assert lines[-1].endswith("about 0 s left")


def test_a_terminal_gets_one_bar_for_all_trainings() -> None:
    text, watch = told(terminal=True)
    assert isinstance(watch, DemoBar)
    for piece in ("2/2 itps", "epoch 4/4", "best 0.125", "left"):
        assert piece in text
    assert watch.bar.finished
