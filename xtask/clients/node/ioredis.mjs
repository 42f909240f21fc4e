// ioredis's Cluster at work: see xtask/clients/README.md.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const WORKERS = 4;
const ENTRIES = 60;
const PIPELINE = 6;
const PAUSE_MS = 3;
const SHOWN = 20;

// Codes of replies, of the system's errors, and the library's own words, for which users have
// to be ready while nodes come and go.
const PASSES =
  /^(CLUSTERDOWN|TRYAGAIN|MOVED|UNKNOWNRESULT)|ECONN|EPIPE|Connection is closed|Connection ended|Command timed out|Failed to refresh slots cache|Too many Cluster redirections|Cluster isn't ready|Stream isn't writeable|None of startup nodes is available|connect ETIMEDOUT/;

const passes = (error) =>
  PASSES.test(error.message) || (error.previousErrors ?? []).some(passes) || (error.lastNodeError && passes(error.lastNodeError));

/** One key, or three with one hash tag that are always written together. */
class Entry {
  constructor(name, size) {
    this.keys = size === 1 ? [name] : Array.from({ length: size }, (_, at) => `{${name}}${at}`);
    this.acknowledged = null;
    this.doubt = null;
  }

  /** What is wrong with these values of the keys. */
  judge(values) {
    const allowed = this.doubt === null ? [this.acknowledged] : [this.acknowledged, this.doubt];
    if (new Set(values).size === 1 && allowed.includes(values[0])) return null;
    return `${this.keys[0]}: read ${values}, acknowledged ${this.acknowledged}, in doubt ${this.doubt}`;
  }
}

/** What all workers saw, by phase. */
class Report {
  phases = [];
  counts = { acknowledged: 0, sets: 0, reads: 0, pipelines: 0, groups: 0, transactions: 0, replica_reads: 0 };
  unexpected = {};
  wrong = [];
  wrongs = 0;

  begin(name) {
    this.phases.push({ name, operations: 0, errors: {}, silence_ms: 0 });
  }

  success(kind, silence, writes) {
    if (Object.values(this.counts).every((count) => count === 0)) console.log("ready");
    const phase = this.phases.at(-1);
    phase.operations += 1;
    phase.silence_ms = Math.max(phase.silence_ms, Math.round(silence));
    this.counts[kind] += 1;
    this.counts.acknowledged += writes;
  }

  error(step, error) {
    const kind = `${step}: ${error.name}: ${String(error.message).slice(0, 80)}`;
    const { errors } = this.phases.at(-1);
    errors[kind] = (errors[kind] ?? 0) + 1;
    if (!passes(error)) this.unexpected[kind] = (this.unexpected[kind] ?? 0) + 1;
  }

  mistake(what) {
    this.wrongs += 1;
    if (this.wrong.length < SHOWN) this.wrong.push(what);
  }
}

class Worker {
  made = 0;
  value = 0;
  turn = 0;
  left = [];
  last = performance.now();

  constructor(number, cluster, replicas, report) {
    Object.assign(this, { number, cluster, replicas, report });
    this.singles = Array.from({ length: ENTRIES }, () => this.make(1));
    this.groups = Array.from({ length: ENTRIES }, () => this.make(3));
  }

  make(size) {
    this.made += 1;
    return new Entry(`ioredis:${this.number}:${this.made}`, size);
  }

  async run(ends) {
    const steps = ["set", "get", "pipeline", "mset", "mget", "transact", "replica"];
    while (!ends.aborted) {
      this.turn += 1;
      const step = steps[this.turn % steps.length];
      try {
        await this[step]();
      } catch (error) {
        this.report.error(step, error);
      }
      await sleep(PAUSE_MS);
    }
  }

  fresh() {
    this.value += 1;
    return String(this.value);
  }

  success(kind, writes = 0) {
    const now = performance.now();
    this.report.success(kind, now - this.last, writes);
    this.last = now;
  }

  /** A write was acknowledged, or nobody can say. */
  settle(entries, entry, value, error) {
    if (!error) {
      entry.acknowledged = value;
      return;
    }
    entry.doubt = value;
    this.left.push(entry);
    entries[entries.indexOf(entry)] = this.make(entry.keys.length);
  }

  async write(kind, entries, act) {
    const entry = entries[Math.floor(this.turn / 7) % ENTRIES];
    const value = this.fresh();
    try {
      await act(entry, value);
    } catch (error) {
      this.settle(entries, entry, value, error);
      throw error;
    }
    this.settle(entries, entry, value);
    this.success(kind, 1);
  }

