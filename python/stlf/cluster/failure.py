"""What can go wrong on a cluster."""


class ClusterError(RuntimeError):
    """Something that ends a run on a cluster; what is finished stays, and the same command goes on.

    >>> str(ClusterError("share 3 of 8 was lost 4 times", hint="its log is runs/mine.shares/3-of-8.log"))
    'share 3 of 8 was lost 4 times'
    """

    def __init__(self, message: str, hint: str = "", code: int = 1) -> None:
        """`code` is the exit code of the command line: 1 the system failed, 2 bad input, 3 no plan exists."""
        super().__init__(message)
        self.hint = hint
        self.code = code
