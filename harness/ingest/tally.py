"""Counts a run's numbers while they go by."""

import numpy as np
import numpy.typing as npt


class Tally:
    """Of each stored series, by its number: how many numbers, the first and the last."""

    def __init__(self, size: int) -> None:
        self.n: npt.NDArray[np.int64] = np.zeros(size, np.int64)
        self.first, self.last = np.full(size, np.nan), np.full(size, np.nan)

    def add(self, series: npt.NDArray[np.int32], values: npt.NDArray[np.float64]) -> None:
        """Count a batch."""
        # Of a series that stands several times in an assignment the last number is kept, so `first` goes backwards.
        fresh = np.flatnonzero(self.n[series] == 0)[::-1]
        self.first[series[fresh]] = values[fresh]
        self.last[series] = values
        self.n += np.bincount(series, minlength=len(self.n))
