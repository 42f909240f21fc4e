"""Celery with the server as its broker: a worker in a process of its own takes tasks from lists
(BRPOP), keeps what it has not acknowledged in a hash and a sorted set, and runs tasks, groups,
chains, delays and retries. Where there is no PUBLISH, results go to files and the worker runs without
remote control, gossip and mingling, each of which publishes or subscribes. Where there are no
scripts, the lock around redelivery is given back by WATCH and MULTI instead of EVALSHA."""

import os
import signal
import subprocess
import sys
import tempfile

import redis

from check import HOST, PORT, check, finish, missing, wait_until

UNKNOWN = "unknown command"


def answers(ask, without):
    """Whether the server knows the command, and otherwise what is to be done without."""
    try:
        ask()
        return True
    except redis.ResponseError as error:
        if UNKNOWN not in str(error):
            raise
        missing(f"{without}: {error}"[:120])
        return False


def environment(directory, pubsub, scripts):
    results = f"redis://{HOST}:{PORT}/1" if pubsub and scripts else f"file://{directory}/results"
    os.makedirs(f"{directory}/results")
    os.environ.update(
        APPS_HOST=HOST,
        APPS_PORT=str(PORT),
        APPS_PUBSUB=str(int(pubsub)),
        APPS_SCRIPTS=str(int(scripts)),
        APPS_RESULTS=results,
    )


def start_worker(directory, pubsub):
    quiet = [] if pubsub else ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    log = open(f"{directory}/worker.log", "a")
    line = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-P", "threads", "-c", "2", "-l", "INFO"]
    return subprocess.Popen(line + quiet, stdout=log, stderr=log)


def main():
    r = redis.Redis(HOST, PORT)
    directory = tempfile.mkdtemp()
    pubsub = answers(lambda: r.publish("c", ""), "Celery's results in Redis, remote control, gossip")
    scripts = answers(lambda: r.eval("return 1", 0), "Celery's own lock around redelivery")
    environment(directory, pubsub, scripts)
    from celery import chain, group

    import celery_app
    import jobs

    numbers = list(range(1000, 1060))
    made = [celery_app.factors.delay(number) for number in numbers]
    check("tasks wait in a list", r.llen("celery"), len(numbers))
    worker = start_worker(directory, pubsub)
    try:
        check("results are right", [task.get(timeout=90) for task in made], [jobs.factors(n) for n in numbers])
        check("the list is empty", r.llen("celery"), 0)
        together = group(celery_app.factors.s(n) for n in range(2, 22))()
        check("a group", together.get(timeout=60), [jobs.factors(n) for n in range(2, 22)])
        one_by_one = chain(celery_app.factors.s(30), celery_app.add.s())()
        check("a chain", one_by_one.get(timeout=60), 10)
        later = celery_app.factors.apply_async((77,), countdown=0.5)
        check("a task for later", later.get(timeout=60), [7, 11])
        again = celery_app.fails_once.delay(f"{directory}/marker")
        check("a task that is tried again", again.get(timeout=60), "second time")
        failed = celery_app.fails.delay("as it must")
        check("a task that fails", str(failed.get(timeout=60, propagate=False)), "as it must")
        important = celery_app.factors.apply_async((91,), priority=9)
        check("a task with a priority", important.get(timeout=60), [7, 13])
        settled = wait_until(lambda: r.hlen("unacked") == 0 and r.zcard("unacked_index") == 0, 30)
        check("everything is acknowledged", settled)
        check("the worker lives", worker.poll(), None)
    finally:
        worker.send_signal(signal.SIGTERM)
        status = worker.wait(30)
    check("and ends when asked to", status, 0)
    finish()


if __name__ == "__main__":
    main()
