"""What a target makes of models."""

import pickle
from collections import OrderedDict

import numpy as np
import pytest

import stlf


def test_parameters_are_averaged_by_weight() -> None:
    first = {"w": np.array([[0.0, 2.0]], dtype=np.float32), "count": np.array(3)}
    second = {"w": np.array([[4.0, 2.0]], dtype=np.float32), "count": np.array(7)}
    both = stlf.combine([first, second], [0.75, 0.25])
    np.testing.assert_array_equal(both["w"], [[1.0, 2.0]])
    assert both["w"].dtype == np.float32
    # Whole numbers are those of the heaviest.
    assert both["count"] == 3
    # Weights need not add up to 1, and a model without weight is not looked at.
    again = stlf.combine({"a": first, "b": second, "c": None}, {"a": 3.0, "b": 1.0, "c": 0.0})
    np.testing.assert_array_equal(again["w"], both["w"])


def test_lists_of_arrays_are_models_too() -> None:
    both = stlf.combine([[np.zeros(2), np.ones(1)], [np.ones(2), np.ones(1)]], [1, 1])
    assert [part.tolist() for part in both] == [[0.5, 0.5], [1.0]]


@pytest.mark.parametrize(
    ("models", "weights", "message"),
    [
        ([{"w": np.zeros(1)}], [0.0], "a target without a model"),
        ([{"w": np.zeros(1)}], [-1.0], r"models\[0\]: -1.0 is not a valid weight"),
        ([{"w": np.zeros(1)}], [1.0, 2.0], "weights: 2 for 1 models"),
        ([{"w": np.zeros(1)}, {"w": np.zeros(2)}], [1, 1], r"models\[1\]: it has no w of shape"),
        ([{"w": np.zeros(1)}, {"w": np.zeros(1), "b": np.zeros(1)}], [2, 1], r"models\[1\]: only it has b"),
        ({"a": {"w": np.zeros(1)}}, {"a": 0.5, "b": 0.5}, "models: b has a weight, but no model"),
        ({"a": {"w": np.zeros(1)}}, [1.0], "they have no names"),
        ([object()], [1.0], "object is no model"),
    ],
)
def test_what_has_no_average_is_refused(models: object, weights: object, message: str) -> None:
    with pytest.raises(stlf.InputError, match=message):
        stlf.combine(models, weights)  # type: ignore[arg-type]


class Always:
    """Says the same of every sample, as scikit-learn's classifiers do."""

    def __init__(self, *row: float) -> None:
        self.row = row

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.tile(self.row, (len(x), 1))


def test_predictions_of_any_predictors_are_mixed() -> None:
    mixture = stlf.PredictionMixture({"a": Always(1, 0), "b": lambda x: np.tile([0, 1], (len(x), 1))}, {"a": 1, "b": 3})
    np.testing.assert_allclose(mixture(np.zeros((2, 1))), [[0.25, 0.75]] * 2)
    assert mixture.predict(np.zeros((2, 1))).tolist() == [1, 1]
    assert mixture.weights == {"a": 0.25, "b": 0.75}
    assert repr(mixture) == "PredictionMixture(25.0% a, 75.0% b)"


def test_what_is_no_probability_is_refused() -> None:
    for predictor, message in [
        (Always(3, -2), "not probabilities"),
        (Always(0.5, 0.1), "not probabilities"),
        (lambda x: np.zeros(len(x)), "predictions of shape"),
    ]:
        with pytest.raises(stlf.InputError, match=message):
            stlf.PredictionMixture([predictor], [1.0])(np.zeros((2, 1)))
    with pytest.raises(stlf.InputError, match=r"models\[1\]: predictions of shape"):
        stlf.PredictionMixture([Always(1, 0), Always(1, 0, 0)], [1, 1])(np.zeros((2, 1)))
    with pytest.raises(stlf.InputError, match="predicts nothing"):
        stlf.PredictionMixture([3], [1.0])


def test_a_plan_combines_what_its_targets_receive() -> None:
    fleet = stlf.Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
    plan = stlf.plan(fleet, [[0, 0.4], [0.4, 0]], {"gate": 0.1})
    assert plan.combine("roof", {"gate": [np.ones(1)]})[0] == 1
    assert plan.mixture("roof", {"gate": Always(1, 0)}).weights == {"gate": 1.0}
    with pytest.raises(stlf.InputError, match="gate is a source and receives nothing"):
        plan.combine("gate", {"gate": [np.ones(1)]})


def test_state_dicts_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    torch.manual_seed(0)
    made = [torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)) for _ in range(2)]
    made[1](torch.zeros(4, 2))  # counts a batch
    both = stlf.combine([model.state_dict() for model in made], [0.25, 0.75])
    assert type(both) is type(made[0].state_dict()) is OrderedDict
    expected = 0.25 * made[0][0].weight + 0.75 * made[1][0].weight
    torch.testing.assert_close(both["0.weight"], expected.detach())
    assert both["0.weight"].dtype == torch.float32
    assert both["1.num_batches_tracked"] == 1
    target = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    target.load_state_dict(both)
    mixture = stlf.PredictionMixture([lambda x, m=m: m(x).softmax(-1) for m in (target, target)], [1, 1])
    given = mixture(torch.zeros(4, 2))
    assert given.shape == (4, 3)
    assert mixture.predict(torch.zeros(4, 2)).shape == (4,)


def test_a_module_of_pytorch_is_taken_as_it_is() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 3)).train()
    rows = np.random.default_rng(0).normal(size=(5, 2))
    given = stlf.PredictionMixture({"gate": module}, {"gate": 1.0})(rows)
    module.eval()
    expected = module(torch.as_tensor(rows, dtype=torch.float32)).softmax(-1).detach().numpy()
    assert np.allclose(given, expected)
    # What gives probabilities already stays as it is, and the module is left as it was.
    shares = torch.nn.Sequential(module, torch.nn.Softmax(-1)).train()
    assert np.allclose(stlf.PredictionMixture([shares], [1.0])(rows), expected)
    assert shares.training


def test_a_mixture_can_be_saved_if_its_predictors_can() -> None:
    saved = pickle.dumps(stlf.PredictionMixture({"gate": Always(0.25, 0.75)}, {"gate": 1.0}))
    assert pickle.loads(saved)(np.zeros((2, 1))).tolist() == [[0.25, 0.75]] * 2
