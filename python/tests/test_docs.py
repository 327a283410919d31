"""What the documentation shows, run."""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_examples_of_the_guide_run() -> None:
    ran = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert ran.attempted > 30
    assert ran.failed == 0


def test_the_examples_of_the_readme_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
