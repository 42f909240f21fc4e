"""The Celery application that `celery_jobs.py` and the worker that it starts both import."""

import contextlib
import os
import uuid

import kombu.transport.redis
from celery import Celery

import jobs

HOST, PORT = os.environ["APPS_HOST"], os.environ["APPS_PORT"]



@contextlib.contextmanager
def mutex(client, name, expire):
    """What Celery's Redis transport holds while it delivers anew what a dead worker had taken. It
    takes the lock with SET NX and gives it back with a script; this one does so with WATCH."""
    token = uuid.uuid4().hex
    if not client.set(name, token, nx=True, ex=expire):
        raise kombu.transport.redis.MutexHeld()
    try:
        yield
    finally:
        with client.pipeline() as pipe:
            pipe.watch(name)
            if pipe.get(name) == token.encode():
                pipe.multi()
                pipe.delete(name)
                pipe.execute()


if os.environ["APPS_SCRIPTS"] == "0":
    kombu.transport.redis.Mutex = mutex

app = Celery("apps", broker=f"redis://{HOST}:{PORT}/0", backend=os.environ["APPS_RESULTS"])
app.conf.update(
    # Each of these would publish or subscribe.
    worker_enable_remote_control=os.environ["APPS_PUBSUB"] == "1",
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    worker_prefetch_multiplier=4,
)


@app.task
def factors(number):
    return jobs.factors(number)


@app.task
def add(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def fails_once(self, marker):
    try:
        return jobs.fails_once(marker)
    except RuntimeError as error:
        raise self.retry(exc=error, countdown=0.2)


@app.task
def fails(text):
    jobs.fails(text)
