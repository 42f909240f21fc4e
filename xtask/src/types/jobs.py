"""A job queue: workers take jobs with BLMOVE, are killed at any point, and nothing is lost.

A job is always in one list: the queue, or that of the worker which has it. A worker that has done one
removes it from its list together with storing the result. Whoever watches over the workers puts back
what the dead ones had.
"""

import multiprocessing
import os
import random
import time

from house import check, connect, end, figure, title, until

JOBS = 1_500
WORKERS = 5
KILLS = 12

title(f"Jobs: {JOBS} of them, {WORKERS} workers, {KILLS} killed with kill -9")
processes = multiprocessing.get_context("fork")


def result(job):
    return f"{job}:{int(job.removeprefix('job')) ** 2}"


def work(name, seed):
    """A worker: until it is killed or the queue says stop."""
    store = connect()
    chance = random.Random(seed)
    while True:
        job = store.blmove("queue", f"taken:{name}", 5, "LEFT", "RIGHT")
        if job == "stop":
            store.lrem(f"taken:{name}", 1, job)
            os._exit(0)
        if job is None:
            continue
        store.hincrby("attempts", job, 1)
        time.sleep(chance.random() * 0.004)
        done = store.pipeline(transaction=True)
        done.hset("results", job, result(job))
        done.lrem(f"taken:{name}", 1, job)
        done.execute()


def start(number):
    process = processes.Process(target=work, args=(f"worker{number}", number), daemon=True)
    process.start()
    return f"worker{number}", process


def put_back(store, name):
    """Moves what a dead worker had to the front of the queue; answers how many jobs."""
    count = 0
    while store.lmove(f"taken:{name}", "queue", "RIGHT", "LEFT") is not None:
        count += 1
    return count


running = [start(number) for number in range(WORKERS)]
store = connect()
names = [f"job{number}" for number in range(JOBS)]
chance = random.Random(7)
dead, returned = [], 0
for first in range(0, JOBS, 100):
    store.rpush("queue", *names[first : first + 100])
for kill in range(KILLS):
    goal = JOBS * (kill + 1) // (KILLS + 2)
    if not until(lambda: store.hlen("results") >= goal):
        break
    name, victim = running.pop(chance.randrange(len(running)))
    victim.kill()
    victim.join()
    dead.append(name)
    running.append(start(WORKERS + kill))
    returned += sum(put_back(store, name) for name in dead)


def all_done():
    """Puts back again and again: a killed worker's request may arrive after its death was noticed."""
    global returned
    returned += sum(put_back(store, name) for name in dead)
    return store.hlen("results") == JOBS


check("the queue is worked off", until(all_done))

store.rpush("queue", *["stop"] * WORKERS)
for _, process in running:
    process.join(30)
check("the workers that lived ended when told to", [p.exitcode for _, p in running], [0] * WORKERS)
for name in dead:
    put_back(store, name)
# What dead workers had done, and not crossed off, comes back once more.
rest = store.lrange("queue", 0, -1)
found = store.hgetall("results")
check("every job is done", sorted(found), sorted(names))
check("and done rightly", [found.get(job) for job in names], [result(job) for job in names])
taken = sum(store.llen(f"taken:worker{number}") for number in range(WORKERS + KILLS))
check("nobody has a job still", taken, 0)
check("nothing is left that was not done", [job for job in rest if job not in found and job != "stop"], [])
attempts = store.hvals("attempts")
twice = sum(int(count) > 1 for count in attempts)
check("each was begun once at least", len(attempts), JOBS)
check("jobs begun again are not more than were put back", twice <= returned)
check(f"{KILLS} workers were killed", [len(dead), len(set(dead))], [KILLS, KILLS])
figure(f"{returned} jobs were put back from dead workers, {twice} begun again")
end()
