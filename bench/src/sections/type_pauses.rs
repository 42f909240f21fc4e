//! How long commands on collections of millions of elements hold a worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use serde_json::json;

use super::durable::{info, number, order};
use super::{Context, command};
use crate::loadgen::calls::{Call, Caller, Calls};
use crate::loadgen::latency::Latency;
use crate::loadgen::paced::{self, Lane, Until};
use crate::loadgen::reply::Check;
use crate::loadgen::source::Source;
use crate::options::RUFOUS;
use crate::procfs::RunQueue;
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::Server;
use crate::stats::Target;
use crate::table::Table;

/// Milliseconds that any command may hold a worker.
const TARGET: Target = Target::AtMost(1.0);
const PROBE_INTERVAL: Duration = Duration::from_micros(100);
const IDLE: Duration = Duration::from_secs(1);
/// Between commands that come one at a time, and after the last of them: what they leave to be done
/// later is done then.
const SPACING: Duration = Duration::from_millis(20);
const AFTER: Duration = Duration::from_millis(400);
/// Commands in one write where many follow each other.
const PIPELINE: usize = 16;
const MANY: u64 = 200_000;
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(300);
const KEY: &[u8] = b"huge";
const OTHER: &[u8] = b"other";

/// A type, how its collection is made, written and read, and what removes much of it.
struct Kind {
    name: &'static str,
    grow: Caller,
    write: Caller,
    read: Caller,
    cuts: &'static [(&'static str, Caller)],
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "set",
        grow: |call, number| {
            call.begin(3, "SADD").word(KEY).name(b'm', number);
            Check::Integer
        },
        // Members come and go.
        write: |call, number| {
            let member = call.rng.below(2 * call.elements);
            let name = if number.is_multiple_of(2) {
                "SADD"
            } else {
                "SREM"
            };
            call.begin(3, name).word(KEY).name(b'm', member);
            Check::Integer
        },
        read: |call, _| {
            let member = call.rng.below(call.elements);
            call.begin(3, "SISMEMBER").word(KEY).name(b'm', member);
            Check::Integer
        },
        cuts: &[],
    },
    Kind {
        name: "hash",
        grow: |call, number| {
            call.begin(4, "HSET").word(KEY).name(b'f', number);
            call.word(b"sixteen bytes...");
            Check::Integer
        },
        write: |call, _| {
            let field = call.rng.below(2 * call.elements);
            call.begin(4, "HSET").word(KEY).name(b'f', field);
            call.word(b"other words");
            Check::Integer
        },
        read: |call, _| {
            let field = call.rng.below(call.elements);
            call.begin(3, "HGET").word(KEY).name(b'f', field);
            Check::Bulk
        },
        cuts: &[],
    },
    Kind {
        name: "sorted set",
        grow: |call, number| {
            let score = call.rng.below(1_000_000_000);
            call.begin(4, "ZADD").word(KEY).number(score);
            call.name(b'm', number);
            Check::Integer
        },
        write: |call, _| {
            let score = call.rng.below(1_000_000_000);
            let member = call.rng.below(call.elements);
            call.begin(4, "ZADD").word(KEY).number(score);
            call.name(b'm', member);
            Check::Integer
        },
        read: |call, _| {
            let start = call.rng.below(call.elements - 10);
            call.begin(4, "ZRANGE").word(KEY);
            call.number(start).number(start + 9);
            Check::Bulks(10)
        },
        cuts: &[
            ("ZREMRANGEBYRANK of half", |call, _| {
                call.begin(4, "ZREMRANGEBYRANK").word(KEY).word(b"1000");
                call.number(999 + call.elements / 2);
                Check::Integer
            }),
            ("ZREMRANGEBYSCORE of a quarter", |call, _| {
                call.begin(4, "ZREMRANGEBYSCORE").word(KEY);
                call.word(b"750000000").word(b"+inf");
                Check::Integer
            }),
        ],
    },
    Kind {
        name: "list",
        grow: |call, _| {
            call.begin(3, "RPUSH").word(KEY).word(b"sixteen bytes...");
            Check::Integer
        },
        write: |call, number| {
            if number.is_multiple_of(2) {
                call.begin(3, "LPUSH").word(KEY).word(b"other words");
                return Check::Integer;
            }
            let index = call.rng.below(call.elements);
            call.begin(4, "LSET").word(KEY).number(index);
            call.word(b"further words");
            Check::Simple
        },
        read: |call, _| {
            let index = call.rng.below(call.elements);
            call.begin(3, "LINDEX").word(KEY).number(index);
            Check::Bulk
        },
        cuts: &[("LTRIM to the middle half", |call, _| {
            let quarter = call.elements / 4;
            call.begin(4, "LTRIM").word(KEY);
            call.number(quarter).number(3 * quarter);
            Check::Simple
        })],
    },
];

