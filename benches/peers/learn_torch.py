"""The paper's CNN in PyTorch: one model eager, and ten models as one grouped and compiled."""

import time

import torch
from torch import nn
from torch.nn import functional as F

BATCH = 10
RATE = 0.01


class Cnn(nn.Module):
    """The network, with the names that saved models carry."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(F.dropout(x, training=self.training))


class Grouped(nn.Module):
    """Many such networks side by side: grouped convolutions and batched matrix products."""

    def __init__(self, models):
        super().__init__()
        self.models = models
        self.conv1 = nn.Conv2d(models, models * 10, 5, groups=models)
        self.conv2 = nn.Conv2d(models * 10, models * 20, 5, groups=models)
        self.drop = nn.Dropout2d()
        self.fc1 = nn.Parameter(torch.randn(models, 320, 50) / 18)
        self.bias1 = nn.Parameter(torch.zeros(models, 1, 50))
        self.fc2 = nn.Parameter(torch.randn(models, 50, 10) / 7)
        self.bias2 = nn.Parameter(torch.zeros(models, 1, 10))

    def forward(self, x):
        batch = x.shape[0]
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.drop(self.conv2(x)), 2))
        x = x.view(batch, self.models, 320).transpose(0, 1)
        x = F.relu(torch.baddbmm(self.bias1, x, self.fc1))
        x = F.dropout(x, training=self.training)
        return torch.baddbmm(self.bias2, x, self.fc2).reshape(self.models * batch, 10)


def rate(step, seconds, models):
    """Steps per second of one model, by wall or by CPU time, whichever is faster."""
    for _ in range(20):
        step()
    count, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        for _ in range(10):
            step()
        count += 10
    spent = min(time.perf_counter() - wall, time.process_time() - cpu)
    return models * count / spent


def eager(inputs, labels, seconds):
    """One model, as written."""
    model = Cnn().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def step():
        at = torch.randint(len(labels), (BATCH,))
        optimizer.zero_grad()
        F.cross_entropy(model(inputs[at]), labels[at]).backward()
        optimizer.step()

    return rate(step, seconds, 1)


def grouped(inputs, labels, seconds, models=10):
    """Ten models as one, forward, backward and step compiled."""
    model = Grouped(models).train()
    parameters = list(model.parameters())
    compiled = torch.compile(lambda x, y: models * F.cross_entropy(model(x), y))

    def step():
        at = torch.randint(len(labels), (models, BATCH))
        x = inputs[at].view(models, BATCH, 28, 28).transpose(0, 1).contiguous()
        compiled(x, labels[at].view(-1)).backward()
        with torch.no_grad():
            torch._foreach_add_(parameters, [p.grad for p in parameters], alpha=-RATE)
        for p in parameters:
            p.grad = None

    return rate(step, seconds, models)


def peak(seconds, side=768):
    """GFLOP/s of a large matrix product, the most that one can hope for."""
    a, b = torch.randn(side, side), torch.randn(side, side)
    return rate(lambda: torch.mm(a, b), seconds, 1) * 2 * side**3 / 1e9


def accuracy(train, test, epochs, seed):
    """Test accuracy after so many passes through all training samples."""
    torch.manual_seed(seed)
    (inputs, labels), (test_inputs, test_labels) = train, test
    model = Cnn().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for _ in range(epochs):
        for at in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs[at]), labels[at]).backward()
            optimizer.step()
    with torch.no_grad():
        right = model.eval()(test_inputs).argmax(1) == test_labels
    return right.double().mean().item()
