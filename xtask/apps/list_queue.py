"""Job queues on lists as Sidekiq and its kin keep them: LPUSH by producers, BRPOP over queues in
order of importance, a sorted set of jobs that are tried again later, and a list per worker with what
it is working on (BLMOVE), from which the jobs of a worker that was killed are fetched back."""

import json
import multiprocessing
import os
import signal
import time

import redis

from check import HOST, PORT, check, finish, wait_until

JOBS = 600
WORKERS = 4


def connect():
    return redis.Redis(HOST, PORT, decode_responses=True)


def produce(first, count):
    r = connect()
    r.sadd("queues", "default", "critical")
    for number in range(first, first + count):
        job = json.dumps({"jid": number, "class": "Square", "args": [number], "retry": 2})
        r.lpush("queue:critical" if number % 10 == 0 else "queue:default", job)


def perform(r, text, worker):
    """Runs a job: every seventh fails the first time and goes to the sorted set of retries."""
    job = json.loads(text)
    number = job["args"][0]
    if number % 7 == 0 and job.get("failed", 0) == 0:
        job["failed"] = 1
        with r.pipeline(transaction=True) as pipe:
            pipe.zadd("retry", {json.dumps(job): time.time() + 0.2})
            pipe.incr("stat:failed")
            pipe.execute()
        return
    with r.pipeline(transaction=True) as pipe:
        pipe.hset("results", number, number * number)
        pipe.hincrby("done", number, 1)
        pipe.incr("stat:processed")
        pipe.hincrby("stat:by-worker", worker, 1)
        pipe.execute()


def work(name):
    r = connect()
    while not r.exists("stop"):
        fetched = r.brpop(["queue:critical", "queue:default"], timeout=1)
        r.hset(f"process:{name}", mapping={"beat": time.time(), "busy": int(bool(fetched))})
        r.expire(f"process:{name}", 60)
        if fetched:
            perform(r, fetched[1], name)


def poll():
    """Puts what is due back into its queue; several pollers agree by ZREM on who does it."""
    r = connect()
    while not r.exists("stop"):
        for text in r.zrange("retry", "-inf", time.time(), byscore=True, offset=0, num=20):
            if r.zrem("retry", text):
                r.lpush("queue:default", text)
        time.sleep(0.02)


def work_and_hang(name):
    """Takes a job into a list of its own and never ends it."""
    r = connect()
    r.blmove("queue:reliable", f"working:{name}", 5, "RIGHT", "LEFT")
    r.set(f"taken:{name}", 1)
    time.sleep(600)


def start(target, *args):
    process = multiprocessing.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def many_workers():
    r = connect()
    workers = [start(work, f"w{number}") for number in range(WORKERS)]
    pollers = [start(poll) for _ in range(2)]
    producers = [start(produce, half * JOBS // 2, JOBS // 2) for half in range(2)]
    ended = wait_until(lambda: r.hlen("results") == JOBS, 90)
    check("all jobs end", ended)
    for process in producers:
        process.join()
    r.set("stop", 1)
    for process in workers + pollers:
        process.join(10)
    results = r.hgetall("results")
    check("results are right", results, {str(n): str(n * n) for n in range(JOBS)})
    check("no job ran twice", set(r.hvals("done")), {"1"})
    check("failed jobs were tried again", int(r.get("stat:failed")), len(range(0, JOBS, 7)))
    check("nothing is left over", (r.exists("queue:default", "queue:critical", "retry")), 0)
    check("counters agree", int(r.get("stat:processed")), JOBS)
    check("workers shared the work", r.hlen("stat:by-worker"), WORKERS)
    check("processes are registered", sum(1 for _ in r.scan_iter("process:*")), WORKERS)
    check("queues are registered", r.smembers("queues"), {"default", "critical"})


def order():
    r = connect()
    r.lpush("queue:low", "l1", "l2")
    r.lpush("queue:high", "h1", "h2")
    got = [r.brpop(["queue:high", "queue:low"], 1)[1] for _ in range(4)]
    check("important queues first, each in order", got, ["h1", "h2", "l1", "l2"])
    begin = time.monotonic()
    check("an empty queue times out", r.brpop("queue:high", 0.2), None)
    check("and not at once", time.monotonic() - begin > 0.1)


def killed_worker():
    r = connect()
    r.lpush("queue:reliable", "precious")
    victim = start(work_and_hang, "victim")
    check("a worker takes a job into its list", wait_until(lambda: r.exists("taken:victim"), 20))
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    check("the killed worker's job is still there", r.lrange("working:victim", 0, -1), ["precious"])
    check("and is fetched back", r.lmove("working:victim", "queue:reliable", "RIGHT", "RIGHT"), "precious")
    check("for another worker", r.blmove("queue:reliable", "working:next", 5, "RIGHT", "LEFT"), "precious")
    check("which ends it", r.lrem("working:next", 1, "precious"), 1)


if __name__ == "__main__":
    many_workers()
    order()
    killed_worker()
    finish()
