"""Devices and their arrays."""

import numpy as np
import pytest

import stlf


def test_labels_of_minus_one_none_and_nan_are_none() -> None:
    x = np.zeros((4, 2), dtype=np.float32)
    for labels in ([0, 1, -1, -1], ["a", "b", None, None], [0.0, 1.0, np.nan, -1.0], np.array([0, 1, None, -1])):
        device = stlf.Device.of("d", x, labels)
        assert (device.labeled, device.unlabeled) == (2, 2), labels
        assert list(device.known) == [True, True, False, False]


def test_whole_arrays_are_split_by_domain_in_the_order_of_first_samples() -> None:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    fleet = stlf.Fleet.from_arrays(x, [0, 1, 2, 3, -1, -1], ["b", "b", "a", "a", "c", "b"])
    assert fleet.names == ["b", "a", "c"]
    assert [device.labeled for device in fleet] == [2, 2, 0]
    # The samples of b do not stand together, and are the right ones all the same.
    np.testing.assert_array_equal(fleet["b"].inputs, x[[0, 1, 5]])
    assert list(fleet["b"].labels) == [0, 1, -1]


def test_arrays_are_not_copied_where_they_need_not_be() -> None:
    x = np.zeros((6, 2), dtype=np.float32)
    together = stlf.Fleet.from_arrays(x, None, [1, 1, 2, 2, 2, 3])
    assert all(np.shares_memory(device.inputs, x) for device in together)
    assert np.shares_memory(stlf.Fleet.from_devices([(x, None)])["d1"].inputs, x)
    # What has another type or lies otherwise must be.
    assert not np.shares_memory(stlf.Fleet.from_devices([(x.T, None)])["d1"].inputs, x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stlf.Fleet.from_devices([]), "devices: there are none"),
        (lambda: stlf.Fleet.from_devices([(np.zeros((0, 2)), None)]), r"devices\[0\] \(d1\): it has no samples"),
        (lambda: stlf.Fleet.from_devices([([[1.0]], [1, 2])]), "d1: labels of shape"),
        (lambda: stlf.Fleet.from_arrays([[1.0]], None, [1, 2]), "sample_domain: shape"),
        (lambda: stlf.Fleet.from_devices([([[1.0]], None)])["d2"], "there is no device 'd2'\nhint: name one of d1"),
        (lambda: stlf.Fleet.from_devices([([[1.0]], None)]).map(lambda x: x[:0]), "d1: 1 samples became 0"),
    ],
)
def test_what_makes_no_fleet_is_refused(make: object, message: str) -> None:
    with pytest.raises(stlf.InputError, match=message):
        make()  # type: ignore[operator]


def test_a_picture_has_the_samples_of_each_device() -> None:
    pytest.importorskip("matplotlib", reason="plot() needs matplotlib")
    given = {
        "gate": (np.zeros((4, 1)), [0, 1, -1, 1]),
        "roof": (np.zeros((2, 1)), None),
        "mast": (np.zeros((3, 1)), [1, 1, 0]),
    }
    fleet = stlf.Fleet.from_devices(given)
    axes = fleet.plot()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == fleet.names
    assert [entry.get_text() for entry in axes.get_legend().get_texts()] == ["with a label", "without"]
    labeled, unlabeled = axes.containers
    assert [bar.get_height() for bar in labeled] == [3, 0, 3]
    # Those without stand on those with one.
    assert [(bar.get_y(), bar.get_height()) for bar in unlabeled] == [(3, 1), (0, 2), (3, 0)]
    assert fleet.plot(axes) is axes and len(axes.containers) == 4


def test_a_module_of_pytorch_is_trained_and_measured() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    x = np.random.default_rng(0).normal(size=(200, 3))
    fleet = stlf.Fleet.from_devices({"gate": (x, (x[:, 0] > 0).astype(int)), "roof": (x, None)})
    fitted = []

    def fit(x: np.ndarray, y: np.ndarray) -> object:
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout(0.9))
        inputs, labels = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
        optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
        for _ in range(100):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module[0](inputs), labels).backward()
            optimizer.step()
        fitted.append(module.train())
        return module

    trained = stlf.train(fleet, fit)
    # Measured without dropout and gradients, and left as it was.
    assert list(trained.models) == ["gate"] and trained.errors["gate"] < 0.1
    assert fitted[0].training
    plan = stlf.plan(fleet, [[0, 0.4], [0.4, 0]], trained.errors)
    given = plan.mixture("roof", trained.models)(x)
    expected = fitted[0].eval()(torch.as_tensor(x, dtype=torch.float32)).softmax(-1).detach().numpy()
    assert np.allclose(given, expected, atol=1e-6)


def test_training_holds_out_labels_and_leaves_devices_without_them_alone() -> None:
    seen = {}

    def fit(x: np.ndarray, y: np.ndarray) -> object:
        seen[len(seen)] = (len(x), set(y))
        return lambda x: np.full(len(x), 1)

    labels = np.array([0, 1] * 10)
    fleet = stlf.Fleet.from_devices({"a": (np.zeros((20, 1)), labels), "b": (np.zeros((5, 1)), None)})
    trained = stlf.train(fleet, fit, held_out=0.5)
    assert seen == {0: (10, {0, 1})}
    assert list(trained.errors) == ["a"]
    assert 0 < trained.errors["a"] < 1
    assert stlf.train(fleet, fit, held_out=0.0).errors == {"a": 0.5}
    with pytest.raises(stlf.InputError, match="held_out"):
        stlf.train(fleet, fit, held_out=1.0)