  async read(kind, entries, ask) {
    const entry = entries[(this.turn * 31) % ENTRIES];
    const wrong = entry.judge(await ask(entry));
    if (wrong) this.report.mistake(`${kind}: ${wrong}`);
    this.success(kind);
  }

  set() {
    return this.write("sets", this.singles, (entry, value) => this.cluster.set(entry.keys[0], value));
  }

  get() {
    return this.read("reads", this.singles, async (entry) => [await this.cluster.get(entry.keys[0])]);
  }

  replica() {
    return this.read("replica_reads", this.singles, async (entry) => [await this.replicas.get(entry.keys[0])]);
  }

  mset() {
    return this.write("groups", this.groups, (entry, value) =>
      this.cluster.mset(entry.keys.flatMap((key) => [key, value])),
    );
  }

  mget() {
    return this.read("groups", this.groups, (entry) => this.cluster.mget(entry.keys));
  }

  transact() {
    return this.write("transactions", this.groups, async (entry, value) => {
      const transaction = this.cluster.multi();
      for (const key of entry.keys) transaction.set(key, value);
      const failed = (await transaction.exec())?.find(([error]) => error);
      if (failed) throw failed[0];
    });
  }

  /** ioredis sends a pipeline to one node, so its keys have to be one slot's: one tag here. */
  async pipeline() {
    const entry = this.groups[(this.turn * 13) % ENTRIES];
    const value = this.fresh();
    const pipeline = this.cluster.pipeline();
    for (let at = 0; at < PIPELINE; at += 1) pipeline.set(entry.keys[at % entry.keys.length], value);
    let error;
    try {
      error = (await pipeline.exec()).find(([failed]) => failed)?.[0];
    } catch (failed) {
      error = failed;
    }
    this.settlePipeline(entry, value, error);
  }

  /** Of a pipeline that failed, some keys may have the value and others not. */
  settlePipeline(entry, value, error) {
    if (!error) {
      entry.acknowledged = value;
      this.success("pipelines", entry.keys.length);
      return;
    }
    this.report.error("pipeline", error);
    const at = this.groups.indexOf(entry);
    this.groups[at] = this.make(entry.keys.length);
    for (const key of entry.keys) {
      const single = new Entry(key, 1);
      single.acknowledged = entry.acknowledged;
      single.doubt = value;
      this.left.push(single);
    }
  }
}

/** Reads everything again; what cannot be read for a minute is wrong. */
async function audit(cluster, entries, report) {
  const until = performance.now() + 60_000;
  for (const entry of entries) {
    let values;
    while (values === undefined) {
      try {
        values = await cluster.mget(entry.keys);
      } catch (error) {
        if (performance.now() > until || !passes(error)) values = [String(error)];
        else await sleep(100);
      }
    }
    const wrong = entry.judge(values);
    if (wrong) report.mistake(`at the end: ${wrong}`);
  }
}

const nodes = process.argv[2].split(",").map((address) => {
  const [host, port] = address.split(":");
  return { host, port: Number(port) };
});
const redisOptions = { commandTimeout: 10_000, connectTimeout: 2_000 };
const cluster = new Redis.Cluster(nodes, { redisOptions });
const replicas = new Redis.Cluster(nodes, { redisOptions, scaleReads: "slave" });
// Without a listener, an error that the library tells of beside its replies would end the program.
for (const one of [cluster, replicas]) one.on("error", () => {});

const report = new Report();
const ends = new AbortController();
report.begin("connects");
const workers = Array.from({ length: WORKERS }, (_, number) => new Worker(number, cluster, replicas, report));
const running = workers.map((worker) => worker.run(ends.signal));
for await (const line of createInterface({ input: process.stdin })) report.begin(line.trim());
ends.abort();
await Promise.all(running);
const entries = workers.flatMap((worker) => [...worker.singles, ...worker.groups, ...worker.left]);
await audit(cluster, entries, report);
const { version } = createRequire(import.meta.url)("ioredis/package.json");
const { phases, unexpected, wrong, wrongs, counts } = report;
const result = {
  library: `ioredis ${version}`,
  phases,
  unexpected,
  wrong,
  wrongs,
  doubts: workers.reduce((sum, worker) => sum + worker.left.length, 0),
  keys: entries.reduce((sum, entry) => sum + entry.keys.length, 0),
  counts,
};
console.log(JSON.stringify(result));
process.exit(wrongs > 0 || Object.keys(unexpected).length > 0 ? 1 : 0);
