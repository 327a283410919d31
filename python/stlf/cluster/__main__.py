"""`python -m stlf.cluster`: one run on several machines."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from stlf.cluster.conduct import conduct
from stlf.cluster.engine import ENGINES, Engine, Workers
from stlf.cluster.failure import code_of
from stlf.cluster.shard import Division, find_stlf, shards_begun
from stlf.errors import Error, InputError

_EPILOG = """\
Every shard is a `stlf run --shard K/N` in its own folder, RUN.shards/K-of-N. A lost shard is restarted and
continues where it stopped. At the end `stlf merge` joins them. Ctrl-C stops the workers; the same command continues.

Examples:
  python -m stlf.cluster mine.toml --workers 2                       processes of this machine
  python -m stlf.cluster mine.toml --engine ray --workers 2          a Ray cluster on this machine
  python -m stlf.cluster mine.toml --engine ray --address auto --workers 16 --threads 4
  python -m stlf.cluster mine.toml --engine slurm --workers 16 --threads 4 --sbatch=--partition=long
Exit codes: 0 done, 1 a file or the system failed, 2 bad input, 3 no plan exists, 130 interrupted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code.

    >>> main(["mine.toml", "--workers", "2", "--stlf", "no-such-command"])
    2
    """
    args = _parser().parse_args(arguments)
    try:
        return _run(args)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return code_of(error)
    except KeyboardInterrupt:
        print("stopped\nhint: run the same command to continue", file=sys.stderr)
        return 130


def _run(args: argparse.Namespace) -> int:
    config: Path = args.config
    if not config.exists():
        raise InputError(f"cannot read {config}", "`stlf new NAME` writes a configuration")
    to: Path = args.to or (config if config.is_dir() else Path("runs") / config.stem)
    # A cluster's machines are not this one: only where the workers are here can its cores be divided among them.
    here = args.engine != "slurm" and args.address is None
    threads = args.threads or (max(1, (os.cpu_count() or 1) // args.workers) if here else 1)
    division = Division(
        stlf=find_stlf(args.stlf),
        config=config.absolute(),
        to=to.absolute(),
        shards=args.shards or shards_begun(to) or args.workers,
        settings=tuple(args.set),
        threads=threads,
    )

    def make(told: Workers) -> Engine:
        engine = ENGINES[args.engine](told)
        # A batch system or a service manager stops a command so; the workers must not stay behind. Ray takes the
        # signal for itself when it starts, so this comes after.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        return engine

    conduct(
        division,
        make,
        workers=args.workers,
        retries=args.retries,
        address=args.address,
        sbatch=tuple(args.sbatch),
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stlf.cluster",
        description="One run on several machines, with the results of one.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a configuration (TOML) or a run folder")
    parser.add_argument("--engine", choices=list(ENGINES), default="local", help="what starts the shards [local]")
    parser.add_argument("--workers", type=_positive, default=1, metavar="N", help="how many shards run at once [1]")
    parser.add_argument(
        "--shards", type=_positive, metavar="N", help="parts of the run [as started before, or one per worker]"
    )
    # As it was called before.
    parser.add_argument("--shares", type=_positive, dest="shards", help=argparse.SUPPRESS)
    parser.add_argument(
        "--threads",
        type=_positive,
        metavar="N",
        help="cores of each shard [this machine's, divided by the workers; 1 on a cluster that already runs]",
    )
    parser.add_argument("-c", "--set", action="append", default=[], metavar="KEY=VALUE ...", help="as for `stlf run`")
    parser.add_argument("--to", type=Path, metavar="DIR", help="the run folder [runs/NAME]")
    parser.add_argument("--retries", type=_count, default=3, metavar="N", help="how often a lost shard is repeated [3]")
    parser.add_argument("--address", help="of a running Ray, or the folder of a HyperQueue server [started here]")
    parser.add_argument("--sbatch", action="append", default=[], metavar="OPTION", help="a further option of sbatch")
    parser.add_argument("--stlf", metavar="PATH", help="the stlf command, here and on the workers [STLF_BIN, the path]")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 0")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
