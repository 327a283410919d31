"""One run on several machines: shards of it under Ray, HyperQueue, Slurm or as plain processes.

    python -m stlf.cluster mine.toml --engine ray --workers 4

Every shard is a `stlf run --shard K/N` in a folder of its own. Lost shards are started again, and go on where they
were; `stlf merge` joins them. The results are those of one machine, byte for byte.
"""

from stlf.cluster.conduct import conduct
from stlf.cluster.engine import ENGINES, Ended, Engine, Workers
from stlf.cluster.failure import ClusterError
from stlf.cluster.shard import Division, Shard, find_stlf
from stlf.cluster.watch import watch

__all__ = [
    "ENGINES",
    "ClusterError",
    "Division",
    "Ended",
    "Engine",
    "Shard",
    "Workers",
    "conduct",
    "find_stlf",
    "watch",
]
