"""Small commands of every kind. Each case runs in a folder of its own, where `in` holds the inputs."""

from collections.abc import Mapping
from dataclasses import dataclass

ESTIMATORS = (
    *("consideration", "corrected", "corrected-sampled", "corrected-taught", "doubly-robust", "ever", "ever-rated"),
    *("ideal", "ips", "itps", "itps-shrunk", "logit-adjustment", "naive", "naive-sampled", "rational", "tempered"),
)
PROPENSITIES = ("popularity", "damped", "recorded", "noisy", "joint")

FEW = {
    "corrected-taught": "--set estimator.batches=50",
    **dict.fromkeys(("recorded", "joint"), "--set propensity.batches=50"),
}
_LEARNT = ("joint-rated", "joint", "rated", "recorded")
_FEW_BATCHES = " ".join(f"--set {name}-{kind}:batches=20" for name in _LEARNT for kind in ("static", "temporal"))

_LEARNT_IN = "--set propensity.name=learnt-temporal --set propensity.path=learnt"
_TINY = "--set model.width=8 --set task.batch_size=16 --set training.epochs={epochs} --set training.validate_every=1"
_SHORT = f"{_TINY} --set model.length=8 --set training.threads=1 --set training.device=cpu"
BERT = "--set model.name=bert4rec"
SHORT, SHORTEST, ONE = _SHORT.format(epochs=2), _SHORT.format(epochs=1), f"{BERT} {_TINY.format(epochs=1)}"
STUDY = f"--data in/world --preset quick --negatives 5 --jobs 1 {ONE}"
WORLD = "in/drawn.csv.gz --world in/world"


@dataclass(frozen=True)
class Case:
    """Commands that are run one after another, and whether any of them trains a network."""

    commands: tuple[str, ...]
    trains: bool = True
    folders: tuple[str, ...] = ()  #: Copied from `folders/`, where an older version wrote them.
    stopped: bool = False  #: By a command that was killed; the recording is of an unbroken one.

    def unbroken(self) -> "Case":
        """The same from the beginning."""
        return Case(tuple(words.replace(" --resume", "") for words in self.commands), self.trains)


def _train(name: str, *options: str) -> str:
    return " ".join(["train --preset quick", *options, "--no-page -o", name])


_UNTRAINED: Mapping[str, tuple[str, ...]] = {
    "data": (
        "data describe in/log.csv --json",
        "data describe in/shown.csv.gz --json --min-item 5 --min-user 5 --iterate",
        "data convert in/drawn.csv.gz -o drawn.parquet",
        "data convert in/rated.csv.gz -o rated.inter --min-rating 3",
        "data convert in/ratings.dat.gz -o ratings.jsonl --min-item 40",
        "data pack drawn.parquet -o packed",
        "data pack packed --check",
        "data describe packed --json",
        "data describe nowhere.csv",
    ),
    "audit": ("audit in/drawn.csv.gz -o audit/index.html",),
    "world": (
        "world describe in/world --json",
        "world describe builtin --json --severity 2",
        "world draw in/world -o drawn.csv --severity 2 --foresight 0.5 --stars --impressions 0.3 --save-world severe",
        "world draw in/world -o chance.csv --choice categorical_exposed --no-relevance-draw",
        "world draw in/world -o all.csv --choice rational_all --seed 3",
        "world describe severe --json",
    ),
    "world-fit": (
        "world fit in/rated.csv.gz -o posterior --steps 20 --set width=3 --set sweeps=6 --set burn_in=3",
        "world fit in/rated.csv.gz -o regularised --recipe regularised --steps 20 --set width=3 --set epochs=2",
        "world fit in/rated.csv.gz -o paper --recipe paper --steps 20 --set width=3 --set epochs=2",
        "world draw posterior -o drawn.csv --severity 0.3",
    ),
    "propensity-fit": (
        "propensity fit in/shown.csv.gz -o learnt --set width=2 --set epochs=2 --set batch=256",
        "propensity describe learnt --json",
    ),
    "propensity-score": (
        f"propensity score in/drawn.csv.gz --world in/world -o scores --slots 100 {_FEW_BATCHES}",
        "propensity positions in/placed.csv.gz --draws 10 --json",
    ),
    "fig1": ("reproduce fig1 in/ratings.dat.gz --titles in/movies.dat -o fig1 --draws 2",),
    "theory": ("theory --draws 2 --severity 2 --seed 3 -o theory",),
}

