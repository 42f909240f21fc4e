"""What the programs in this directory share: the server's address and how checks are reported.

Each program is started with HOST and PORT, does a job with an application that knows Redis only,
and prints a line `[ok] what` or `[failed] what: why` for each thing that it has checked, and
`[missing] what` for what the application does on Redis and cannot do here.
"""

import os
import sys
import time

HOST = sys.argv[1] if len(sys.argv) > 2 else os.environ.get("APPS_HOST", "127.0.0.1")
PORT = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ.get("APPS_PORT", "6379"))
URL = f"redis://{HOST}:{PORT}"

_failures = 0


def check(what, found, wanted=True):
    """Reports whether `found` is what is wanted."""
    global _failures
    if found == wanted:
        print(f"[ok] {what}", flush=True)
    else:
        _failures += 1
        print(f"[failed] {what}: {found!r} instead of {wanted!r}"[:400], flush=True)


def missing(what):
    """Reports what the application cannot do on this server."""
    print(f"[missing] {what}", flush=True)


def wait_until(condition, seconds=60):
    """Whether `condition` holds within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def finish():
    """Ends the program; what failed is in its status too."""
    print(f"[end] {_failures} failed", flush=True)
    sys.exit(1 if _failures else 0)
