"""A virtual environment per list of requirements, and the programs that are compared."""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def enter(requirements):
    """Starts the running script again inside its virtual environment, made first where it is missing."""
    environment = HERE / f".venv{requirements.stem.removeprefix('requirements')}"
    python = environment / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == environment.resolve():
        return
    installed = environment / "installed.txt"
    if not installed.is_file() or installed.read_text() != requirements.read_text():
        print("making the virtual environment", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "-r", requirements]
        subprocess.run(pip, check=True)
        installed.write_text(requirements.read_text())
    os.execv(python, [python, *sys.argv])


def build(*target):
    """The path of a program, built in release mode."""
    command = ["cargo", "build", "--release", *target, "--message-format", "json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return next(m["executable"] for m in reversed(messages) if m.get("executable"))
