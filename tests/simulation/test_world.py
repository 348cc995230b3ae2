"""A log and the part of a world that it shows; logs of other worlds are told apart, and why."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from tests.estimators.toys import random_world
from unveil.checksums import sealed
from unveil.data.describe import describe
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError
from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World, logit_moments


def hand_made(severity: float = 2.0) -> World:
    """One user, two items, two steps: exposure ½ and ¼ at step 0, ½ and ½ at step 1; the first item is liked more."""
    exposure = Factors.of(np.array([[1.0]]), np.array([[0.0], [-np.log(3)]]), np.array([[1.0], [0.0]]))
    relevance = Factors.constant(1, 2, 2).biased(item_V=np.array([np.log(4), 0.0]))
    return World(relevance, exposure, Vocabulary("u"), Vocabulary("ab"), np.zeros(1, np.int32), severity, {})


def test_exposure_and_relevance_worked_by_hand() -> None:
    world, user, step = hand_made(), np.array([0, 0]), np.array([0, 1])
    np.testing.assert_allclose(world.exposure(user, step), [[1 / 4, 1 / 16], [1 / 4, 1 / 4]], rtol=1e-6)
    np.testing.assert_allclose(world.exposure_of(user, np.array([1, 1]), step), [1 / 16, 1 / 4], rtol=1e-6)
    np.testing.assert_allclose(world.static_exposure(np.array([0])), [[1 / 4, 5 / 32]], rtol=1e-6)
    np.testing.assert_allclose(world.relevance(user, step), [[4 / 5, 1 / 2]] * 2, rtol=1e-6)
    np.testing.assert_allclose(world.relevance_of(user, np.array([0, 1]), step), [4 / 5, 1 / 2], rtol=1e-6)


def test_the_ideal_target_is_the_most_relevant_item() -> None:
    assert hand_made().ideal_target(np.array([0]), np.array([1])).tolist() == [0]


@given(st.floats(0.2, 5), st.floats(0.2, 5))
def test_exposure_falls_as_severity_rises(one: float, two: float) -> None:
    mild, harsh = (hand_made(p).exposure(np.array([0]), np.array([0])) for p in sorted([one, two]))
    assert (mild >= harsh).all()
    assert hand_made().with_severity(one).exposure_of(*np.zeros((3, 1), int)) == pytest.approx(0.5**one, rel=1e-5)


@pytest.mark.parametrize("severity", [0, -1, float("nan"), float("inf")])
def test_a_severity_out_of_range_is_refused(severity: float) -> None:
    with pytest.raises(UnveilError, match="severity"):
        hand_made().with_severity(severity)


def test_slots_run_from_each_users_first_step_to_the_last() -> None:
    world = World.builtin(WorldSpec(users=3, items=2, steps=4, shortest=1))
    object.__setattr__(world, "start_U", np.array([2, 0, 3], np.int32))
    user_S, step_S = world.slots()
    assert user_S.tolist() == [0, 0, 1, 1, 1, 1, 2]
    assert step_S.tolist() == [2, 3, 0, 1, 2, 3, 3]


def test_first_steps_that_do_not_fit_are_refused() -> None:
    world = hand_made()
    with pytest.raises(ValueError, match="first steps"):
        World(world.relevance_logits, world.exposure_logits, world.users, world.items, np.array([2]), 1, {})
    with pytest.raises(ValueError, match="differ in size"):
        World(world.relevance_logits, world.exposure_logits, world.users, Vocabulary("abc"), world.start_U, 1, {})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_default_log_is_shaped_like_a_real_one(seed: int) -> None:
    log = World.builtin(seed=seed).log(np.random.default_rng(seed))
    figures = describe(log)
    assert figures.users >= 595
    assert 11_000 < figures.interactions < 14_000
    assert figures.items > 280
    assert 0.5 < figures.skew.gini < 0.75
    assert figures.skew.top_10_percent > 0.35
    length_U = Sequences.of(log).length_U
    assert length_U.max() >= 45
    assert ((length_U >= 3) & (length_U <= 5)).sum() >= 10
    assert 1.5 < np.percentile(length_U, 75) / np.percentile(length_U, 25) < 6
    assert figures.too_short <= 10


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_relevance_is_personal_and_exposure_unequal(seed: int) -> None:
    figures = World.builtin(seed=seed).describe()
    assert figures.favourites > 80
    assert figures.commonest_favourite < 0.12
    assert figures.exposure_gini > 0.4
    assert 5 < figures.exposed_per_slot < 20


def test_exposure_has_seasons_and_the_dials_turn_them_off() -> None:
    """How far one user's exposure to one item moves along the steps."""

    def swing(world: World) -> float:
        theta_TV = world.exposure(np.zeros(50, int), np.arange(50))
        return float(np.median(theta_TV.max(0) / theta_TV.min(0)))

    assert swing(World.builtin()) > 10
    assert swing(World.builtin(WorldSpec(season=0))) == pytest.approx(1)


