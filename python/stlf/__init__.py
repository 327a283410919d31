"""Which devices train, which receive whose model, with what weight.

Many devices hold data; some of it is labeled, much is not, and it differs from device to device. Raw data must not
move. From errors, divergences and link energies follows a plan, with a proof of how good it is:

>>> import numpy as np, stlf
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(np.repeat([0, 0, 3], 200)[:, None], 1, (600, 4))
>>> y = np.where(np.arange(600) < 200, X[:, 0] > 0, -1)              # only the first device has labels
>>> fleet = stlf.Fleet.from_arrays(X, y, np.repeat(["gate", "dock", "roof"], 200))
>>> plan = stlf.plan(fleet, stlf.measure(fleet), errors={"gate": 0.05})
>>> plan.sources, plan.targets, plan.status
(['gate'], ['dock', 'roof'], 'optimal')
"""

from stlf._internal import __version__
from stlf.combine import PredictionMixture, combine
from stlf.divergence import Divergence, measure, measure_with
from stlf.errors import Error, FileError, InfeasibleError, InputError, MissingError
from stlf.explanation import Difference, Explanation, Segment, Sweep
from stlf.fleet import Device, Fleet
from stlf.learner import Adaptation, Learner, Lesson
from stlf.mixture import LearnerMixture, Mixture, load, load_with
from stlf.node import Node
from stlf.plan import Plan, plan
from stlf.problem import Problem, energy
from stlf.run import Run, run
from stlf.train import Trained, train

__all__ = [
    "Adaptation",
    "Device",
    "Difference",
    "Divergence",
    "Error",
    "Explanation",
    "FileError",
    "Fleet",
    "InfeasibleError",
    "InputError",
    "Learner",
    "LearnerMixture",
    "Lesson",
    "MissingError",
    "Mixture",
    "Node",
    "Plan",
    "PredictionMixture",
    "Problem",
    "Run",
    "Segment",
    "Sweep",
    "Trained",
    "__version__",
    "combine",
    "energy",
    "load",
    "load_with",
    "measure",
    "measure_with",
    "plan",
    "run",
    "train",
]
