"""A learner as a program: requests come as lines of JSON, answers go as lines of JSON."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError
from stlf.learner import arrays, checked
from stlf.learner.contract import Adaptation, Learner, Lesson, Model

PROTOCOL = "stlf-learner/1"
"""What is spoken."""


class Server:
    """A learner that answers requests.

    >>> import io
    >>> class Small(Learner):
    ...     name, classes = "small/1", ["calm"]
    ...     def data(self): return [[0.5]], [0]
    ...     def first(self): return {"a": [1.0, 2.0]}
    ...     def train(self, lesson): return lesson.start
    ...     def predict(self, model, rows): return np.ones((len(rows), 1))
    >>> out = io.StringIO()
    >>> Server(Small(), out).answer({"id": 0, "hello": {"protocol": "stlf-learner/1", "folder": ".", "seed": 1}})
    >>> json.loads(out.getvalue())["ok"]["model"]
    {'a': [2]}
    """

    def __init__(self, learner: Learner, out: IO[str]) -> None:
        """Create a server that writes its answers to `out`."""
        self._learner = learner
        self._out = out
        self._folder = Path()
        self._first: Model = {}
        self._samples = 0
        self._current: int | None = None
        self._cancelled = threading.Event()
        self._has_ended = threading.Event()

    def listen(self, lines: IO[str]) -> None:
        """Answer requests until told to stop, or until there are no more lines."""
        requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._hear, args=(lines, requests), daemon=True).start()
        while (request := requests.get()) is not None:
            self.answer(request)

    def _hear(self, lines: IO[str], requests: queue.Queue[dict[str, Any] | None]) -> None:
        try:
            for line in lines:
                request = json.loads(line)
                if "cancel" in request:
                    if request["cancel"]["request"] == self._current:
                        self._cancelled.set()
                elif "stop" in request:
                    break
                else:
                    requests.put(request)
        finally:
            self._has_ended.set()
            requests.put(None)
            # Whoever asked is gone: nobody needs what is under way.
            if self._current is not None:
                os._exit(0)

    def answer(self, request: dict[str, Any]) -> None:
        """Answer a request. What a learner cannot do is said, and the next request may come."""
        self._cancelled.clear()
        self._current = request["id"]
        try:
            self._say({"ok": self._done(request)})
        except checked.GivenUp:
            self._say({"cancelled": {}})
        except Exception as error:
            traceback.print_exc()
            self._say({"error": {"message": self._told(error)}})
        finally:
            self._current = None

    def _told(self, error: Exception) -> str:
        """Return an error in one line, with the last line of the learner's own file that led to it."""
        told = "; ".join(f"{type(error).__name__}: {error}".splitlines())
        own = getattr(sys.modules.get(type(self._learner).__module__), "__file__", None)
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
        return f"{told} ({Path(own).name}, line {lines[-1]})" if own and lines else told

    def _say(self, answer: dict[str, Any]) -> None:
        self._out.write(json.dumps({"id": self._current, **answer}) + "\n")
        self._out.flush()

    def _progress(self, done: int, total: int) -> None:
        if self._cancelled.is_set() or self._has_ended.is_set():
            raise checked.GivenUp
        self._say({"progress": {"done": int(done), "total": int(total)}})

    def _done(self, request: dict[str, Any]) -> dict[str, Any]:
        if "hello" in request:
            return self._greet(request["hello"])
        if "describe" in request:
            return self._describe(request["describe"])
        if "train" in request:
            return self._train(request["train"])
        if "adapt" in request:
            return self._adapt(request["adapt"])
        if "predict" in request:
            return self._predict(request["predict"])
        raise InputError(f"an unknown request: {sorted(request)}", "this may be a newer version of stlf")

    def _greet(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["protocol"] != PROTOCOL:
            raise InputError(f"this learner speaks {PROTOCOL}, not {asked['protocol']}")
        self._folder = Path(asked["folder"])
        self._first = checked.model(self._learner.first())
        greeting = {
            "protocol": PROTOCOL,
            "name": self._learner.name,
            "classes": [str(name) for name in self._learner.classes],
            "model": {name: list(array.shape) for name, array in self._first.items()},
        }
        return {**greeting, "adapts": True} if checked.adapts(self._learner) else greeting

    def _describe(self, asked: dict[str, Any]) -> dict[str, Any]:
        told = checked.samples(self._learner)
        self._samples = len(told["labels"])
        arrays.write(self._folder / asked["to"], told)
        return {"samples": self._samples}

    def _train(self, asked: dict[str, Any]) -> dict[str, Any]:
        start = self._first if asked["start"] is None else self._given(asked["start"])
        start = {name: array.copy() for name, array in start.items()}
        lesson = Lesson(self._rows(asked["rows"]), start, int(asked["seed"]), self._progress)
        model = checked.model(self._learner.train(lesson))
        arrays.write(self._folder / asked["to"], checked.like(model, self._first, "train()"))
        return {}

    def _adapt(self, asked: dict[str, Any]) -> dict[str, Any]:
        rows, start = self._rows(asked["rows"]), self._given(asked["start"])
        teacher = arrays.read(self._folder / asked["teacher"])["probabilities"]
        adaptation = Adaptation(rows, teacher, start, int(asked["seed"]), self._progress)
        model = checked.model(self._learner.adapt(adaptation))
        arrays.write(self._folder / asked["to"], checked.like(model, self._first, "adapt()"))
        return {}

    def _predict(self, asked: dict[str, Any]) -> dict[str, Any]:
        model, rows = self._given(asked["model"]), self._rows(asked["rows"])
        made = checked.probabilities(self._learner, model, rows, self._progress, asked.get("altered"))
        arrays.write(self._folder / asked["to"], {"probabilities": made})
        return {}

    def _rows(self, name: str) -> npt.NDArray[np.int64]:
        return arrays.read(self._folder / name)["rows"]

    def _given(self, name: str) -> Model:
        return checked.like(arrays.read(self._folder / name), self._first, name)


def serve(learner: Learner) -> None:
    """Run a learner as a program. What it prints goes to the log.

    >>> serve(None)  # doctest: +SKIP
    """
    # Only messages may go to standard output; what a learner or its libraries print becomes part of the log.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    Server(learner, out).listen(sys.stdin)
