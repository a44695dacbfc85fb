"""The clock by which trust is counted: seconds that only rise.

On Linux it counts the time in which the machine slept (``CLOCK_BOOTTIME``), and so it does on
macOS (``CLOCK_MONOTONIC`` there). Elsewhere Python has no such clock: after a sleep trust ends too
late by the time that was slept, and ``README.md`` says so.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Callable


def _clock() -> Callable[[], float]:
    number = getattr(time, "CLOCK_BOOTTIME", None)
    if number is None and sys.platform == "darwin":
        number = time.CLOCK_MONOTONIC
    if number is None:
        return time.monotonic
    return functools.partial(time.clock_gettime, number)


now: Callable[[], float] = _clock()
