"""The compiled part: conversion, nothing else. What people call is in the modules beside it."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from stlf.learner.bridge import Bridge

__all__ = [
    "Mixture",
    "Node",
    "Plan",
    "Problem",
    "Sketch",
    "__version__",
    "configure",
    "default_folder",
    "diff",
    "divergence_of_sketches",
    "draw_energy",
    "draw_strokes",
    "energy",
    "find_bundle",
    "measure",
    "measure_own",
    "noise_multiplier",
    "own_bandwidth",
    "own_sketch",
    "percent",
    "plan",
    "predict_with",
    "privacy_recorded",
    "privacy_spent",
    "run",
    "short",
    "source_error",
    "summarise",
    "warnings",
]

__version__: str

_See = Callable[[str, int | None, int, int], object] | None
_Numbers = npt.NDArray[np.float64]
_Singles = npt.NDArray[np.float32]
_Measured = tuple[_Numbers, _Numbers, _Numbers, list[int]]
_Segment = tuple[float, float, float, float, float, list[bool], list[tuple[int, int, float]], list[tuple[int, int]]]

@final
class Problem:
    def __new__(
        cls,
        document: bytes,
        *,
        file: str | None = None,
        divergence: _Numbers | None = None,
        link_energy: _Numbers | None = None,
        preset: str | None = None,
        phi_s: float | None = None,
        phi_t: float | None = None,
        phi_e: float | None = None,
        bound: str | None = None,
        needs_paper: str | None = None,
    ) -> Problem: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def devices(self) -> list[tuple[int, int, float | None]] | None: ...
    @property
    def weights(self) -> tuple[float, float, float] | None: ...
    def document(self) -> str: ...

@final
class Mixture:
    @staticmethod
    def load(path: str | PathLike[str], *, device: str | None = None, seed: int | None = None) -> Mixture: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def origin(self) -> tuple[str, bool, int | None, int | None]: ...
    @property
    def members(self) -> list[tuple[str, float]]: ...
    @property
    def expected(self) -> tuple[float, float, float] | None: ...
    @property
    def columns(self) -> list[str] | None: ...
    @property
    def windows(self) -> tuple[int, int] | None: ...
    @property
    def sample_shape(self) -> tuple[int, int, int]: ...
    @property
    def units(self) -> list[list[_Numbers]]: ...
    @property
    def class_shares(self) -> list[float] | None: ...
    @property
    def layers(self) -> list[tuple[str, list[float]]]: ...
    def parts(self) -> list[tuple[float, bool, list[tuple[str, list[int], _Singles]]]]: ...
    def probabilities(self, values: _Numbers) -> _Singles: ...
    def probabilities_of(self, path: str | PathLike[str]) -> _Singles: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def onnx(self) -> bytes: ...

@final
class Plan:
    @staticmethod
    def read(document: bytes, *, file: str | None = None, problem: Problem | None = None) -> Plan: ...
    @property
    def problem(self) -> Problem: ...
    @property
    def is_target(self) -> list[bool]: ...
    @property
    def links(self) -> tuple[npt.NDArray[np.uintp], npt.NDArray[np.uintp], _Numbers]: ...
    @property
    def link_joules(self) -> list[float] | None: ...
    @property
    def handovers(self) -> list[tuple[int, int]]: ...
    @property
    def handover_joules(self) -> list[float] | None: ...
    @property
    def status(self) -> str: ...
    @property
    def stopped_by(self) -> str | None: ...
    @property
    def objective(self) -> float: ...
    @property
    def lower_bound(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def terms(self) -> tuple[float, float, float]: ...
    @property
    def joules(self) -> tuple[float, float] | None: ...
    @property
    def bound(self) -> str: ...
    @property
    def solver(self) -> tuple[str, int, float, list[float]]: ...
    @property
    def exact(self) -> tuple[float, bool] | None: ...
    def document(self) -> str: ...
    def explain(
        self, device: int, time_limit: float, progress: _See = None
    ) -> tuple[str, str, list[tuple[float, str]], list[str]]: ...
    def sweep(
        self, low: float, high: float, gap: float, time_limit: float, progress: _See = None
    ) -> tuple[list[_Segment], int, bool, float]: ...

@final
class Sketch:
    def __new__(cls, samples: int, mean: _Singles, covariance: _Singles | None) -> Sketch: ...
    @property
    def samples(self) -> int: ...
    @property
    def mean(self) -> _Singles: ...
    @property
    def covariance(self) -> _Singles | None: ...

def plan(
    problem: Problem,
    *,
    solver: str,
    polish: bool,
    handovers: bool,
    gap: float,
    time_limit: float,
    progress: _See = None,
) -> Plan: ...
def diff(before: Plan, after: Plan, threshold: float) -> str: ...
def short(value: float) -> str: ...
def percent(fraction: float) -> str: ...
def energy(joules: float) -> str: ...
def draw_energy(devices: int, model: str, bits: float, seed: int) -> _Numbers: ...
def draw_strokes(samples: int, *, style: str, half: str, seed: int) -> tuple[_Singles, npt.NDArray[np.int64]]: ...
def source_error(rate: float, labeled: int, unlabeled: int, unlabeled_as: float) -> float: ...
def measure(
    devices: Sequence[npt.NDArray[np.float32]],
    *,
    method: str,
    seed: int,
    features: int | None = None,
    bandwidth: float | None = None,
    rounds: int | None = None,
    steps: int | None = None,
    repeats: int | None = None,
    privacy: tuple[float, float] | None = None,
    progress: _See = None,
) -> _Measured: ...
def measure_own(
    devices: int,
    start: _Singles,
    train: Callable[[int, int, _Singles], _Singles],
    count: Callable[[int, int, _Singles], tuple[int, int]],
    *,
    rounds: int,
    repeats: int,
    confidence: float,
    progress: _See = None,
) -> _Measured: ...
def own_bandwidth(inputs: _Singles, seed: int) -> float | None: ...
def own_sketch(
    inputs: _Singles,
    *,
    seed: int,
    noise: bytes,
    bandwidth: float | None = None,
    features: int | None = None,
    privacy: tuple[float, float] | None = None,
    moments: bool = False,
    accept: str | None = None,
    ledger: str | PathLike[str] | None = None,
    budget: float | None = None,
) -> Sketch: ...
def divergence_of_sketches(sketches: Sequence[Sketch], *, privacy: tuple[float, float] | None = None) -> _Measured: ...
def noise_multiplier(epsilon: float, delta: float) -> float: ...
def privacy_recorded(path: str | PathLike[str], delta: float) -> tuple[int, float]: ...
def privacy_spent(multipliers: Sequence[float], delta: float) -> float: ...
def configure(text: str, *, file: str | PathLike[str], is_json: bool = False, changes: Sequence[str] = ...) -> str: ...
def default_folder(config: str, file: str | PathLike[str]) -> Any: ...
def run(
    config: str,
    folder: str | PathLike[str],
    *,
    learners: Sequence[tuple[str, Bridge]] | None = None,
    shard: str | None = None,
    progress: _See = None,
) -> None: ...
def find_bundle(
    path: str | PathLike[str], *, device: str | None = None, seed: int | None = None
) -> tuple[Path, bool]: ...
def predict_with(bridge: Bridge, bundle: str | PathLike[str]) -> npt.NDArray[np.float32]: ...

@final
class Node:
    def __new__(
        cls,
        config: str,
        *,
        learner: Bridge | None,
        roster: str | PathLike[str],
        key: str | PathLike[str],
        folder: str | PathLike[str],
        listen: str,
        peers: Sequence[tuple[str, str]],
        times: tuple[float, float, float],
        once: float | None,
        watts: float | None,
    ) -> Node: ...
    def next(self, timeout: float | None = None) -> str | None: ...
    @property
    def has_ended(self) -> bool: ...
    def stop(self) -> None: ...

def summarise(results: str) -> list[dict[str, Any]]: ...
def warnings(folder: str | PathLike[str]) -> list[str]: ...
