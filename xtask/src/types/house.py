"""What the programs share: connections, clients at once, checks, figures.

Each program is started as `python program.py PORT` and ends with 1 where a check fails.
"""

import random
import sys
import threading
import time

import redis

PORT = int(sys.argv[1])
CLIENTS = 4

failures = 0
begun = time.monotonic()


def connect():
    return redis.Redis(port=PORT, decode_responses=True, socket_timeout=60)


def title(text):
    print(f"\n{text}")


def figure(text):
    print(f"         {text}")


def check(what, found, expected=True):
    """Says whether what was found is what must be there."""
    global failures
    if found == expected:
        print(f"  ok     {what}")
        return
    failures += 1
    print(f"  FAILED {what}\n         found {found!r:.300}\n         not   {expected!r:.300}")


def at_once(work, clients=CLIENTS):
    """Runs `work(connection, random, number)` in several clients; answers what they answer."""
    answers = [None] * clients
    errors = []

    def run(number):
        try:
            answers[number] = work(connect(), random.Random(number), number)
        except Exception as error:
            errors.append(f"client {number}: {error!r}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(f"{clients} clients worked at once without an error", errors, [])
    if errors:
        end()
    return answers


def until(holds, seconds=30):
    """Waits until something holds; answers whether it came to that."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def end():
    figure(f"{time.monotonic() - begun:.1f} s")
    sys.stdout.flush()
    sys.exit(1 if failures else 0)