def test_exposure_is_independent_of_relevance_unless_asked() -> None:
    def correlation(rho: float) -> float:
        world = World.builtin(WorldSpec(correlation=rho, season=0, tail=0))
        user_B = np.arange(world.n_users)
        step_B = np.full(len(user_B), 25)
        relevance, exposure = (
            f.logits(user_B, step_B).ravel() for f in (world.relevance_logits, world.exposure_logits)
        )
        return float(np.corrcoef(relevance, exposure)[0, 1])

    assert abs(correlation(0)) < 0.05
    assert correlation(0.7) == pytest.approx(0.7, abs=0.05)
    assert correlation(-1) == pytest.approx(-1, abs=0.01)


def test_a_world_without_personal_taste_has_one_favourite() -> None:
    assert World.builtin(WorldSpec(personal=0)).describe().favourites == 1


def test_the_description_agrees_with_the_whole_cube() -> None:
    world = World.builtin(WorldSpec(users=20, items=15, steps=10))
    figures, (user_S, step_S) = world.describe(), world.slots()
    gamma_SV, theta_SV = world.relevance(user_S, step_S), world.exposure(user_S, step_S)
    assert figures.slots == len(user_S)
    assert figures.relevance.mean == pytest.approx(gamma_SV.mean(), rel=1e-5)
    assert figures.relevance.over_items == pytest.approx(gamma_SV.mean(0).std(), rel=1e-4)
    by_user = [gamma_SV[user_S == user].mean() for user in range(20)]
    assert figures.relevance.over_users == pytest.approx(np.std(by_user), rel=1e-4)
    by_step = [theta_SV[step_S == step].mean() for step in range(10) if (step_S == step).any()]
    assert figures.exposure.over_steps == pytest.approx(np.std(by_step), rel=1e-4)
    assert figures.exposed_per_slot == pytest.approx(theta_SV.sum(1).mean(), rel=1e-5)


def test_a_parameter_out_of_range_is_refused() -> None:
    with pytest.raises(UnveilError, match=r"personal: .*found 1\.2, expected 0 to 1"):
        WorldSpec(personal=1.2)


def test_a_world_says_what_it_is() -> None:
    assert repr(World.builtin()) == "World(builtin: 600 users, 300 items, 50 steps, severity 2)"


SPEC = WorldSpec(users=30, items=40, steps=12, shortest=2)
WORLD = World.builtin(SPEC)


def log_of(world: World) -> Interactions:
    """As a file would have it: only users and items that occur."""
    return world.log(np.random.default_rng(0)).compact()


def test_the_part_that_is_shown_is_the_world_at_these_users_and_items() -> None:
    log = log_of(WORLD).where(np.arange(60)).compact()
    part = WORLD.aligned_with(log)
    assert 1 < part.n_items < WORLD.n_items
    assert (part.users, part.items) == (log.users, log.items)
    user_U, item_V = WORLD.users.index(log.users.ids), WORLD.items.index(log.items.ids)
    step_U = np.full(len(user_U), 7)
    here = np.arange(len(user_U))
    for name in ("exposure", "relevance"):
        whole = getattr(WORLD, name)(user_U, step_U)
        np.testing.assert_allclose(getattr(part, name)(here, step_U), whole[:, item_V], rtol=1e-5)
    np.testing.assert_array_equal(part.start_U, WORLD.start_U[user_U])


