"""redis-py's RedisCluster at work: see xtask/clients/README.md."""

import json
import sys
import threading
import time

import redis
from redis.cluster import ClusterNode, LoadBalancingStrategy, RedisCluster
from redis.exceptions import (
    ClusterDownError,
    ConnectionError,
    MovedError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

WORKERS = 4
ENTRIES = 60
PIPELINE = 6
PAUSE = 0.003
SHOWN = 20


def connect(addresses, **options):
    """What its documentation advises, with limits on how long a socket may be silent."""
    nodes = [ClusterNode(host, int(port)) for host, port in addresses]
    return RedisCluster(
        startup_nodes=nodes,
        decode_responses=True,
        socket_timeout=5,
        socket_connect_timeout=2,
        **options,
    )


def passes(error):
    """Whether users have to be ready for the error while nodes come and go."""
    text = str(error)
    if isinstance(error, ResponseError) and text.startswith("UNKNOWNRESULT"):
        return True
    return isinstance(
        error, (ConnectionError, TimeoutError, ClusterDownError, TryAgainError, MovedError)
    )


class Entry:
    """One key, or three with one hash tag that are always written together."""

    def __init__(self, name, size):
        self.keys = [name] if size == 1 else [f"{{{name}}}{at}" for at in range(size)]
        self.acknowledged = None
        self.doubt = None

    def judge(self, values):
        """What is wrong with these values of the keys."""
        allowed = {self.acknowledged, self.doubt}
        if self.doubt is None:
            allowed = {self.acknowledged}
        if len(set(values)) == 1 and values[0] in allowed:
            return None
        return f"{self.keys[0]}: read {values}, acknowledged {self.acknowledged}, in doubt {self.doubt}"


class Report:
    """What all workers saw, by phase."""

    def __init__(self):
        self.lock = threading.Lock()
        self.phases = []
        self.counts = dict.fromkeys(
            ["acknowledged", "reads", "pipelines", "groups", "transactions", "replica_reads"], 0
        )
        self.unexpected = {}
        self.wrong = []
        self.wrongs = 0
        self.begin("connects")

    def begin(self, name):
        with self.lock:
            self.phases.append({"name": name, "operations": 0, "errors": {}, "silence_ms": 0})

    def success(self, kind, silence, writes=0):
        with self.lock:
            if not any(self.counts.values()):
                print("ready", flush=True)
            phase = self.phases[-1]
            phase["operations"] += 1
            phase["silence_ms"] = max(phase["silence_ms"], int(silence * 1000))
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.counts["acknowledged"] += writes

    def error(self, step, error):
        kind = f"{step}: {type(error).__name__}: {str(error)[:80]}"
        with self.lock:
            errors = self.phases[-1]["errors"]
            errors[kind] = errors.get(kind, 0) + 1
            if not passes(error):
                self.unexpected[kind] = self.unexpected.get(kind, 0) + 1

    def mistake(self, what):
        with self.lock:
            self.wrongs += 1
            if len(self.wrong) < SHOWN:
                self.wrong.append(what)


class Worker(threading.Thread):
    def __init__(self, number, cluster, replicas, report, ends):
        super().__init__(daemon=True)
        self.number, self.cluster, self.replicas = number, cluster, replicas
        self.report, self.ends = report, ends
        self.made = self.value = self.turn = 0
        self.left = []
        self.singles = [self.make(1) for _ in range(ENTRIES)]
        self.groups = [self.make(3) for _ in range(ENTRIES)]
        self.last = time.monotonic()

    def make(self, size):
        self.made += 1
        return Entry(f"redis-py:{self.number}:{self.made}", size)

    def run(self):
        steps = [self.set, self.get, self.pipeline, self.mset, self.mget, self.transact, self.replica]
        while not self.ends.is_set():
            self.turn += 1
            step = steps[self.turn % len(steps)]
            try:
                step()
            except Exception as error:
                self.report.error(step.__name__, error)
            time.sleep(PAUSE)

    def fresh(self):
        self.value += 1
        return str(self.value)

    def success(self, kind, writes=0):
        now = time.monotonic()
        self.report.success(kind, now - self.last, writes)
        self.last = now

    def settle(self, entries, entry, value, error=None):
        """A write was acknowledged, or nobody can say."""
        if error is None:
            entry.acknowledged = value
            return
        entry.doubt = value
        self.left.append(entry)
        entries[entries.index(entry)] = self.make(len(entry.keys))

    def write(self, kind, entries, act):
        entry, value = entries[self.turn // 7 % ENTRIES], self.fresh()
        try:
            act(entry, value)
        except Exception as error:
            self.settle(entries, entry, value, error)
            raise
        self.settle(entries, entry, value)
        self.success(kind, 1)

    def read(self, kind, entries, ask):
        entry = entries[self.turn * 31 % ENTRIES]
        values = ask(entry)
        wrong = entry.judge(values)
        if wrong:
            self.report.mistake(f"{kind}: {wrong}")
        self.success(kind)

    def set(self):
        self.write("sets", self.singles, lambda entry, value: self.cluster.set(entry.keys[0], value))

    def get(self):
        self.read("reads", self.singles, lambda entry: [self.cluster.get(entry.keys[0])])

    def replica(self):
        self.read("replica_reads", self.singles, lambda entry: [self.replicas.get(entry.keys[0])])

    def mset(self):
        def act(entry, value):
            self.cluster.mset(dict.fromkeys(entry.keys, value))

        self.write("groups", self.groups, act)

    def mget(self):
        self.read("groups", self.groups, lambda entry: self.cluster.mget(entry.keys))

    def transact(self):
        def act(entry, value):
            transaction = self.cluster.pipeline(transaction=True)
            for key in entry.keys:
                transaction.set(key, value)
            transaction.execute()

        self.write("transactions", self.groups, act)

    def pipeline(self):
        start = self.turn * 13
        entries = [self.singles[(start + at) % ENTRIES] for at in range(PIPELINE)]
        written = [(entry, self.fresh()) for entry in entries]
        try:
            pipeline = self.cluster.pipeline()
            for entry, value in written:
                pipeline.set(entry.keys[0], value)
            replies = pipeline.execute(raise_on_error=False)
        except Exception as error:
            replies = [error] * PIPELINE
        failed = [reply for reply in replies if isinstance(reply, Exception)]
        for (entry, value), reply in zip(written, replies):
            self.settle(self.singles, entry, value, reply if reply in failed else None)
        for error in failed:
            self.report.error("pipeline", error)
        if not failed:
            self.success("pipelines", PIPELINE)


def audit(cluster, entries, report):
    """Reads everything again; what cannot be read for a minute is wrong."""
    until = time.monotonic() + 60
    for entry in entries:
        while True:
            try:
                values = cluster.mget(entry.keys)
                break
            except Exception as error:
                if time.monotonic() > until or not passes(error):
                    values = [repr(error)]
                    break
                time.sleep(0.1)
        wrong = entry.judge(values)
        if wrong:
            report.mistake(f"at the end: {wrong}")


def main():
    addresses = [address.rsplit(":", 1) for address in sys.argv[1].split(",")]
    cluster = connect(addresses)
    replicas = connect(addresses, load_balancing_strategy=LoadBalancingStrategy.RANDOM_REPLICA)
    report, ends = Report(), threading.Event()
    workers = [Worker(number, cluster, replicas, report, ends) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    for line in sys.stdin:
        report.begin(line.strip())
    ends.set()
    for worker in workers:
        worker.join()
    entries = [entry for worker in workers for entry in worker.singles + worker.groups + worker.left]
    audit(cluster, entries, report)
    result = {
        "library": f"redis-py {redis.__version__}",
        "phases": report.phases,
        "unexpected": report.unexpected,
        "wrong": report.wrong,
        "wrongs": report.wrongs,
        "doubts": sum(len(worker.left) for worker in workers),
        "keys": sum(len(entry.keys) for entry in entries),
        "counts": report.counts,
    }
    print(json.dumps(result), flush=True)
    sys.exit(1 if report.wrongs or report.unexpected else 0)


main()
