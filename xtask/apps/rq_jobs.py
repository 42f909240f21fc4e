"""RQ: jobs with results, dependencies, failures and retries, run by its workers in processes of
their own. Where there is no SUBSCRIBE a worker cannot listen for remote commands (`rq stop`,
shutdown of a worker from afar), and runs with that channel switched off; where there is no XADD,
RQ is told to keep results in hashes, as it does on Redis 4."""

import multiprocessing
import os
import tempfile

import redis
from rq import Queue, Retry, SimpleWorker, Worker
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry

import jobs
from check import HOST, PORT, check, finish, missing

UNKNOWN = "unknown command"


def connect():
    return redis.Redis(HOST, PORT)


class Deaf:
    """A worker without the channel for remote commands."""

    def subscribe(self):
        pass

    def unsubscribe(self):
        pass


class DeafWorker(Deaf, Worker):
    pass


class DeafSimpleWorker(Deaf, SimpleWorker):
    pass


def knows(ask, without):
    """Whether the server knows the command, and otherwise what is to be done without."""
    try:
        ask()
        return True
    except redis.ResponseError as error:
        if UNKNOWN not in str(error):
            raise
        missing(f"{without}: {error}"[:120])
        return False


def listen():
    with connect().pubsub() as listener:
        listener.subscribe("channel")
        listener.get_message(timeout=5)


def classes():
    """RQ's workers as they are, or without what the server has not got."""
    if not knows(lambda: connect().xadd("stream", {"field": "value"}), "streams of results"):
        Job.supports_redis_streams = False
    connect().flushall()
    if knows(listen, "remote commands for RQ's workers"):
        return Worker, SimpleWorker
    return DeafWorker, DeafSimpleWorker


def value(job):
    """What the job returned."""
    return Job.fetch(job.id, connection=connect()).result


def burst(worker, names):
    """A worker in a process of its own, until the queues are empty."""
    connection = connect()
    worker(names, connection=connection).work(burst=True, logging_level="CRITICAL")


def run_workers(worker, names, count):
    processes = [multiprocessing.Process(target=burst, args=(worker, names)) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def results(worker):
    r = connect()
    high, low = Queue("high", connection=r), Queue("low", connection=r)
    numbers = list(range(1000, 1040))
    made = [(high if n % 4 == 0 else low).enqueue(jobs.factors, n, result_ttl=600) for n in numbers]
    check("jobs are queued", (high.count, low.count), (10, 30))
    check("workers that fork end well", run_workers(worker, ["high", "low"], 3), [0, 0, 0])
    check("results are right", [value(job) for job in made], [jobs.factors(n) for n in numbers])
    check("all are finished", {job.get_status(refresh=True) for job in made}, {"finished"})
    check("the registry has them", len(FinishedJobRegistry("low", connection=r)), 30)
    check("queues are empty", (high.count, low.count), (0, 0))
    fetched = Job.fetch_many([job.id for job in made], connection=r)
    check("jobs are fetched by their names", [job.args[0] for job in fetched], numbers)
    check("workers have gone", Worker.count(connection=r), 0)


def failures(worker):
    r = connect()
    queue = Queue("failing", connection=r)
    marker = os.path.join(tempfile.mkdtemp(), "marker")
    again = queue.enqueue(jobs.fails_once, marker, retry=Retry(max=2))
    broken = queue.enqueue(jobs.fails, "as it must")
    worker(["failing"], connection=r).work(burst=True, logging_level="CRITICAL")
    check("a job is tried again", value(again), "second time")
    check("a job fails", broken.get_status(refresh=True), "failed")
    check("its error is kept", "as it must" in Job.fetch(broken.id, connection=r).exc_info)
    registry = FailedJobRegistry("failing", connection=r)
    check("it is in the registry of failed jobs", registry.get_job_ids(), [broken.id])
    registry.requeue(broken.id)
    check("and is queued again", queue.job_ids, [broken.id])
    if knows(lambda: r.eval("return 1", 0), "RQ's Queue.empty, Queue.delete and unique jobs"):
        queue.empty()
    else:
        queue.remove(broken)
        broken.delete()
    check("and deleted", (queue.count, Job.exists(broken.id, connection=r)), (0, False))


def dependencies(worker):
    r = connect()
    queue = Queue("chain", connection=r)
    first = queue.enqueue(jobs.factors, 2 * 3 * 5)
    second = queue.enqueue(jobs.factors, 7 * 11, depends_on=first)
    both = queue.enqueue(jobs.factors, 13, depends_on=[first, second])
    check("what depends on others waits", (queue.count, second.get_status()), (1, "deferred"))
    worker(["chain"], connection=r).work(burst=True, logging_level="CRITICAL")
    found = [value(job) for job in (first, second, both)]
    check("dependent jobs run in their order", found, [[2, 3, 5], [7, 11], [13]])
    many = queue.enqueue_many([Queue.prepare_data(jobs.factors, (n,), job_id=f"many-{n}") for n in range(2, 52)])
    check("many are queued at once", (len(many), queue.count), (50, 50))
    many[10].cancel()
    worker(["chain"], connection=r).work(burst=True, logging_level="CRITICAL")
    states = [job.get_status(refresh=True) for job in many]
    check("all run but the one that was cancelled", (states.count("finished"), states[10]), (49, "canceled"))
    many[11].meta["note"] = "kept"
    many[11].save_meta()
    check("notes on jobs", Job.fetch("many-13", connection=r).meta, {"note": "kept"})


if __name__ == "__main__":
    forking, simple = classes()
    results(forking)
    failures(simple)
    dependencies(simple)
    finish()
