"""A learner with PyTorch: a small network on a table of features.

    stlf learner check "python -m stlf.learner torch_pumps:Pumps pumps.csv"

Columns of the table are features, the last one is the class: ok, worn, or empty where nobody knows it.
"""

import csv

import numpy as np
import torch

import stlf

STEPS = 300


class Pumps(stlf.Learner):
    """Pumps that are worn or not."""

    name = "torch-pumps/1"
    classes = ("ok", "worn")

    def __init__(self, table: str) -> None:
        """Read the samples of this device."""
        with open(table, newline="") as file:
            rows = list(csv.reader(file))[1:]
        self.x = torch.tensor([[float(cell) for cell in row[:-1]] for row in rows])
        self.y = torch.tensor([self.classes.index(row[-1]) if row[-1] else -1 for row in rows])

    def network(self, model=None):
        """Return the network with the parameters of a model, or with first ones that are the same on all devices."""
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(self.x.shape[1], 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
        if model is not None:
            net.load_state_dict({name: torch.from_numpy(array) for name, array in model.items()})
        return net

    def data(self):
        """Return features and labels. For photographs, features would be embeddings, not pixels."""
        return self.x, self.y

    def first(self):
        """Return the first parameters."""
        return self.network().state_dict()

    def train(self, lesson):
        """Train from the given model on."""
        net, rows = self.network(lesson.start), torch.from_numpy(lesson.rows)
        torch.manual_seed(lesson.seed % 2**63)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for step in range(STEPS):
            some = rows[torch.randint(len(rows), (32,))]
            loss = torch.nn.functional.cross_entropy(net(self.x[some]), self.y[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                lesson.progress(step, STEPS)
        return net.state_dict()

    def predict(self, model, rows):
        """Return the probabilities of both classes."""
        net = self.network(model).eval()
        with torch.no_grad():
            return torch.softmax(net(self.x[torch.from_numpy(np.asarray(rows))]), dim=1)