/// Commands sent one at a time, so many of them.
const SINGLE: [(&str, Caller, u64); 3] = [
    ("RENAME", rename, 10),
    ("EXPIRE, PERSIST", expire, 10),
    ("COPY", copy, 1),
];

fn rename(call: &mut Call<'_>, number: u64) -> Check {
    let (from, to) = if number.is_multiple_of(2) {
        (KEY, OTHER)
    } else {
        (OTHER, KEY)
    };
    call.begin(3, "RENAME").word(from).word(to);
    Check::Simple
}

fn expire(call: &mut Call<'_>, number: u64) -> Check {
    if number.is_multiple_of(2) {
        call.begin(3, "EXPIRE").word(KEY).word(b"1000");
    } else {
        call.begin(2, "PERSIST").word(KEY);
    }
    Check::Integer
}

fn copy(call: &mut Call<'_>, _number: u64) -> Check {
    call.begin(3, "COPY").word(KEY).word(OTHER);
    Check::Integer
}

fn unlink_other(call: &mut Call<'_>, _number: u64) -> Check {
    call.begin(2, "UNLINK").word(OTHER);
    Check::Integer
}

/// A copy that soon expires.
fn copy_expiring(call: &mut Call<'_>, number: u64) -> Check {
    if number == 0 {
        return copy(call, number);
    }
    call.begin(3, "PEXPIRE").word(OTHER).word(b"50");
    Check::Integer
}

fn delete(call: &mut Call<'_>, _number: u64) -> Check {
    call.begin(2, "DEL").word(KEY);
    Check::Integer
}

/// What the probe saw during one event on one type.
#[derive(Serialize)]
struct Outcome {
    kind: &'static str,
    event: String,
    probes: u64,
    p50_ms: f64,
    p999_ms: f64,
    longest_ms: f64,
    /// Of the commands themselves, where they come one at a time; of their batches elsewhere.
    longest_command_ms: f64,
    seconds: f64,
}

impl Outcome {
    fn line(&self) -> String {
        let Self {
            kind,
            event,
            p999_ms,
            longest_ms,
            longest_command_ms,
            seconds,
            ..
        } = self;
        format!(
            "{kind}, {event}: p99.9 {p999_ms:.2} ms, longest {longest_ms:.2} ms, of the command \
             {longest_command_ms:.2} ms, {seconds:.1} s: {}",
            TARGET.verdict(*longest_ms)
        )
    }
}

/// The server with what its worker waits for a processor, which is nobody's command's fault.
struct Bench<'a> {
    server: &'a Server,
    elements: u64,
    outcomes: Vec<Outcome>,
    progress: Progress,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.durable_contestants()?;
    let Some(spec) = specs.iter().find(|spec| spec.name == RUFOUS) else {
        bail!("no Rufous among the servers");
    };
    let server = Server::start(spec)?;
    context.note_version(&server)?;
    let elements = context.options.elements();
    let mut bench = Bench {
        server: &server,
        elements,
        outcomes: Vec::new(),
        progress: Progress::new("type-pauses", KINDS.len() as u64),
    };
    bench.idle()?;
    for kind in &KINDS {
        bench.progress.doing(kind.name);
        bench.collection(kind)?;
        bench.progress.advance(1);
    }
    Ok(report(&bench.outcomes, elements))
}