@pytest.mark.parametrize("severity", [0.5, 1.0, 3.0, 4.25])
def test_a_log_of_another_severity_is_told_by_it(severity: float) -> None:
    log = log_of(WORLD.with_severity(severity))
    told = f"it was drawn at severity {severity:g}, and the world has 2. .*--save-world"
    with pytest.raises(UnveilError, match=told):
        WORLD.aligned_with(log)
    assert WORLD.with_severity(severity).aligned_with(log).n_users == len(log.users)


@pytest.mark.parametrize("other", [WORLD.with_foresight(1), World.builtin(SPEC, seed=1)])
def test_a_log_of_another_exposure_is_refused(other: World) -> None:
    with pytest.raises(UnveilError, match="its propensities are not the exposure of this world"):
        WORLD.aligned_with(log_of(other))


def test_propensities_that_say_nothing_are_refused() -> None:
    log = log_of(WORLD)
    with pytest.raises(UnveilError, match="its propensities are not the exposure of this world"):
        WORLD.aligned_with(replace(log, propensity=np.ones(len(log))))


def test_a_log_without_propensities_is_taken_at_its_word() -> None:
    log = replace(log_of(WORLD), propensity=None)
    assert WORLD.aligned_with(log).n_items == len(log.items)


def test_what_else_does_not_fit_is_said() -> None:
    log = log_of(WORLD)
    assert log.step is not None
    strangers = Vocabulary([f"x{number:03d}" for number in range(len(log.users))])
    for other, why in (
        (replace(log, users=strangers), "its user 'x000' is not in the world"),
        (replace(log, step=log.step + 12), "and the world's last is 11"),
        (replace(log, step=None), "does not say at which step"),
    ):
        with pytest.raises(UnveilError, match=why):
            WORLD.aligned_with(other)


