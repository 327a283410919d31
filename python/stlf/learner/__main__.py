"""`python -m stlf.learner MODULE:CLASS`: a class of your own as a learner."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from stlf.errors import Error, InputError
from stlf.learner.contract import Learner
from stlf.learner.serve import serve

_EPILOG = """\
Speaks stlf-learner/1 on standard input and output, until its input ends. What the class prints goes to standard error.

Examples:
  stlf learner check "python -m stlf.learner pumps:Pumps"
  stlf node start --learner "python -m stlf.learner pumps:Pumps data/gate.csv" """


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code.

    >>> main(["no_such_module:Pumps"])
    2
    """
    parser = argparse.ArgumentParser(
        prog="python -m stlf.learner",
        description="Run a class of your own as the learner of a device.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("learner", metavar="MODULE:CLASS", help="a stlf.Learner; MODULE may be in this folder")
    parser.add_argument("arguments", nargs="*", help="what the class is made with, as text")
    args = parser.parse_args(arguments)
    try:
        serve(_made(args.learner, args.arguments))
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _made(named: str, arguments: Sequence[str]) -> Learner:
    module, colon, name = named.partition(":")
    if not colon:
        raise InputError(f"{named!r} names no class", "write MODULE:CLASS, such as pumps:Pumps")
    try:
        made = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise InputError(f"there is no module {error.name!r}", "start in its folder, or pass on PYTHONPATH") from None
    except AttributeError:
        raise InputError(f"the module {module} has no {name}") from None
    if not (isinstance(made, type) and issubclass(made, Learner)):
        raise InputError(f"{named} is no stlf.Learner", "write class Pumps(stlf.Learner)")
    return made(*arguments)


if __name__ == "__main__":
    sys.exit(main())
