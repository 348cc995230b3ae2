"""Users, items and steps whose true relevance and exposure are known.

Shapes: U users, V items, T steps, S slots, B slots requested, M (user, item, step) triples.
"""

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as as_bytes

from unveil.checksums import check_file, check_seal, sealed
from unveil.data.indexing import UNKNOWN, Vocabulary
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError, check_range
from unveil.files import atomic_folder
from unveil.propensity.factors import Factors, Floats, Indices, sigmoid
from unveil.simulation.choice import CHOICES
from unveil.simulation.generate import Progress, draw, ratings

if TYPE_CHECKING:
    from unveil.simulation.builtin import WorldSpec
    from unveil.simulation.describe import WorldDescription

#: Times of drawn logs, in microseconds.
_FIRST_DAY, _DAY, _SECOND = np.datetime64("2024-01-01", "us").astype(np.int64), 86_400_000_000, 1_000_000
#: The files of a world.
_FORMAT = "unveil world 1"
_ABOUT, _IDS, _FACTORS = "world.json", "ids.json", "factors.safetensors"
_PARTS = ("P_UK", "Q_VK", "W_TK")
_HINT = "Name a folder that unveil wrote as a world, or draw the world again."


@dataclass(frozen=True, eq=False)
class World:
    """γ_sit = σ(relevance logit), θ_sit = σ(exposure logit)^p, both from factors; the U × V × T cube is never made.

    User s is there from step `start_U[s]` to T − 1. The higher `severity` p, the rarer and more unequal exposure.
    """

    relevance_logits: Factors
    exposure_logits: Factors
    users: Vocabulary
    items: Vocabulary
    start_U: NDArray[np.int32]
    severity: float
    origin: dict[str, Any]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.severity) and self.severity > 0):
            raise UnveilError("the severity is out of range", found=self.severity, expected="a number above 0")
        if not self.relevance_logits.shape == self.exposure_logits.shape == (self.n_users, self.n_items, self.n_steps):
            raise ValueError("relevance, exposure and vocabularies differ in size")
        whole = self.start_U.dtype.kind in "iu" and self.start_U.shape == (self.n_users,)
        if not whole or not ((self.start_U >= 0) & (self.start_U < self.n_steps)).all():
            raise ValueError(f"first steps that are not {self.n_users} whole numbers from 0 to {self.n_steps - 1}")

    @classmethod
    def builtin(cls, spec: "WorldSpec | None" = None, seed: int = 0) -> "World":
        """The world that is generated from a few parameters: no download, the same for the same seed."""
        from unveil.simulation.builtin import WorldSpec, build

        return build(spec or WorldSpec(), seed)

    @classmethod
    def open(cls, name: str, seed: int = 0) -> "World":
        return cls.builtin(seed=seed) if name == "builtin" else cls.load(name)

    def __repr__(self) -> str:
        source = self.origin.get("kind", "unknown origin")
        size = f"{self.n_users:,} users, {self.n_items:,} items, {self.n_steps} steps"
        foresight = f", foresight {self.origin['foresight']:g}" if "foresight" in self.origin else ""
        return f"World({source}: {size}, severity {self.severity:g}{foresight})"

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def n_steps(self) -> int:
        return len(self.exposure_logits.W_TK)

    def exposure(self, user_B: Indices, step_B: Indices) -> Floats:
        """θ_BV: how likely each item is to be seen at these slots."""
        return self.exposure_from(self.exposure_logits.logits(user_B, step_B))

    def exposure_of(self, user_M: Indices, item_M: Indices, step_M: Indices) -> Floats:
        return self.exposure_from(self.exposure_logits.logits_of(user_M, item_M, step_M))

    def exposure_from(self, logit: Floats) -> Floats:
        """θ = σ(logit)^p; small whole exponents, the paper's, by multiplication, far faster than a power."""
        shown = sigmoid(logit)
        if self.severity not in (1, 2, 3, 4):
            return np.asarray(shown ** np.float32(self.severity))
        theta = shown.copy()
        for _ in range(int(self.severity) - 1):
            theta *= shown
        return theta

    def static_exposure(self, user_B: Indices) -> Floats:
        """θ_BV averaged over all T steps: θ_si = (1/T) Σ_t θ_sit, what IPS takes for the propensity."""
        total_BV = np.zeros((len(user_B), self.n_items), np.float64)
        for step in range(self.n_steps):
            total_BV += self.exposure(user_B, np.full(len(user_B), step))
        return (total_BV / self.n_steps).astype(np.float32)

    def relevance(self, user_B: Indices, step_B: Indices) -> Floats:
        """γ_BV: how likely each item is to please at these slots."""
        return sigmoid(self.relevance_logits.logits(user_B, step_B))

    def relevance_of(self, user_M: Indices, item_M: Indices, step_M: Indices) -> Floats:
        return sigmoid(self.relevance_logits.logits_of(user_M, item_M, step_M))

    def ideal_target(self, user_B: Indices, step_B: Indices) -> NDArray[np.int64]:
        """argmax_i γ_sit: what a user who sees every item would choose."""
        return np.asarray(self.relevance_logits.logits(user_B, step_B).argmax(1))

    def slots(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """User and step of every slot, by user, then step: each user from their first step to T − 1."""
        length_U = self.n_steps - self.start_U
        user_S = np.repeat(np.arange(self.n_users, dtype=np.int32), length_U)
        to_the_end_S = np.repeat(np.cumsum(length_U), length_U) - np.arange(len(user_S))
        return user_S, (self.n_steps - to_the_end_S).astype(np.int32)

    def log(
        self,
        rng: np.random.Generator,
        choice: str = "rational_exposed",
        *,
        relevance_draw: bool = True,
        ratings_noise: float | None = None,
        stars: bool = False,
        impressions: float | None = None,
        progress: Progress | None = None,
    ) -> Interactions:
        """Draw a log: what users chose of what they were shown, each event with its own step and true propensity θ.

        With `ratings_noise` events are rated, with an error of that standard deviation; as `stars`, from 1 to 5. With
        `impressions`, that share of impressions without a click is recorded too, as rows with `clicked` False and no
        rating. Neither changes the events. A step is a day. Users and items have the world's dense indices.
        """
        rate, noise = impressions, ratings_noise
        check_range(rate is None or 0 < rate <= 1, "impressions", rate, "above 0, at most 1")
        check_range(noise is None or 0 <= noise < np.inf, "ratings_noise", noise, "0 or more")
        for_events, for_times = rng.spawn(2)
        model = CHOICES[choice]()
        events = draw(self, for_events, model, relevance_draw=relevance_draw, impressions=rate, progress=progress)
        second_U = for_times.integers(8 * 3600, 23 * 3600, self.n_users)
        return Interactions(
            user=events.user_N,
            item=events.item_N,
            users=self.users,
            items=self.items,
            time=_FIRST_DAY + events.step_N * np.int64(_DAY) + second_U[events.user_N] * _SECOND,
            rating=None if noise is None else ratings(self, events, noise, stars, rng.spawn(1)[0]),
            clicked=None if rate is None else events.clicked_N,
            propensity=self.exposure_of(events.user_N, events.item_N, events.step_N).astype(np.float64),
            step=events.step_N,
        )

    def with_severity(self, severity: float) -> Self:
        return replace(self, severity=severity)

    def with_foresight(self, strength: float) -> "World":
        """The world with exposure logit + strength · z + c, z the relevance logit standardised over slots and items.

        c keeps the mean of θ = σ(logit)^p at the world's severity p (set that first). Below 0, relevance is shown less.
        """
        if not np.isfinite(strength):
            raise UnveilError("the foresight is out of range", found=strength, expected="a number")
        if strength == 0:
            return self
        mean, deviation = logit_moments(self)
        if deviation < 1e-6 * max(1.0, abs(mean)):
            raise UnveilError("exposure cannot follow relevance: all items are equally relevant in this world")
        moved = self.exposure_logits.plus(self.relevance_logits, strength / deviation)
        moved = moved.plus(Factors.constant(*moved.shape, _same_mean(self, moved)))
        origin = {**self.origin, "foresight": self.origin.get("foresight", 0.0) + strength}
        return replace(self, exposure_logits=moved, origin=origin)

    def aligned_with(self, log: Interactions) -> "World":
        """The users and items of a log of this world, in the log's indices; after `log.compact()` those that occur."""
        user_U, item_V = self.users.index(log.users.ids), self.items.index(log.items.ids)
        for name, index, ids in (("user", user_U, log.users.ids), ("item", item_V, log.items.ids)):
            if (index == UNKNOWN).any():
                raise _does_not_fit(f"its {name} {ids[int(index.argmin())]!r} is not in the world")
        if log.step is None:
            raise _does_not_fit("it does not say at which step of the world its events were")
        if len(log) and int(log.step.max()) >= self.n_steps:
            raise _does_not_fit(f"it has a step {int(log.step.max())}, and the world's last is {self.n_steps - 1}")
        _check_exposure(self, log, user_U, item_V)
        return replace(
            self,
            relevance_logits=self.relevance_logits.of_only(user_U, item_V),
            exposure_logits=self.exposure_logits.of_only(user_U, item_V),
            users=log.users,
            items=log.items,
            start_U=self.start_U[user_U],
        )

    def describe(self) -> "WorldDescription":
        from unveil.simulation.describe import describe

        return describe(self)

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the world as a folder, whole or not at all: factors in safetensors, the rest in JSON."""
        ids = {"users": self.users.ids.to_list(), "items": self.items.ids.to_list()}
        logits = {"relevance": self.relevance_logits, "exposure": self.exposure_logits}
        tables = {f"{name}.{part}": getattr(table, part) for name, table in logits.items() for part in _PARTS}
        parts = {_IDS: json.dumps(ids).encode(), _FACTORS: as_bytes({**tables, "start_U": self.start_U})}
        about = {
            "format": _FORMAT,
            "severity": self.severity,
            "origin": self.origin,
            "parts": {name: sha256(part).hexdigest() for name, part in parts.items()},
        }
        with atomic_folder(folder, overwrite=overwrite) as draft:
            (draft / _ABOUT).write_text(json.dumps(sealed(about), indent=2) + "\n")
            for name, part in parts.items():
                (draft / name).write_bytes(part)

    @classmethod
    def load(cls, folder: Path | str) -> "World":
        folder = Path(folder)
        if not (folder / _ABOUT).is_file():
            raise UnveilError("not a world", where=folder, expected=f"a folder with a {_ABOUT}", hint=_HINT)
        about = _json(folder / _ABOUT)
        if about.get("format") != _FORMAT:
            problem, expected = "not a world this version can read", f"the format {_FORMAT!r}"
            raise UnveilError(problem, where=folder / _ABOUT, found=about.get("format"), expected=expected)
        check_seal(about, folder / _ABOUT, _HINT)
        ids, tables = _json(folder / _IDS), _read_tables(folder / _FACTORS)
        for name in (_IDS, _FACTORS):
            parts = about.get("parts")
            check_file(folder / name, parts.get(name, "") if isinstance(parts, dict) else "", _HINT)
        try:
            if not isinstance(about["origin"].get("foresight", 0.0), int | float):
                raise ValueError("its foresight is not a number")
            return cls(
                relevance_logits=Factors.of(*(tables[f"relevance.{part}"] for part in _PARTS)),
                exposure_logits=Factors.of(*(tables[f"exposure.{part}"] for part in _PARTS)),
                users=Vocabulary(ids["users"]),
                items=Vocabulary(ids["items"]),
                start_U=tables["start_U"],
                severity=float(about["severity"]),
                origin=dict(about["origin"]),
            )
        except UnveilError as error:
            where, wanted = folder / _ABOUT, error.expected
            raise UnveilError(error.problem, where=where, found=error.found, expected=wanted, hint=_HINT) from error
        except (AttributeError, KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
            raise UnveilError(f"a damaged world ({error})", where=folder, hint=_HINT) from error


def _check_exposure(world: "World", log: Interactions, user_U: Indices, item_V: Indices) -> None:
    if log.propensity is None or log.step is None:
        return
    some = slice(0, 1000)  # enough to tell worlds of the same size apart
    logged_M = log.propensity[some]
    theta_M = world.exposure_of(user_U[log.user[some]], item_V[log.item[some]], log.step[some]).astype(np.float64)
    if np.allclose(theta_M, logged_M, rtol=1e-3, atol=1e-9):
        return
    # log θ ∝ p: what the severity is to be multiplied by to give the logged propensities, if anything is.
    inside_M = (np.minimum(theta_M, logged_M) > 1e-30) & (np.maximum(theta_M, logged_M) < 1 - 1e-6)
    ratio = float(np.median(np.log(logged_M[inside_M]) / np.log(theta_M[inside_M]))) if inside_M.any() else 0.0
    if not ratio or not np.allclose(theta_M**ratio, logged_M, rtol=1e-2, atol=1e-9):
        raise _does_not_fit("its propensities are not the exposure of this world")
    raise _does_not_fit(f"it was drawn at severity {world.severity * ratio:.4g}, and the world has {world.severity:g}")


def _does_not_fit(why: str) -> UnveilError:
    hint = "Name the world that the log was drawn from; `unveil world draw` keeps it with --save-world DIR."
    return UnveilError(f"the log does not fit the world: {why}", hint=hint)


def logit_moments(world: "World") -> tuple[float, float]:
    """Mean and standard deviation of the relevance logit over all slots and items, from the factors alone.

    With a = P_s ∘ W_t, the logit is Σ_k a_k Q_ik: its moments are those of a over slots times those of Q over items.
    """
    Q_VK = world.relevance_logits.Q_VK.astype(np.float64)
    P_UK, W_TK = (table.astype(np.float64) for table in (world.relevance_logits.P_UK, world.relevance_logits.W_TK))
    # E[a] and E[a aᵀ] over the slots: users who join at the same step share their steps, so they go together.
    first_K, second_KK = np.zeros(P_UK.shape[1]), np.zeros((P_UK.shape[1], P_UK.shape[1]))
    for start in np.unique(world.start_U):
        P_BK, W_BK = P_UK[world.start_U == start], W_TK[start:]
        first_K += P_BK.sum(0) * W_BK.sum(0)
        second_KK += (P_BK.T @ P_BK) * (W_BK.T @ W_BK)
    slots = float((world.n_steps - world.start_U.astype(np.int64)).sum())
    mean = float(first_K / slots @ Q_VK.mean(0))
    square = float((second_KK / slots * (Q_VK.T @ Q_VK / len(Q_VK))).sum())
    return mean, float(np.sqrt(max(square - mean**2, 0.0)))


def _same_mean(world: "World", moved: Factors) -> float:
    """The constant that brings the mean of θ back to what it was, by halving: θ rises with it."""
    user_S, step_S = world.slots()
    spread = np.linspace(0, len(user_S) - 1, min(512, len(user_S))).astype(np.int64)
    user_B, step_B = user_S[spread], step_S[spread]
    logit_BV, before = moved.logits(user_B, step_B), world.exposure(user_B, step_B).mean(dtype=np.float64)

    def excess(constant: float) -> float:
        return float(world.exposure_from(logit_BV + np.float32(constant)).mean(dtype=np.float64) - before)

    low = high = 0.0
    while excess(low) > 0:
        low = 2 * low - 1
    while excess(high) < 0:
        high = 2 * high + 1
    for _ in range(30):  # an interval of a few logits
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return (low + high) / 2


def _read_tables(path: Path) -> dict[str, NDArray[Any]]:
    try:
        tables: dict[str, NDArray[Any]] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UnveilError(f"the factors of the world cannot be read ({error})", where=path, hint=_HINT) from error
    if not all(np.isfinite(table).all() for table in tables.values()):
        raise UnveilError("the factors of the world are not all numbers", where=path, hint=_HINT)
    return tables


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise UnveilError(f"a part of the world cannot be read ({error})", where=path, hint=_HINT) from error
    if not isinstance(content, dict):
        raise UnveilError("a part of the world is not as written", where=path, expected="a JSON object", hint=_HINT)
    return content