_TRAINED: Mapping[str, tuple[str, ...]] = {
    **{
        f"train-{name}": (_train("run", WORLD, BERT, "--no-page -e", name, SHORTEST, FEW.get(name, "")),)
        for name in ESTIMATORS
    },
    **{
        f"train-{name}": (_train("run", "in/log.csv --no-page --model", name, SHORTEST),)
        for name in ("sasrec", "gru4rec")
    },
    "train-propensities": tuple(
        _train(name, WORLD, BERT, "-e corrected", SHORTEST, f"--set propensity.name={name}-temporal", FEW.get(name, ""))
        for name in PROPENSITIES
    ),
    "runs": (
        f"train in/log.csv -o itps --preset quick -e itps --model bert4rec {SHORT}",
        _train("naive", "in/log.csv -e naive --model sasrec", SHORT),
        "evaluate itps --json",
        "compare itps naive -o compared/index.html",
        "report itps naive -o report",
        "recommend itps -k 5 --as jsonl",
        "recommend naive -k 5 -o lists.csv --keep-seen --novelty 0.5",
        "recommend itps --history 001,002,003 -k 3 --reasons 2 --as jsonl",
        "recommend itps --dial -o dial.html",
        "export itps --onnx --embeddings --weights --as csv -o exported",
    ),
    "tune": (f"tune in/log.csv --space in/space.toml --trials 2 --replicates 1 -o study {BERT} {SHORTEST}",),
    "loop": (f"loop in/log.csv -o loop --rounds 2 -k 5 --jobs 1 -e naive,itps,popularity,random {BERT} {SHORTEST}",),
    "loop-world": (
        f"loop {WORLD} -o loop --rounds 2 -k 5 --jobs 1 -e naive --response relevant --retrain warm {BERT} {SHORTEST}",
    ),
    "rq1-rq3": (
        f"reproduce rq1 -o rq1 --replicates 2 {STUDY}",
        f"reproduce rq3 -o rq3 --replicates 2 --from rq1 {STUDY}",
    ),
    "rq2": (f"reproduce rq2 -o out --replicates 2 --severity 1 --severity 2 --estimators naive,itps,ideal {STUDY}",),
    "rq4": (
        (
            "reproduce rq4 --data in/log.csv -o out --replicates 2 --min-item 0 --min-user 0 --negatives 5 "
            f"--preset quick --tuned-for ml-1m --jobs 1 {ONE}"
        ),
    ),
    "rq5": (f"reproduce rq5 in/log.csv -o out --rounds 1 --replicates 2 --jobs 1 --preset quick -e naive,itps {ONE}",),
    "beyond": (
        (
            "reproduce beyond -o out --worlds 1 --replicates 2 --severity 1 --severity 2 "
            f"--estimators naive,corrected,ever,ideal {STUDY}"
        ),
    ),
    "assumptions": (
        (
            "reproduce assumptions -o out --replicates 2 --severities 1,2 --foresights 0,1 "
            "--choices rational_exposed,rational_all --propensities true,noisy:1 "
            f"--estimators naive,itps,ideal {STUDY}"
        ),
    ),
    "recipe": (f"reproduce recipe -o out --replicates 2 --severity 1 --severity 2 {STUDY}",),
    "advise": (
        (
            "advise in/rated.csv.gz -o advice --users 30 --steps 10 --replicates 2 --choices rational_exposed "
            f"--severities 1 --estimators corrected --propensities popularity --clips none --jobs 1 {ONE}"
        ),
    ),
    "demo": ("demo -o demo --users 60 --epochs 1 --replicates 2",),
}

LONG = _SHORT.format(epochs=8)
_OLD: Mapping[str, Case] = {
    "old-runs": Case(
        (
            "evaluate run-itps --json --no-page",
            "recommend run-itps -k 3 --as jsonl",
            "recommend saved -k 3 --as jsonl",
            "recommend run-naive -k 3 --novelty 0.5 --as jsonl",
            "compare run-itps run-naive -o compared.csv",
            "export run-itps --embeddings --weights --as csv -o exported",
            f"train in/log.csv -o run-itps -e itps --no-page --model bert4rec {SHORT} --resume",
        ),
        folders=("run-itps", "run-naive", "saved"),
    ),
    "old-data": Case(
        (
            "data describe packed --json",
            "data pack packed --check",
            "data convert packed -o packed.csv",
            "world describe fitted --json",
            "world draw fitted -o drawn.csv --severity 0.3 --ratings",
            "propensity describe learnt --json",
            _train(
                "run", "in/shown.csv.gz", BERT, SHORTEST, "-e itps --set propensity.name=learnt-temporal", _LEARNT_IN
            ),
        ),
        folders=("packed", "fitted", "learnt"),
    ),
    "old-configs": Case(
        (
            "train in/drawn.csv.gz --config configs/every.toml -o every --no-page",
            "train in/log.csv --config configs/short.toml -o short --no-page -e naive",
            "train in/log.csv --config study/best.toml -o best --no-page",
        ),
        folders=("configs", "study"),
    ),
    "old-study": Case(
        (f"tune in/log.csv --space in/space.toml --trials 2 --replicates 1 -o study {BERT} {SHORTEST}",),
        folders=("study",),
    ),
}

_STOPPED: Mapping[str, str] = {
    "stopped-run": f"train in/log.csv -o stopped-run -e itps --no-page --model bert4rec {LONG} --resume",
    "stopped-rq1": f"reproduce rq1 -o stopped-rq1 --replicates 2 {STUDY}",
    "stopped-loop": f"loop in/log.csv -o stopped-loop --rounds 6 -k 5 --jobs 1 -e naive {BERT} {SHORTEST} --resume",
}

CASES: Mapping[str, Case] = {
    **{name: Case(commands, trains=False) for name, commands in _UNTRAINED.items()},
    **{name: Case(commands) for name, commands in _TRAINED.items()},
    **_OLD,
    **{name: Case((words,), folders=(name,), stopped=True) for name, words in _STOPPED.items()},
}
