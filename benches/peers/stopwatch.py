"""Timing that does not count a busy machine against a peer."""

import time


class Stopwatch:
    """Seconds since it was made: wall time or this process's CPU time, whichever is less.

    On an idle machine the two agree for a solver with one thread. On a busy one, wall time counts
    the waiting too, and a run of a second waits more often than one of a millisecond.
    """

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def seconds(self):
        return min(time.perf_counter() - self.wall, time.process_time() - self.cpu)
