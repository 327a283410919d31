"""What devices ended with, put to work: arrays, tables, ONNX Runtime, PyTorch, copies, and what is refused."""

from __future__ import annotations

import csv
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli

import stlf
from stlf.digits import strokes

COLUMNS = ["x", "y", "z"]


def table(path: Path) -> Path:
    """Four devices whose rows stand mixed, each in units of its own, and far from zero."""
    rng = np.random.default_rng(0)
    rows = ["device,label,x,y,z"]
    for k in range(400):
        x, y = rng.normal(0, 1, 2)
        unit = [1.0, 10.0, 1.5, 7.0][k % 4]
        label = "calm" if x > y else "storm" if x + y > 0 else "fog"
        rows.append(f"d{k % 4},{label},{1e6 + x * unit},{y * unit},5")
    path.write_text("\n".join(rows) + "\n")
    return path


def configured(file: Path, scale: str, combine: str) -> dict[str, Any]:
    return {
        "seeds": [3],
        "data": {"features": str(file), "standardise": scale},
        "partition": {"kind": "by-domain", "labeled": [1.0, 0.8, 0.0, 0.0]},
        "planner": {"combine": combine},
        "training": {"model": "mlp", "steps": 200},
        "divergence": {"features": 16},
        "compare": {"methods": ["st-lf"]},
    }


WAYS = [("fleet", "predictions"), ("own", "corrected"), ("both", "predictions"), ("own", "parameters")]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: "-".join(way))
def of_table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[stlf.Run, Path]:
    inside = tmp_path_factory.mktemp("table")
    file = table(inside / "table.csv")
    return stlf.run(configured(file, *request.param), to=inside / "run", progress=False), file


@pytest.fixture(scope="module")
def of_pictures(tmp_path_factory: pytest.TempPathFactory) -> stlf.Run:
    small = {
        "seeds": [3],
        "data": {"samples": 3000},
        "partition": {"kind": "paper", "devices": 4, "scale": 0.4, "disjoint": False},
        "training": {"steps": 60},
        "transfer": {"adapt": "always"},
        "compare": {"methods": ["st-lf"]},
    }
    return stlf.run(small, to=tmp_path_factory.mktemp("pictures"), progress=False)


def png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """A picture in colour."""
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def pictures(folder: Path, side: int, unlabeled: int) -> Path:
    """Three cameras that see a bar or a ring somewhere, each in a light of its own; the last has no labels."""
    rng = np.random.default_rng(5)
    down, right = np.mgrid[:side, :side]
    for camera in range(3):
        for k in range(unlabeled if camera == 2 else 40):
            y, x = rng.uniform(0.35 * side, 0.65 * side, 2)
            bar = (np.abs(down - y) < side / 16) & (np.abs(right - x) < side / 4)
            ring = np.abs(np.hypot(down - y, right - x) - side / 5) < side / 24
            shape = bar if k % 2 else ring
            light = np.array([60, 90, 120]) * (1 + 0.2 * camera) + rng.normal(0, 20, (side, side, 3))
            seen = np.where(shape[:, :, None], 255 - light, light)
            place = folder / f"c{camera}" / ("unlabeled" if camera == 2 else ("bar" if k % 2 else "ring"))
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{k:03}.png").write_bytes(png(seen.clip(0, 255).astype(np.uint8)))
    return folder


@pytest.mark.parametrize(("side", "student"), [(32, True), (64, False), (96, False)])
def test_larger_pictures_are_predicted_alike_everywhere(side: int, student: bool, cli: Cli, tmp_path: Path) -> None:
    """The smallest with a student, whose training is as long as ever."""
    torch = pytest.importorskip("torch", reason="to_torch() needs PyTorch")
    unlabeled = 320 if student else 40
    folder = pictures(tmp_path / "pictures", side, unlabeled)
    config = {
        "seeds": [3],
        "data": {"images": str(folder)},
        "partition": {"kind": "by-domain"},
        "training": {"steps": 40},
        "transfer": {"adapt": "always" if student else "off"},
        "compare": {"methods": ["st-lf"]},
    }
    run = stlf.run(config, to=tmp_path / "run", progress=False)
    mixture = stlf.load(run.folder, device="c2")
    assert (mixture.role, mixture.n_features_in_) == ("target", 3 * side * side)
    pixels = np.random.default_rng(1).integers(0, 256, (20, 3, side, side))
    ours = mixture.predict_proba(pixels)
    mixture.to_onnx(tmp_path / "m.onnx")
    probabilities, _, metadata = in_onnx_runtime(tmp_path / "m.onnx", pixels.astype(np.float32))
    assert np.abs(probabilities - ours).max() < 1e-5
    assert metadata["student"] == str(student).lower()
    with torch.no_grad():
        given = mixture.to_torch()(torch.from_numpy(pixels)).numpy()
    assert np.abs(given - ours).max() < 1e-5
    ran = cli("predict", str(run.folder), str(folder), "--device", "c2")
    assert ran.returncode == 0, ran.stderr
    own = (run.folder / "seed-3" / "targets" / "c2.csv").read_text().splitlines()
    assert len(own) == 1 + unlabeled and ran.stdout.splitlines()[-unlabeled:] == own[1:]
    for file in (run.folder / "seed-3" / "mixtures" / "c2").glob("*.safetensors"):
        assert file.stat().st_size < 650_000


