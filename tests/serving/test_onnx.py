import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.evaluation.small import random_histories
from tests.run_folders import Finished
from unveil.data.slots import mask_token, pad_token, tokens_of
from unveil.errors import UnveilError
from unveil.models.base import Backbone, backbone
from unveil.serving.onnx_model import OnnxScorer, as_bytes, check_parity, checked_onnx, servable

ITEMS, LENGTH = 13, 9
FORMS = [
    ("bert4rec", {}),
    ("bert4rec", {"head": "untied", "heads": 4, "blocks": 1}),
    ("bert4rec", {"norm": "post", "blocks": 3}),
    ("sasrec", {}),
    ("sasrec", {"head": "untied", "norm": "post", "blocks": 1}),
    ("gru4rec", {}),
    ("gru4rec", {"head": "untied", "blocks": 2}),
]


def network(name: str, form: dict[str, object]) -> Backbone:
    """A network whose every weight matters: none is 0 or 1, as biases and norms are when they are made."""
    kind = backbone(name)
    model = kind(kind.Config(**{"width": 8, "length": LENGTH, **form}), ITEMS, seed=1)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return model.eval()


@pytest.fixture(scope="module", params=FORMS, ids=str)
def pair(request: pytest.FixtureRequest) -> tuple[Backbone, OnnxScorer]:
    model = network(*request.param)
    return model, OnnxScorer(as_bytes(model, LENGTH))


def test_it_scores_as_torch_does_whatever_the_batch_and_the_length(pair: tuple[Backbone, OnnxScorer]) -> None:
    @settings(max_examples=12, deadline=None)
    @given(st.lists(st.lists(st.integers(0, ITEMS - 1), max_size=LENGTH + 3), min_size=1, max_size=5))
    def check(histories: list[list[int]]) -> None:
        token_BL = tokens_of([np.array(history, np.int64) for history in histories], ITEMS, LENGTH)
        torch.testing.assert_close(pair[1].scores(token_BL), pair[0].scores(token_BL), rtol=1e-4, atol=2e-5)

    check()


def test_more_padding_changes_nothing(pair: tuple[Backbone, OnnxScorer]) -> None:
    bare = torch.tensor([[3, 1, mask_token(ITEMS)]])
    padded = torch.nn.functional.pad(bare, (4, 0), value=pad_token(ITEMS))
    torch.testing.assert_close(pair[1].scores(padded), pair[1].scores(bare), rtol=1e-4, atol=2e-5)


def test_the_same_weights_give_the_same_bytes() -> None:
    assert as_bytes(network("sasrec", {}), LENGTH) == as_bytes(network("sasrec", {}), LENGTH)


def test_the_file_says_how_to_ask() -> None:
    model = onnx.load_from_string(as_bytes(network("bert4rec", {}), LENGTH))
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert (about["n_items"], about["pad"], about["mask"], about["length"]) == ("13", "13", "14", "9")
    (asked,) = model.graph.input
    assert [axis.dim_param for axis in asked.type.tensor_type.shape.dim] == ["B", "L"]


def test_the_last_block_works_at_the_last_column_alone() -> None:
    """Of a network of one block, only keys and values are formed everywhere: everything else has one column."""
    model = onnx.load_from_string(as_bytes(network("bert4rec", {"blocks": 1}), LENGTH))
    widened, key = (
        next(n.output[0] for n in model.graph.node if any(part in i for i in [*n.input, n.op_type]))
        for part in ("Gelu", "blocks.0.key.bias")
    )
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in (widened, key))
    session = OnnxScorer(model.SerializeToString()).session
    token_BL = np.array([[1, 2, 3, 4, mask_token(ITEMS)]] * 2)
    wide, keys = session.run([widened, key], {"token_BL": token_BL})
    assert (wide.shape, keys.shape) == ((2, 1, 32), (2, 5, 8))


class Shifted:
    """A scorer that is off by a little at one item."""

    def __init__(self, model: Backbone, by: float) -> None:
        self.model, self.by = model, by

    def scores(self, token_BL: Tensor) -> Tensor:
        scores_BV = self.model.scores(token_BL).clone()
        scores_BV[:, 2] += self.by
        return scores_BV


def test_a_model_that_is_off_is_refused() -> None:
    sequences = random_histories(np.random.default_rng(0))
    kind = backbone("bert4rec")
    model = kind(kind.Config(width=8, length=LENGTH), sequences.n_items)
    assert check_parity(Shifted(model, 0.0), model, sequences, LENGTH) == 0
    for by in (0.01, float("nan")):
        with pytest.raises(UnveilError, match="the ONNX model differs from the network"):
            check_parity(Shifted(model, by), model, sequences, LENGTH)


class Silent(Shifted):
    """A scorer that has no number for those without a history, who are asked about last."""

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.model.scores(token_BL) * (1.0 if token_BL.shape[1] > 1 else float("nan"))


def test_what_is_no_number_is_a_difference_wherever_it_is_found() -> None:
    sequences = random_histories(np.random.default_rng(0))
    kind = backbone("bert4rec")
    model = kind(kind.Config(width=8, length=LENGTH), sequences.n_items)
    with pytest.raises(UnveilError, match="the ONNX model differs from the network: found 'nan'"):
        check_parity(Silent(model, 0.0), model, sequences, LENGTH)


def test_a_run_on_onnx_gives_the_lists_of_the_run(finished: Finished) -> None:
    recommender = finished.run.recommender
    content, difference = checked_onnx(recommender)
    assert len(content) > 1000
    assert 0 < difference < 1e-4
    lists, expected = servable(recommender).recommend(k=5).frame, recommender.recommend(k=5).frame
    assert lists["item_id"].to_list() == expected["item_id"].to_list()
    np.testing.assert_allclose(lists["score"], expected["score"], atol=1e-5)


def test_a_network_without_a_form_is_named() -> None:
    model = network("gru4rec", {})
    type(model).name, name = "gru5rec", type(model).name
    try:
        with pytest.raises(
            UnveilError,
            match="no ONNX form: found 'gru5rec', expected one of bert4rec, ease, gru4rec, item-knn, sasrec",
        ):
            as_bytes(model, LENGTH)
    finally:
        type(model).name = name