def logits(world: World) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Relevance and exposure of every slot and item."""
    relevance, exposure = (f.logits(*world.slots()) for f in (world.relevance_logits, world.exposure_logits))
    return relevance.astype(float), exposure.astype(float)


def mean_exposure(world: World) -> float:
    return float(world.exposure(*world.slots()).mean(dtype=np.float64))


def test_two_items_worked_by_hand() -> None:
    """Relevance logits 3 and 1 have mean 2 and deviation 1: exposure ½ each becomes σ(±2), and its mean stays ½."""
    relevance = Factors.constant(1, 2, 1).biased(item_V=np.array([3.0, 1.0]))
    level = Factors.constant(1, 2, 1)
    world = World(relevance, level, Vocabulary("u"), Vocabulary("ab"), np.zeros(1, np.int32), 1.0, {})
    assert logit_moments(world) == pytest.approx((2, 1))
    theta = world.with_foresight(2).exposure(np.array([0]), np.array([0]))[0]
    np.testing.assert_allclose(theta, [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))], rtol=1e-5)


@settings(max_examples=20)
@given(seed=st.integers(0, 99), strength=st.floats(-3, 3).filter(lambda x: abs(x) > 1e-3))
def test_exposure_moves_by_so_many_logits_a_standard_deviation_of_relevance(seed: int, strength: float) -> None:
    world = World.builtin(WorldSpec(users=15, items=20, steps=8, shortest=2), seed)
    relevance, before = logits(world)
    _, after = logits(world.with_foresight(strength))
    moved = after - before
    expected = strength * (relevance - relevance.mean()) / relevance.std()
    np.testing.assert_allclose(moved - moved.mean(), expected, atol=1e-4)


@pytest.mark.parametrize("severity", [1.0, 1.7, 3.0])
@pytest.mark.parametrize("strength", [-2.0, 0.5, 2.0])
def test_the_mean_exposure_stays_what_it_was(severity: float, strength: float) -> None:
    world = World.builtin(WorldSpec(users=60, items=50, steps=20)).with_severity(severity)
    assert mean_exposure(world.with_foresight(strength)) == pytest.approx(mean_exposure(world), rel=0.03)
    small = random_world().with_severity(severity)  # few enough slots for all to be looked at
    assert mean_exposure(small.with_foresight(strength)) == pytest.approx(mean_exposure(small), rel=1e-4)


def test_moments_are_those_of_all_slots_and_items() -> None:
    """Users who join late are there at fewer steps."""
    world = World.builtin(WorldSpec(users=30, items=12, steps=9, shortest=1, drift=0.9), seed=3)
    assert len(np.unique(world.start_U)) > 3
    relevance, _ = logits(world)
    assert logit_moments(world) == pytest.approx((relevance.mean(), relevance.std()), rel=1e-5)


def test_the_more_foresight_the_better_what_users_are_shown() -> None:
    world = World.builtin(WorldSpec(users=60, items=50, steps=20))
    user_S, step_S = world.slots()
    gamma = world.relevance(user_S, step_S)
    shown = [world.with_foresight(strength).exposure(user_S, step_S) for strength in (-1, 0, 1, 2)]
    of_the_shown = [float((theta * gamma).sum() / theta.sum()) for theta in shown]
    assert (np.diff(of_the_shown) > 0.02).all()


def test_relevance_and_all_else_stay() -> None:
    world = random_world()
    other = world.with_foresight(1.5)
    assert other.relevance_logits is world.relevance_logits
    assert (other.users, other.items, other.severity) == (world.users, world.items, world.severity)
    assert world.with_foresight(0) is world


def test_a_world_keeps_its_foresight_and_says_so(tmp_path: Path) -> None:
    world = random_world().with_foresight(1.0).with_foresight(0.5)
    world.save(tmp_path / "world")
    loaded = World.load(tmp_path / "world")
    assert loaded.origin == {"kind": "random", "foresight": 1.5}
    assert repr(loaded) == "World(random: 12 users, 7 items, 9 steps, severity 1, foresight 1.5)"
    slots = world.slots()
    np.testing.assert_array_equal(loaded.exposure(*slots), world.exposure(*slots))
    once = random_world().with_foresight(1.5)
    np.testing.assert_allclose(loaded.exposure(*slots), once.exposure(*slots), rtol=1e-4)


@pytest.mark.parametrize("strength", [float("nan"), float("inf")])
def test_a_foresight_that_is_no_number_is_refused(strength: float) -> None:
    with pytest.raises(UnveilError, match="foresight is out of range"):
        random_world().with_foresight(strength)


def test_relevance_that_is_the_same_everywhere_cannot_be_foreseen() -> None:
    world = World.builtin(WorldSpec(users=5, items=4, steps=3, contrast=0, shortest=1))
    with pytest.raises(UnveilError, match="equally relevant"):
        world.with_foresight(1)


@pytest.fixture
def world() -> World:
    return World.builtin(WorldSpec(users=12, items=9, steps=6, shortest=2), seed=4).with_severity(1.7)


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    world.save(tmp_path / "world")
    return tmp_path / "world"


def test_a_loaded_world_is_the_one_that_was_saved(world: World, folder: Path) -> None:
    loaded = World.load(str(folder))
    assert repr(loaded) == repr(world)
    assert loaded.origin == world.origin
    assert (loaded.users, loaded.items) == (world.users, world.items)
    user_S, step_S = world.slots()
    np.testing.assert_array_equal(loaded.exposure(user_S, step_S), world.exposure(user_S, step_S))
    np.testing.assert_array_equal(loaded.relevance(user_S, step_S), world.relevance(user_S, step_S))
    assert loaded.log(np.random.default_rng(3)) == world.log(np.random.default_rng(3))


def test_the_parts_have_the_usual_mode(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    assert {path.stat().st_mode for path in folder.iterdir()} == {(tmp_path / "usual").stat().st_mode}


def test_an_occupied_folder_is_kept_unless_told_otherwise(world: World, folder: Path) -> None:
    with pytest.raises(UnveilError, match="not empty"):
        world.with_severity(3).save(folder)
    assert World.load(folder).severity == 1.7
    world.with_severity(3).save(folder, overwrite=True)
    assert World.load(folder).severity == 3


def test_a_folder_that_is_no_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"not a world: expected a folder with a world\.json"):
        World.load(tmp_path)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def edit(path: Path, **changes: object) -> None:
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(sealed({name: each for name, each in content.items() if name != "seal"})))


@pytest.mark.parametrize("name", ["factors.safetensors", "ids.json", "world.json"])
def test_a_truncated_part_is_named(folder: Path, name: str) -> None:
    truncate(folder / name)
    with pytest.raises(UnveilError, match=f"{name}: .*cannot be read"):
        World.load(folder)


@pytest.mark.parametrize("name", ["factors.safetensors", "ids.json"])
def test_a_missing_part_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UnveilError, match=name):
        World.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "unveil world 9"}, "found 'unveil world 9', expected the format 'unveil world 1'"),
        ({"severity": "high"}, "damaged"),
        ({"severity": -2}, r"world\.json: the severity is out of range: found -2"),
        ({"severity": float("nan")}, r"world\.json: the severity is out of range: found nan"),
        ({"severity": 10**400}, "damaged"),
        ({"origin": None}, "damaged"),
        ({"origin": {"kind": "builtin", "foresight": "much"}}, "damaged world .*its foresight is not a number"),
    ],
)
def test_a_tampered_description_is_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    edit(folder / "world.json", **changes)
    with pytest.raises(UnveilError, match=message):
        World.load(folder)


def seal(folder: Path) -> None:
    """Hashes that fit the parts as they are now."""
    parts = {name: sha256((folder / name).read_bytes()).hexdigest() for name in ("ids.json", "factors.safetensors")}
    edit(folder / "world.json", parts=parts)


def test_a_number_that_was_changed_is_noticed(folder: Path) -> None:
    content = bytearray((folder / "factors.safetensors").read_bytes())
    content[-2] ^= 1
    (folder / "factors.safetensors").write_bytes(content)
    with pytest.raises(UnveilError, match=r"factors\.safetensors: not as it was written"):
        World.load(folder)


@pytest.mark.parametrize("parts", [None, [], {"ids.json": "0"}])
def test_hashes_that_are_none_are_refused(folder: Path, parts: object) -> None:
    edit(folder / "world.json", parts=parts)
    with pytest.raises(UnveilError, match=r"ids\.json: not as it was written"):
        World.load(folder)


def test_a_description_that_was_changed_is_noticed(folder: Path) -> None:
    about = folder / "world.json"
    written = about.read_text()
    about.write_text(written.replace('"severity": ', '"severity": 1'))
    with pytest.raises(UnveilError, match=r"world\.json: not as it was written"):
        World.load(folder)
    about.write_text(json.dumps({name: each for name, each in json.loads(written).items() if name != "seal"}))
    assert World.load(folder)  # as an earlier version wrote it


def test_a_file_is_no_world(folder: Path) -> None:
    with pytest.raises(UnveilError, match="not a world"):
        World.load(folder / "world.json")


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    (folder / "world.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnveilError, match=r"world\.json: .*cannot be read"):
        World.load(folder)


@pytest.mark.parametrize("changes", [{"items": ["a", "b"]}, {"items": 3}, {"items": [[], []]}, {"users": None}])
def test_ids_that_do_not_fit_the_factors_are_refused(folder: Path, changes: dict[str, object]) -> None:
    edit(folder / "ids.json", **changes)
    with pytest.raises(UnveilError, match=r"ids\.json: not as it was written"):
        World.load(folder)
    seal(folder)
    with pytest.raises(UnveilError, match="damaged world"):
        World.load(folder)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("relevance.P_UK", np.zeros((11, 9), np.float32)),
        ("relevance.P_UK", np.zeros(12, np.float32)),
        ("exposure.W_TK", np.zeros((6, 2), np.float32)),
        ("start_U", np.full(12, 6, np.int32)),
        ("start_U", np.zeros(12, np.float32)),
        ("start_U", np.zeros((12, 1), np.int32)),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(folder: Path, name: str, table: NDArray[np.generic]) -> None:
    path = folder / "factors.safetensors"
    save_file({**load_file(path), name: table}, path)
    seal(folder)
    with pytest.raises(UnveilError, match="damaged world"):
        World.load(folder)


def test_a_description_without_an_end_is_refused(folder: Path) -> None:
    (folder / "world.json").write_text("[" * 200_000)
    with pytest.raises(UnveilError, match=r"world\.json: .*cannot be read"):
        World.load(folder)


def test_a_list_is_not_a_description(folder: Path) -> None:
    (folder / "world.json").write_text("[]")
    with pytest.raises(UnveilError, match="expected a JSON object"):
        World.load(folder)


def test_factors_that_are_not_numbers_are_refused(world: World, tmp_path: Path) -> None:
    world.relevance_logits.P_UK[0, 0] = np.nan
    world.save(tmp_path / "broken")
    with pytest.raises(UnveilError, match="not all numbers"):
        World.load(tmp_path / "broken")