def readings(path: Path, offset: float) -> Path:
    """Four machines with a gain and an offset of their own, which vibrate faster when they are worn; each has a gap."""
    rng = np.random.default_rng(2)
    rows = ["time,x,y,device,label"]
    for machine in range(4):
        phase = 0.0
        for k in range(640):
            worn = k // 160 % 2
            phase += 0.42 if worn else 0.3
            x, y = np.sin(phase) + rng.normal(0, 0.1), np.cos(phase + 1) + rng.normal(0, 0.1)
            label = "worn" if worn else "good"
            gain = machine + 1
            rows.append(f"{k + 100 * (k >= 200)},{offset * machine + gain * x},{gain * y},m{machine},{label}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(
    scope="module", params=[("cnn", "own"), ("cnn", "both"), ("cnn", "none"), ("mlp", "fleet")], ids="-".join
)
def of_series(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[stlf.Run, Path]:
    inside = tmp_path_factory.mktemp("series")
    model, scale = request.param
    file = readings(inside / "vibration.csv", 0 if scale == "none" else 1e5)
    config = configured(file, scale, "predictions")
    config["data"] |= {"window": 32, "stride": 16}
    config["training"]["model"] = model
    return stlf.run(config, to=inside / "run", progress=False), file


def windows_of(file: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What stlf cuts: 32 readings, every 16, of one machine, before and after the gap."""
    with file.open() as lines:
        numbers = np.array([[float(row["x"]), float(row["y"])] for row in csv.DictReader(lines)])
    windows = []
    for machine in range(4):
        for first, last in ((0, 200), (200, 640)):
            own = numbers[640 * machine + first : 640 * machine + last]
            windows += [own[at : at + 32].T for at in range(0, len(own) - 31, 16)]
    return np.array(windows)


def test_windows_of_a_series_are_cut_scaled_and_predicted_alike_everywhere(
    of_series: tuple[stlf.Run, Path], cli: Cli, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch", reason="to_torch() needs PyTorch")
    run, file = of_series
    windows = windows_of(file)
    for device in run.plan().names:
        mixture = stlf.load(run.folder, device=device)
        assert mixture.n_features_in_ == 64
        ours = mixture.predict_proba(windows)
        assert np.array_equal(ours, mixture.predict_proba(file))
        assert np.array_equal(ours, mixture.predict_proba(windows.reshape(-1, 64)))
        mixture.to_onnx(tmp_path / "m.onnx")
        probabilities, _, metadata = in_onnx_runtime(tmp_path / "m.onnx", windows)
        assert np.abs(probabilities - ours).max() < 1e-5
        assert json.loads(metadata["series"]) == {"window": 32, "stride": 16}
        with torch.no_grad():
            given = mixture.to_torch()(torch.from_numpy(windows)).numpy()
        assert np.abs(given - ours).max() < 1e-5
        ran = cli("predict", str(run.folder), str(file), "--device", device)
        assert ran.returncode == 0, ran.stderr
        rows = list(csv.DictReader(ran.stdout.splitlines()))
        assert [mixture.classes_[p.argmax()] for p in ours] == [row["class"] for row in rows]
        assert [int(row["row"]) for row in rows[10:13]] == [160, 200, 216]
    with pytest.raises(stlf.InputError, match=r"the mixture takes \(n, 64\) or \(n, 2, 32\)|X: an array of"):
        mixture.predict(np.zeros((3, 32, 2)))


def rows_of(file: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    with file.open() as lines:
        return np.array([[float(row[name]) for name in COLUMNS] for row in csv.DictReader(lines)])


def in_onnx_runtime(file: Path, samples: Any) -> tuple[Any, Any, dict[str, str]]:
    """What ONNX Runtime makes of samples, after the checker had a look at the file."""
    onnx = pytest.importorskip("onnx", reason="exported files are checked by onnx")
    runtime = pytest.importorskip("onnxruntime", reason="exported files are run by onnxruntime")
    onnx.checker.check_model(str(file), full_check=True)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    probabilities, label = session.run(["probabilities", "label"], {"samples": samples})
    return probabilities, label, session.get_modelmeta().custom_metadata_map


def test_targets_predict_what_their_run_says(of_table: tuple[stlf.Run, Path]) -> None:
    run, file = of_table
    plan = run.plan()
    assert len(plan.targets) >= 2
    for device in plan.names:
        mixture = stlf.load(run.folder, device=device)
        assert mixture.role == ("target" if device in plan.targets else "source")
        assert list(mixture.classes_) == ["calm", "fog", "storm"]
        assert (mixture.n_features_in_, list(mixture.feature_names_in_)) == (3, COLUMNS)
        rows = rows_of(file)
        probabilities = mixture.predict_proba(rows)
        assert np.array_equal(probabilities, mixture.predict_proba(file))
        assert np.abs(probabilities.sum(axis=1) - 1).max() < 1e-6
        assert list(mixture.predict(rows[:5])) == [mixture.classes_[p.argmax()] for p in probabilities[:5]]
        assert (mixture.expected is not None) == (device in plan.targets)
        if mixture.expected is not None:
            expected, low, high = mixture.expected
            assert 0 <= low <= expected <= high <= 1
        if device in plan.targets:
            assert mixture.members == pytest.approx(plan.senders(device))
            with (run.folder / "seed-3" / "targets" / f"{device}.csv").open() as lines:
                for row in csv.DictReader(lines):
                    own = probabilities[int(row["sample"])]
                    assert mixture.classes_[own.argmax()] == row["class"]
                    assert np.float32(row["probability"]) == own.max()


def test_onnx_runtime_gives_our_answers(of_table: tuple[stlf.Run, Path], cli: Cli, tmp_path: Path) -> None:
    run, file = of_table
    rows = rows_of(file)
    for device in run.plan().names:
        mixture = stlf.load(run.folder, device=device)
        mixture.to_onnx(tmp_path / "m.onnx")
        probabilities, label, metadata = in_onnx_runtime(tmp_path / "m.onnx", rows)
        ours = mixture.predict_proba(rows)
        assert np.abs(probabilities - ours).max() < 1e-5
        assert np.array_equal(mixture.classes_[label], mixture.classes_[probabilities.argmax(axis=1)])
        assert json.loads(metadata["classes"]) == list(mixture.classes_)
        assert json.loads(metadata["columns"]) == COLUMNS
        assert [member["name"] for member in json.loads(metadata["members"])] == list(mixture.members)
        ran = cli("export", str(run.folder), "--device", device, "--onnx", str(tmp_path / "cli.onnx"))
        assert ran.returncode == 0, ran.stderr
        assert (tmp_path / "cli.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_pictures_with_a_student_go_through_onnx_runtime_and_pytorch(of_pictures: stlf.Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (50, 1, 28, 28))
    for device in of_pictures.plan().names:
        mixture = stlf.load(of_pictures.folder, device=device)
        ours = mixture.predict_proba(pixels)
        assert np.array_equal(ours, mixture.predict_proba(pixels.reshape(50, 28, 28)))
        assert np.array_equal(ours, mixture.predict_proba(pixels.reshape(50, -1).astype(np.uint8)))
        mixture.to_onnx(tmp_path / "m.onnx")
        probabilities, _, metadata = in_onnx_runtime(tmp_path / "m.onnx", pixels.astype(np.float32))
        assert np.abs(probabilities - ours).max() < 1e-5
        assert metadata["student"] == str(mixture.role == "target").lower()


def test_every_target_of_the_demo_can_be_exported(tmp_path: Path) -> None:
    """The fleets of `stlf demo` with all their settings, but trained for a shorter time."""
    few = {"seeds": [0, 1, 2], "training": {"steps": 100}, "compare": {"methods": ["st-lf"]}}
    run = stlf.run(few, to=tmp_path / "demo", progress=False)
    digits = strokes(200, "textured", half="test")[0]
    pixels = np.rint((digits + 1) * 127.5).astype(np.float32)
    targets = [(seed, device) for seed in run.seeds for device in run.plan(seed).targets]
    assert len(targets) >= 15
    for seed, device in targets:
        mixture = stlf.load(run.folder, device=device, seed=seed)
        mixture.to_onnx(tmp_path / "m.onnx")
        probabilities, label, _ = in_onnx_runtime(tmp_path / "m.onnx", pixels)
        ours = mixture.predict_proba(pixels)
        assert np.abs(probabilities - ours).max() < 1e-5, (seed, device)
        # Where two classes are as likely as each other, rounding decides.
        first, second = np.sort(ours)[:, -1], np.sort(ours)[:, -2]
        clear = first - second > 1e-4
        assert np.array_equal(mixture.classes_[label][clear], mixture.predict(pixels)[clear]), (seed, device)
        assert clear.mean() > 0.9


def test_pytorch_gives_our_answers(of_table: tuple[stlf.Run, Path], of_pictures: stlf.Run) -> None:
    torch = pytest.importorskip("torch", reason="to_torch() needs PyTorch")
    run, file = of_table
    pixels = np.random.default_rng(1).integers(0, 256, (20, 1, 28, 28))
    for folder, device, samples in [
        *((run.folder, device, rows_of(file)) for device in run.plan().names),
        *((of_pictures.folder, device, pixels) for device in of_pictures.plan().names),
    ]:
        mixture = stlf.load(folder, device=device)
        module = mixture.to_torch()
        with torch.no_grad():
            given = module(torch.from_numpy(samples)).numpy()
        assert np.abs(given - mixture.predict_proba(samples)).max() < 1e-5
        assert all(parameter.requires_grad for parameter in module.parameters())


def test_frames_are_read_by_the_names_of_their_columns(of_table: tuple[stlf.Run, Path]) -> None:
    pandas = pytest.importorskip("pandas", reason="frames are of pandas")
    run, file = of_table
    mixture = stlf.load(run.folder, device="d2")
    frame = pandas.read_csv(file)
    assert np.array_equal(mixture.predict_proba(frame[["label", "z", "y", "x"]]), mixture.predict_proba(file))
    with pytest.raises(stlf.InputError, match="column 'y' is missing"):
        mixture.predict(frame[["x", "z"]])


def test_a_frame_of_readings_is_refused(of_series: tuple[stlf.Run, Path]) -> None:
    pandas = pytest.importorskip("pandas", reason="frames are of pandas")
    run, file = of_series
    with pytest.raises(stlf.InputError, match="X: a table of readings"):
        stlf.load(run.folder, device="m2").predict(pandas.read_csv(file))


def test_a_copy_opens_by_itself(of_table: tuple[stlf.Run, Path], tmp_path: Path) -> None:
    run, file = of_table
    mixture = stlf.load(run.folder, device="d3")
    for _ in range(2):
        mixture.save(tmp_path / "copy")
    again = stlf.load(tmp_path / "copy")
    assert repr(again) == repr(mixture)
    assert np.array_equal(again.predict_proba(file), mixture.predict_proba(file))


def test_what_cannot_be_used_is_refused(of_table: tuple[stlf.Run, Path], tmp_path: Path) -> None:
    run, file = of_table
    with pytest.raises(stlf.InputError, match="the devices are: d0, d1, d2, d3"):
        stlf.load(run.folder)
    with pytest.raises(stlf.InputError, match="there is no mixture of a device 'd9'|\"d9\""):
        stlf.load(run.folder, device="d9")
    mixture = stlf.load(run.folder, device="d2")
    for given in [np.zeros((2, 4)), np.zeros(3), np.array([["a", "b", "c"]])]:
        with pytest.raises(stlf.InputError, match="X: an array of"):
            mixture.predict(given)
    with pytest.raises(stlf.InputError, match="not a finite number"):
        mixture.predict(np.array([[1.0, np.nan, 2.0]]))
    mixture.save(tmp_path / "copy")
    damaged = next((tmp_path / "copy").glob("*.safetensors"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(stlf.InputError, match="has changed since the bundle was written"):
        stlf.load(tmp_path / "copy")