impl Bench<'_> {
    fn lane(&self, source: Box<dyn Source>, interval: Duration) -> Result<Lane> {
        let lane = Lane::connect(self.server.addr, source, interval, Duration::ZERO)?;
        Ok(lane.discounting(RunQueue::of_worker(self.server.pid())?))
    }

    fn probe(&self) -> Result<Lane> {
        let ping: Caller = |call, _| {
            call.begin(1, "PING");
            Check::Simple
        };
        let pings = Calls::new(ping, 0..u64::MAX, 1);
        self.lane(Box::new(pings), PROBE_INTERVAL)
    }

    fn idle(&mut self) -> Result<()> {
        let mut lanes = [self.probe()?];
        let begin = Instant::now();
        paced::run(&mut lanes, Until::After(IDLE))?;
        let none = Latency::new()?;
        self.note("", "idle", lanes[0].latency(), &none, begin.elapsed());
        Ok(())
    }

    fn note(
        &mut self,
        kind: &'static str,
        event: &str,
        probe: &Latency,
        own: &Latency,
        time: Duration,
    ) {
        let outcome = Outcome {
            kind,
            event: event.to_owned(),
            probes: probe.count(),
            p50_ms: probe.percentile_ms(50.0),
            p999_ms: probe.percentile_ms(99.9),
            longest_ms: probe.max_ms(),
            longest_command_ms: own.max_ms(),
            seconds: time.as_secs_f64(),
        };
        self.progress.say(&outcome.line());
        self.outcomes.push(outcome);
    }

    /// All that happens to a collection, from its first element to its end.
    fn collection(&mut self, kind: &Kind) -> Result<()> {
        let many = MANY.min(self.elements);
        self.stream(kind, "growing", kind.grow, self.elements)?;
        self.stream(kind, "reads", kind.read, many)?;
        self.stream(kind, "writes", kind.write, many)?;
        for (event, caller, times) in SINGLE {
            self.single(kind, event, caller, times)?;
        }
        self.stream(kind, "writes after COPY", kind.write, many)?;
        self.single(kind, "UNLINK of the copy", unlink_other, 1)?;
        self.single(kind, "COPY, PEXPIRE, expiry", copy_expiring, 2)?;
        self.snapshot(kind)?;
        for (event, caller) in kind.cuts {
            self.single(kind, event, *caller, 1)?;
        }
        self.single(kind, "DEL", delete, 1)
    }

    /// As many commands as the server takes, until all have been answered.
    fn stream(&mut self, kind: &Kind, event: &str, caller: Caller, times: u64) -> Result<()> {
        let calls = Calls::new(caller, 0..times, PIPELINE).over(1, self.elements);
        self.event(kind, event, calls, Duration::ZERO)
    }

    fn single(&mut self, kind: &Kind, event: &str, caller: Caller, times: u64) -> Result<()> {
        let calls = Calls::new(caller, 0..times, 1).over(1, self.elements);
        self.event(kind, event, calls, SPACING)
    }

    fn event(&mut self, kind: &Kind, event: &str, calls: Calls, spacing: Duration) -> Result<()> {
        let mut lanes = [self.probe()?, self.lane(Box::new(calls), spacing)?];
        let begin = Instant::now();
        paced::run(&mut lanes, Until::LaneDone(1))?;
        let time = begin.elapsed();
        paced::run(&mut lanes, Until::After(AFTER))?;
        self.note(
            kind.name,
            event,
            lanes[0].latency(),
            lanes[1].latency(),
            time,
        );
        Ok(())
    }

    /// Writes all over the collection while a snapshot of it is written.
    fn snapshot(&mut self, kind: &Kind) -> Result<()> {
        let calls = Calls::new(kind.write, 0..u64::MAX, PIPELINE).over(1, self.elements);
        let writes = self.lane(Box::new(calls), Duration::from_micros(500))?;
        let mut lanes = [self.probe()?, writes];
        let over = AtomicBool::new(false);
        let server = self.server;
        let begin = Instant::now();
        let saved = std::thread::scope(|scope| {
            let saving = scope.spawn(|| {
                let saved = save(server);
                over.store(true, Ordering::Relaxed);
                saved
            });
            paced::run(&mut lanes, Until::Told(&over))?;
            let ended = || Err(anyhow!("the watcher of the snapshot ended early"));
            saving.join().unwrap_or_else(|_| ended())
        });
        saved?;
        let (probe, own) = (lanes[0].latency(), lanes[1].latency());
        self.note(
            kind.name,
            "writes during a snapshot",
            probe,
            own,
            begin.elapsed(),
        );
        Ok(())
    }
}

