"""What can go wrong on a cluster: the exit codes of `stlf` as exceptions, and back."""

from stlf.errors import Error, InfeasibleError, InputError, MissingError


class ClusterError(Error):
    """Something that ends a run on a cluster; what is finished is kept, and the same command continues.

    >>> print(ClusterError("shard 3 of 8 was lost 4 times", "its log is runs/mine.shards/3-of-8.log"))
    shard 3 of 8 was lost 4 times
    hint: its log is runs/mine.shards/3-of-8.log
    """


def of_code(code: int, message: str, hint: str) -> Error:
    """The exception for an exit code of `stlf`.

    >>> of_code(2, "training.steps is 0", "at least 1")
    InputError('training.steps is 0', 'at least 1')
    """
    kind = {2: InputError, 3: InfeasibleError}.get(code, ClusterError)
    return kind(message, hint)


def code_of(error: Error) -> int:
    """The exit code for an exception, as `stlf` has them.

    >>> code_of(InputError("cannot read mine.toml")), code_of(ClusterError("Ray does not answer"))
    (2, 1)
    """
    if isinstance(error, InfeasibleError):
        return 3
    return 2 if isinstance(error, InputError | MissingError) else 1
