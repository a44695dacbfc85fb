"""What ``is_leader`` costs beside reading the clock: ``cargo xtask bench clients``."""

import platform
import statistics
import sys
import time
import timeit

from tenure_client import LeaderElection

CALLS = 500_000
BAR = 3.0

election = LeaderElection(lambda sql, params: [(True, 1, 3_600_000.0, False)], election="bench", ttl=3600)
election.start()
assert election.is_leader
names = {"election": election, "read": time.clock_gettime, "number": time.CLOCK_BOOTTIME}
clock, asked = [], []
for _ in range(15):
    clock.append(timeit.timeit("read(number)", number=CALLS, globals=names))
    asked.append(timeit.timeit("election.is_leader", number=CALLS, globals=names))
read = statistics.median(clock) / CALLS * 1e9
leads = statistics.median(asked) / CALLS * 1e9
print(
    f"Python {platform.python_version()}: is_leader {leads:.0f} ns, clock_gettime(CLOCK_BOOTTIME) "
    f"{read:.0f} ns: {leads / read:.2f} x (bar {BAR:.0f})"
)
election.stop()
sys.exit(0 if leads / read <= BAR else 1)
