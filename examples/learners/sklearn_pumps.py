"""A learner with scikit-learn: logistic regression on a table of features.

    stlf learner check "python -m stlf.learner sklearn_pumps:Pumps pumps.csv"

Columns of the table are features, the last one is the class: ok, worn, or empty where nobody knows it.
"""

import csv

import numpy as np
from sklearn.linear_model import SGDClassifier

import stlf


class Pumps(stlf.Learner):
    """Pumps that are worn or not."""

    name = "sklearn-pumps/1"
    classes = ("ok", "worn")

    def __init__(self, table: str) -> None:
        """Read the samples of this device."""
        with open(table, newline="") as file:
            rows = list(csv.reader(file))[1:]
        self.x = np.array([row[:-1] for row in rows], dtype=float)
        self.y = np.array([self.classes.index(row[-1]) if row[-1] else -1 for row in rows])

    def data(self):
        """Return features and labels."""
        return self.x, self.y

    def first(self):
        """Return a model that knows nothing."""
        return {"weights": np.zeros((1, self.x.shape[1])), "bias": np.zeros(1)}

    def train(self, lesson):
        """Train from the given model on, a few epochs at a time."""
        weights, bias = lesson.start["weights"], lesson.start["bias"]
        for turn in range(5):
            model = SGDClassifier(loss="log_loss", max_iter=4, tol=None, random_state=(lesson.seed + turn) % 2**32)
            model.fit(self.x[lesson.rows], self.y[lesson.rows], coef_init=weights, intercept_init=bias)
            weights, bias = model.coef_, model.intercept_
            lesson.progress(turn + 1, 5)
        return {"weights": weights, "bias": bias}

    def predict(self, model, rows):
        """Return the probabilities of both classes."""
        worn = 1 / (1 + np.exp(-np.clip(self.x[rows] @ model["weights"].T + model["bias"], -30, 30)))
        return np.hstack([1 - worn, worn])
