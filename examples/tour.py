"""A tour: a log, its audit, the world behind it, training, comparison, recommendations and export, with plots.

It takes about half a minute of CPU time; `--users 60 --epochs 1` is faster, `-o FOLDER` names another folder.
Cells begin with `# %%`, so editors can run them one by one.
"""

# %% Settings
from argparse import ArgumentParser
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr

from unveil import Interactions, Recommender, World, describe
from unveil.audit import audit
from unveil.data.writers import write
from unveil.evaluation.result import compare
from unveil.runs.config import Experiment
from unveil.runs.report import measure_dial
from unveil.runs.train import run
from unveil.serving.export import export_embeddings, export_onnx
from unveil.simulation.builtin import WorldSpec

parser = ArgumentParser(description=__doc__)
parser.add_argument("-o", "--output", type=Path, default=Path("tour"))
parser.add_argument("--users", type=int, default=600)
parser.add_argument("--epochs", type=int, default=40)
options, _ = parser.parse_known_args()
folder: Path = options.output
folder.mkdir(parents=True, exist_ok=True)
plots: dict[str, str] = {}


def keep(figure: Figure, name: str, says: str) -> None:
    """Save a plot, and remember what it says for the page."""
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=150)
    plots[name] = says
    print(f"{folder / name}.svg  {says}")


# %% A log: what users chose among what they were shown, in a built-in world with known ground truth
world = World.builtin(WorldSpec(users=options.users), seed=0)
world.save(folder / "world", overwrite=True)
write(world.log(np.random.default_rng(0)), folder / "log.csv")
log = Interactions.read(folder / "log.csv")  # any known format; use your own file here
print(describe(log))

# %% Its audit: nothing is trained
found = audit(log)
print(found.verdict)
for advice in found.advice:
    print(f"- {advice.title} ({advice.figure})")

# %% What no real log shows: how much of popularity is exposure, and how much relevance
world = world.aligned_with(log)
everybody, last = np.arange(world.n_users), np.full(world.n_users, world.n_steps - 1)
popularity = np.bincount(log.item, minlength=world.n_items)
exposure = world.static_exposure(everybody).mean(0)
relevance = world.relevance(everybody, last).mean(0)

figure = Figure(figsize=(8, 3.2), layout="constrained")
for axes, (name, values) in zip(
    figure.subplots(1, 2, sharey=True), {"exposure": exposure, "relevance": relevance}.items(), strict=True
):
    axes.scatter(values, popularity, s=10, alpha=0.6)
    rank = spearmanr(values, popularity).statistic
    axes.set(xlabel=f"mean true {name} of the item", title=f"rank correlation {rank:.2f}", yscale="log")
figure.axes[0].set_ylabel("interactions")
keep(figure, "popularity", "Popularity depends on both exposure and relevance.")

# %% Exposure changes over the steps: the three most exposed items
steps = np.arange(world.n_steps)
theta = np.stack([world.exposure(everybody, np.full(world.n_users, step)).mean(0) for step in steps])
figure = Figure(figsize=(8, 3), layout="constrained")
axes = figure.subplots()
for item in np.argsort(-exposure)[:3]:
    axes.plot(steps, theta[:, item], label=log.items[int(item)])
axes.set(xlabel="step", ylabel="mean true exposure θ")
axes.legend(frameon=False)
keep(figure, "seasons", "One propensity per item is not enough: exposure changes with the step.")

# %% Train: on the log as it is, with inverse propensities, with the exposure-corrected softmax, on the ground truth
estimators = ("naive", "itps", "corrected", "ideal")
changes = {"data.log": str(folder / "log.csv"), "data.world": str(folder / "world"), "training.epochs": options.epochs}
runs = {}
for name in estimators:
    place, settings = folder / "runs" / name, Experiment.of("quick", {**changes, "estimator.name": name})
    runs[name] = run(settings, place, resume=place.exists(), tell=lambda _: None)
    print(f"{name:<10} {len(runs[name].fitted.epochs)} epochs")

# %% Compare: paired tests on test interactions …
comparison = compare({name: each.evaluation for name, each in runs.items()})
print(comparison.table.filter(protocol="full", metric="NDCG", k=10).select("model", "mean", "low", "high", "place"))


# … and, as this is a simulated world, by true relevance
def true_relevance(recommender: Recommender) -> NDArray[np.float64]:
    """The mean true relevance of the ten items recommended to each user."""
    gamma_UV = world.relevance(everybody, last)
    lists = recommender.recommend(log.users.ids.to_list(), k=10).frame
    item_UK = log.items.index(lists["item_id"]).reshape(-1, 10)
    mean_U: NDArray[np.float64] = np.take_along_axis(gamma_UV, item_UK, axis=1).mean(axis=1, dtype=np.float64)
    return mean_U


by_log = {name: each.evaluation.value("full", "NDCG", 10) for name, each in runs.items()}
by_truth = {name: float(true_relevance(each.recommender).mean()) for name, each in runs.items()}
figure = Figure(figsize=(8, 3), layout="constrained")
metrics = {"NDCG@10 of the test interaction": by_log, "true relevance of the ten items": by_truth}
for axes, (title, value) in zip(figure.subplots(1, 2), metrics.items(), strict=True):
    bars = axes.barh(estimators, list(value.values()))
    axes.bar_label(bars, fmt="%.3f", padding=3)
    axes.margins(x=0.2)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
keep(figure, "metrics", "Two metrics, two orders: test interactions, and true relevance.")

# %% Recommend: raw ids in, raw ids out, with adjustable novelty
recommender = Recommender.load(folder / "runs" / "corrected")
history = [log.items[int(item)] for item in np.argsort(-popularity)[:3]]
for novelty in (0.0, 0.5):
    lists = recommender.recommend_for([history], recommender.choice(5, novelty=novelty)).frame
    print(f"after {', '.join(history)} with novelty {novelty:g}: {', '.join(lists['item_id'])}")

points = measure_dial(folder / "runs" / "corrected")
figure = Figure(figsize=(8, 3), layout="constrained")
axes = figure.subplots()
axes.plot([point["coverage"] for point in points], [point["recall"] for point in points], marker="o")
for point in points:
    axes.annotate(f"{point['novelty']:g}", (point["coverage"], point["recall"]), (4, 4), textcoords="offset points")
axes.set(xlabel="catalogue coverage", ylabel="Recall@10 of the test interactions")
keep(figure, "dial", "Accuracy against coverage, for novelty from 0 to 1.")

# %% Export: for other programs, and for the server
export = folder / "export"
export.mkdir(exist_ok=True)
onnx = export_onnx(recommender, export / "model.onnx", overwrite=True)
for path, about in (onnx | export_embeddings(recommender, export, overwrite=True)).items():
    print(f"{path}: {about}")
print(f"serve it: unveil serve {folder / 'runs' / 'naive'} {folder / 'runs' / 'corrected'}")

# %% The page
shown = "".join(f'<h2>{escape(says)}</h2><img src="{name}.svg" alt="{escape(says)}">' for name, says in plots.items())
style = "body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif } img { width: 100% }"
head = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
page = f"{head}<title>A tour of unveil</title><style>{style}</style><h1>A tour of unveil</h1>"
(folder / "index.html").write_text(f"{page}<p>{escape(found.verdict)}</p>{shown}</html>\n", encoding="utf-8")
print(f"open {folder / 'index.html'}")
