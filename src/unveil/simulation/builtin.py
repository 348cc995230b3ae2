"""The built-in world, from a few parameters: personal relevance with fashions, long-tailed exposure with seasons."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import Vocabulary
from unveil.errors import UnveilError
from unveil.propensity.factors import Factors
from unveil.simulation.world import World


def _says(default: Any, sentence: str, least: float = 0.0, most: float = np.inf) -> Any:
    return field(default=default, metadata={"says": sentence, "least": least, "most": most})


@dataclass(frozen=True)
class WorldSpec:
    """What the built-in world is made of."""

    users: int = _says(600, "Number of users.", 1)
    items: int = _says(300, "Number of items.", 1)
    steps: int = _says(50, "Number of time steps; a user chooses at most one item a step.", 1)
    tastes: int = _says(8, "Dimensions of taste in which users and items meet.", 1)
    personal: float = _says(
        0.9, "Share of relevance that is the user's own taste; the rest is quality, alike for all.", 0, 1
    )
    contrast: float = _says(2.5, "Standard deviation of the relevance logit: how sharply users tell items apart.")
    liking: float = _says(-1.0, "Mean of the relevance logit: how much users like an item drawn at random.", -np.inf)
    drift: float = _says(0.5, "How far tastes come in and out of fashion along the steps; 0: never.")
    visible: float = _says(
        0.7, "Exposure of the most visible item, before season, targeting and severity.", 1e-6, 1 - 1e-6
    )
    tail: float = _says(0.4, "Exponent of the long tail: the item of visibility rank r has visible × r^−tail.")
    season: float = _says(1.2, "How far, in logits, an item's exposure rises and falls along the steps; 0: never.")
    targeting: float = _says(0.5, "How far, in logits, exposure differs from user to user.")
    correlation: float = _says(
        0.0, "Correlation of the targeted exposure with relevance; 0: independent, as in the paper.", -1, 1
    )
    shortest: int = _says(5, "Steps that the latest joiner is there for.", 1)
    stay: float = _says(0.4, "Median stay of a user, as a share of the steps; all stay until the last step.", 1e-6, 1)
    activity: float = _says(0.8, "Standard deviation of the logarithm of the stay: how unequal histories are.")
    severity: float = _says(2.0, "Exponent p of exposure: θ = ô^p.", 1e-6)

    def __post_init__(self) -> None:
        for each in fields(self):
            value, least, most = getattr(self, each.name), each.metadata["least"], each.metadata["most"]
            if not least <= value <= most or not np.isfinite(value):
                problem, expected = "a parameter of the built-in world is out of range", f"{least:g} to {most:g}"
                raise UnveilError(problem, where=each.name, found=value, expected=expected)

    def sentences(self) -> list[tuple[str, float, str]]:
        return [(each.name, getattr(self, each.name), each.metadata["says"]) for each in fields(self)]


def build(spec: WorldSpec, seed: int) -> World:
    """The world of a spec and a seed. Every part has its own stream: changing one leaves the others as they were."""
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)]
    relevance = _relevance(spec, streams[0])
    return World(
        relevance_logits=relevance,
        exposure_logits=_exposure(spec, relevance, streams[1]),
        users=_ids("u", spec.users),
        items=_ids("i", spec.items),
        start_U=_first_steps(spec, streams[2]),
        severity=spec.severity,
        origin={"kind": "builtin", "seed": seed, "spec": asdict(spec)},
    )


def _relevance(spec: WorldSpec, rng: np.random.Generator) -> Factors:
    """Logit = liking + contrast · (√personal · ⟨P_s, Q_i ∘ W_t⟩ + √(1 − personal) · quality_i)."""
    match = _match(spec, rng, _fashion(spec, rng))
    quality_V = rng.standard_normal(spec.items) * np.sqrt(1 - spec.personal)
    liking = Factors.constant(spec.users, spec.items, spec.steps, spec.liking)
    return liking.plus(match, spec.contrast * np.sqrt(spec.personal)).biased(item_V=spec.contrast * quality_V)


def _exposure(spec: WorldSpec, relevance: Factors, rng: np.random.Generator) -> Factors:
    """Logit = tail_i + season · cos 2π(t/T − φ_i) + targeting · (ρ · relevance + √(1 − ρ²) · own match)."""
    shown_V = spec.visible * (1.0 + rng.permutation(spec.items)) ** -spec.tail
    own = _match(spec, rng, np.ones((spec.steps, spec.tastes)))
    alike = spec.targeting * spec.correlation / max(spec.contrast, 1e-6)
    apart = spec.targeting * np.sqrt(1 - spec.correlation**2)
    return (
        Factors.constant(spec.users, spec.items, spec.steps, -alike * spec.liking)
        .biased(item_V=np.log(shown_V / (1 - shown_V)))
        .plus(_seasons(spec, rng))
        .plus(relevance, alike)
        .plus(own, apart)
    )


def _match(spec: WorldSpec, rng: np.random.Generator, W_TK: NDArray[np.float64]) -> Factors:
    """⟨P_s, Q_i ∘ W_t⟩ of variance one: normal tastes, and items of length one, lest a long one be liked by all."""
    P_UK = rng.standard_normal((spec.users, spec.tastes))
    Q_VK = rng.standard_normal((spec.items, spec.tastes))
    return Factors.of(P_UK, Q_VK / np.linalg.norm(Q_VK, axis=1, keepdims=True), W_TK)


def _fashion(spec: WorldSpec, rng: np.random.Generator) -> NDArray[np.float64]:
    """W_tk = (1 + drift · sin 2π(t/T + φ_k)) / √(1 + drift²/2): each taste swells and fades once along the steps."""
    phase_K = rng.random(spec.tastes)
    wave_TK: NDArray[np.float64] = np.sin(2 * np.pi * ((np.arange(spec.steps) / spec.steps)[:, None] + phase_K))
    return (1 + spec.drift * wave_TK) / float(np.sqrt(1 + spec.drift**2 / 2))


def _seasons(spec: WorldSpec, rng: np.random.Generator) -> Factors:
    """season · cos 2π(t/T − φ_i) = season · (cos 2πφ_i · cos 2πt/T + sin 2πφ_i · sin 2πt/T): two factors."""
    peak_V = 2 * np.pi * rng.random(spec.items)
    time_T = 2 * np.pi * (np.arange(spec.steps) / spec.steps)
    Q_VK = spec.season * np.stack([np.cos(peak_V), np.sin(peak_V)], axis=1)
    return Factors.of(np.ones((spec.users, 2)), Q_VK, np.stack([np.cos(time_T), np.sin(time_T)], axis=1))


def _first_steps(spec: WorldSpec, rng: np.random.Generator) -> NDArray[np.int32]:
    """T − stay, where log stay is normal: users join late, and all are there at the end."""
    stay_U = spec.steps * spec.stay * np.exp(spec.activity * rng.standard_normal(spec.users))
    whole_U = np.clip(np.round(stay_U), min(spec.shortest, spec.steps), spec.steps)
    return (spec.steps - whole_U).astype(np.int32)


def _ids(letter: str, count: int) -> Vocabulary:
    width = max(4, len(str(count)))
    return Vocabulary([f"{letter}{number:0{width}d}" for number in range(1, count + 1)])
