"""Several processes and machines at one task against one: the same results, shown on the built-in world.

    python -m benchmarks.together -o FOLDER

Three demonstrations with the real command, on logs drawn from the built-in world: two processes on one study of thirty
trials; two data-parallel workers against one process; and a question on a Ray cluster of two machines, one of which is
killed in the middle, against the same question on this machine alone. Writes README.md with the tables, and the files
they are read from. Needs the extras `tune` and `ray`.
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PYTHON = [sys.executable, "-m"]
SPACE = """
"training.lr" = {low = 3e-4, high = 3e-2, log = true}
"model.dropout" = [0.0, 0.1, 0.2]
"model.width" = [8, 16, 32]
"""
TUNE = "tune log.csv --space space.toml --trials 30 --replicates 1 --set training.epochs=6 -o study"
TRAIN = "train log.csv --set model.dropout=0 --set training.epochs=20 --set training.validate_every=1 --no-page"
TORCHRUN = "--standalone --nproc-per-node 2 -m unveil"
QUESTION = "reproduce rq1 --data builtin --preset quick --set training.epochs=6 --replicates 3"


def begun(command: str, folder: Path, module: str = "unveil") -> "subprocess.Popen[str]":
    """The command, at work in the folder."""
    told = [*PYTHON, module, *command.split()]
    return subprocess.Popen(told, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: "subprocess.Popen[str]") -> str:
    """What it said; it is to end well."""
    said = process.communicate(timeout=1800)[0]
    if process.returncode:
        raise SystemExit(said)
    return said


def two_tuners(folder: Path) -> list[str]:
    """One study, two processes begun at the same moment."""
    import optuna

    from unveil.runs.tune.storage import opened

    (folder / "space.toml").write_text(SPACE)
    pair = [begun(TUNE, folder), begun(TUNE, folder)]
    for process in pair:
        ended(process)
    with opened(None, folder / "study") as place:
        trials = optuna.load_study(storage=place, study_name="study").trials
    complete = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    by = Counter(trial.user_attrs["worker"]["process"] for trial in complete)
    entries = Counter(trial.user_attrs["entry"] for trial in complete)
    twice, never = sum(entries.values()) - len(entries), 30 - len(entries)
    return [
        f"    unveil {TUNE}     # the same command in two terminals, at the same moment",
        "",
        "| trials complete | by the first process | by the second | done twice | never done |",
        "|---|---|---|---|---|",
        f"| {len(complete)} | {by[pair[0].pid]} | {by[pair[1].pid]} | {twice} | {never} |",
    ]


def two_workers(folder: Path) -> list[str]:
    """The validation curve of one process, and of two workers; without dropout, which would toss other coins."""
    ended(begun(f"{TRAIN} -o one", folder))
    ended(begun(f"{TORCHRUN} {TRAIN} -o two", folder, "torch.distributed.run"))
    names = ("one", "two")
    curves = [[json.loads(line) for line in (folder / name / "training.jsonl").open()] for name in names]
    rows = [(one["epoch"], _of(one), _of(two)) for one, two in zip(*curves, strict=True)]
    with (folder / "curve.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["epoch", "loss_one", "loss_two", "ndcg_one", "ndcg_two"])
        table.writerows([epoch, one[0], two[0], one[1], two[1]] for epoch, one, two in rows)
    loss, figure = (max(abs(one[nth] - two[nth]) for _, one, two in rows) for nth in (0, 1))
    best = max(one[1] for _, one, _ in rows)
    return [
        f"    unveil {TRAIN} -o one",
        f"    torchrun {TORCHRUN} {TRAIN} -o two",
        "",
        "| epochs | best validation NDCG@10 of one process | largest difference of a loss | of a validation NDCG@10 |",
        "|---|---|---|---|",
        f"| {len(rows)} | {best:.4f} | {loss:.1e} | {figure:.1e} |",
    ]


def _of(epoch: dict[str, Any]) -> tuple[float, float]:
    return epoch["loss"], epoch["validation"]["NDCG@10"]


@contextmanager
def cluster() -> Iterator[Any]:
    """Two machines of one core each, both of them here."""
    from ray.cluster_utils import Cluster

    found: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        found.add_node(num_cpus=1)
        found.wait_for_nodes()
        yield found
    finally:
        found.shutdown()


def killed_machine(folder: Path) -> list[str]:
    """A grid on two machines, of which one is gone once a quarter of the cells are done."""
    ended(begun(f"{QUESTION} -o here", folder))
    cells = len(list((folder / "here" / "cells").glob("*.json")))
    with cluster() as machines:
        process = begun(f"{QUESTION} -o there --engine ray --address {machines.address}", folder)
        done = _wait(folder / "there" / "cells", cells // 4, process)
        machines.remove_node(next(iter(machines.worker_nodes)), allow_graceful=False)
        ended(process)
    here, there = folder / "here", folder / "there"
    same = (here / "results.csv").read_bytes() == (there / "results.csv").read_bytes() and _told(here) == _told(there)
    return [
        f"    unveil {QUESTION} -o here",
        f"    unveil {QUESTION} -o there --engine ray --address HEAD:6379     # two machines; one is killed",
        "",
        "| jobs | done when the machine was killed | done in the end | every figure is the same |",
        "|---|---|---|---|",
        f"| {cells} | {done} | {len(list((there / 'cells').glob('*.json')))} | {'yes' if same else 'no'} |",
    ]


def _wait(cells: Path, count: int, process: "subprocess.Popen[str]") -> int:
    while len(found := list(cells.glob("*.json"))) < count:
        if process.poll() is not None:
            raise SystemExit(ended(process) + "\nthe question was over before a machine could be killed")
        time.sleep(0.05)
    return len(found)


def _told(folder: Path) -> Any:
    """All that results.json says, but for the command."""
    return {name: each for name, each in json.loads((folder / "results.json").read_text()).items() if name != "command"}


PARTS = {
    "Two processes, one study": two_tuners,
    "Two workers, one training": two_workers,
    "Two machines, one of them killed": killed_machine,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args(arguments)
    asked.output.mkdir(parents=True, exist_ok=True)
    title, command, about = (__doc__ or "").strip().split("\n\n")
    text = ["# Together as alone", "", title.replace("\n", " "), "", command, "", about.replace("\n", " ")]
    with TemporaryDirectory() as name:
        folder = Path(name)
        ended(begun("world draw builtin -o log.csv", folder))
        for title, part in PARTS.items():
            start = time.monotonic()
            lines = part(folder)
            text += ["", f"## {title}", "", *lines, "", f"{time.monotonic() - start:.0f} seconds."]
            print("\n".join(text[-len(lines) - 5 :]), flush=True)
        for kept in ("study/trials.csv", "curve.csv", "here/results.csv"):
            shutil.copy(folder / kept, asked.output / kept.replace("/", "-"))
    (asked.output / "README.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
