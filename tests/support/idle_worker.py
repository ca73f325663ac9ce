"""A worker that does nothing: it holds its job's lock until somebody asks the job to end.

It stands for the real worker where only starting and ending a job are looked at; it is quick to
start, because it imports nothing of ours.
"""

import sys
import time
from pathlib import Path

LONGEST_S = 60

if __name__ == "__main__":
    lock = Path(f"/proc/self/fd/{sys.argv[2]}")
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline and not lock.readlink().with_name("cancel").exists():
        time.sleep(0.005)