/// Has a snapshot written and waits for its end.
fn save(server: &Server) -> Result<()> {
    let mut client = server.client()?;
    let begin = Instant::now();
    order(&mut client, &["BGSAVE"])?;
    loop {
        std::thread::sleep(LOOK);
        if number(&mut client, "persistence", "rdb_bgsave_in_progress")? == 0 {
            break;
        }
        if begin.elapsed() > PATIENCE {
            bail!("{} did not end its snapshot in {PATIENCE:?}", server.name);
        }
    }
    match info(&mut client, "persistence", "rdb_last_bgsave_status")?.as_str() {
        "ok" => Ok(()),
        status => bail!("{}'s snapshot ended with {status}", server.name),
    }
}

fn report(outcomes: &[Outcome], elements: u64) -> Report {
    let headers = [
        "collection",
        "event",
        "PINGs",
        "p50, ms",
        "p99.9, ms",
        "longest, ms",
        "command itself, ms",
        "seconds",
        "target",
        "",
    ];
    let mut table = Table::new(2, headers);
    let (mut met, mut judged) = (0, 0);
    let mut last = "";
    for outcome in outcomes {
        let kind = if outcome.kind == last {
            ""
        } else {
            outcome.kind
        };
        last = outcome.kind;
        let mut cells = vec![kind.to_owned(), outcome.event.clone()];
        cells.push(outcome.probes.to_string());
        let figures = [
            outcome.p50_ms,
            outcome.p999_ms,
            outcome.longest_ms,
            outcome.longest_command_ms,
        ];
        cells.extend(figures.map(|ms| format!("{ms:.2}")));
        cells.push(format!("{:.1}", outcome.seconds));
        // Idle time is there to compare with.
        if !outcome.kind.is_empty() {
            judged += 1;
            met += usize::from(TARGET.met(outcome.longest_ms));
            cells.extend([TARGET.show(), TARGET.verdict(outcome.longest_ms).to_owned()]);
        }
        table.row(cells);
    }
    Report {
        slug: "type-pauses",
        part_of: None,
        title: "Pauses by commands on huge collections".into(),
        command: command("type-pauses"),
        method: method(elements),
        table,
        chart: None,
        notes: vec![format!("{met} of {judged} targets met.")],
        data: json!(outcomes),
    }
}

fn method(elements: u64) -> Vec<String> {
    vec![
        format!(
            "One worker with one collection of {elements} elements after the other. Beside the commands \
             of each event another connection sends a PING, due every {} µs: how long the longest of \
             them waited bounds how long anything held the worker. Time during which the worker or the \
             load generator was ready to run but had no processor is subtracted; what the hypervisor \
             takes is not.",
            PROBE_INTERVAL.as_micros()
        ),
        format!(
            "Growing starts from nothing, so that it includes the change of representation and all \
             growth of tables, one element per command; reads and writes are {MANY} on random \
             elements; these come {PIPELINE} at a time, all others alone, and PINGs go on for {} ms \
             after the last of them. \"Command itself\" is the longest time until such a batch or \
             command was answered.",
            AFTER.as_millis()
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kind: &'static str, longest_ms: f64) -> Outcome {
        Outcome {
            kind,
            event: "writes".into(),
            probes: 9,
            p50_ms: 0.1,
            p999_ms: 0.2,
            longest_ms,
            longest_command_ms: 0.4,
            seconds: 1.0,
        }
    }

    #[test]
    fn the_longest_wait_is_judged() {
        let outcomes = [outcome("", 3.0), outcome("set", 0.9), outcome("set", 1.2)];
        let report = report(&outcomes, 10);
        assert_eq!(report.notes, ["1 of 2 targets met."]);
        assert!(report.table.terminal().contains("not met"));
    }
}
