"""What the package promises of itself: everything wrapped, documented with examples, typed."""

import ast
import inspect
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

import stlf
from stlf import _internal

PACKAGE = Path(stlf.__file__).parent
MODULES = sorted(PACKAGE.glob("*.py"))


def attributes() -> set[tuple[str, str]]:
    """Every `name.attribute` in the package; the name is the last before the dot."""
    found = set()
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                found.add((name, node.attr))
            if isinstance(node, ast.ImportFrom) and node.module == "stlf._internal":
                found |= {("_internal", alias.name) for alias in node.names}
    return found


def test_nothing_of_the_compiled_part_is_left_unwrapped() -> None:
    used = attributes()
    plain = {attribute for _, attribute in used}
    missing = []
    for name, thing in vars(_internal).items():
        if name.startswith("__") and name != "__version__":
            continue
        if ("_internal", name) not in used:
            missing.append(name)
        if inspect.isclass(thing):
            members = [member for member in vars(thing) if not member.startswith("_")]
            missing += [f"{name}.{member}" for member in members if member not in plain]
    assert missing == []


def test_every_public_function_has_an_example() -> None:
    missing = []
    for module in MODULES:
        for node in ast.parse(module.read_text()).body:
            public = isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            if public and ">>>" not in (ast.get_docstring(node) or ""):
                missing.append(f"{module.name}: {node.name}")
    assert missing == []
    assert all(name in stlf.__all__ for name in ("Fleet", "measure", "plan", "run", "combine", "Error"))
    assert all((getattr(stlf, name).__doc__ or "").strip() for name in stlf.__all__ if name != "__version__")


def test_the_version_is_that_of_the_wheel() -> None:
    assert stlf.__version__ == metadata("stlf")["Version"]
    assert (PACKAGE / "py.typed").is_file()


def test_errors_are_one_tree() -> None:
    for kind, also in [
        (stlf.InputError, ValueError),
        (stlf.InfeasibleError, Exception),
        (stlf.FileError, OSError),
        (stlf.MissingError, ImportError),
    ]:
        error = kind("what", "do this")
        assert isinstance(error, stlf.Error)
        assert isinstance(error, also)
        assert str(error) == "what\nhint: do this"
    assert str(stlf.Error("what")) == "what"


def test_nothing_optional_is_imported_before_it_is_needed() -> None:
    code = "import sys, stlf; print([m for m in ('pandas', 'matplotlib', 'torch', 'tqdm') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert ran.stdout.strip() == "[]"


def test_stubs_say_what_is_there() -> None:
    pytest.importorskip("mypy", reason="stubs are checked by mypy")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "stlf._internal"], capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
