//! CPU time per command on collections beside the peers.

use std::time::Duration;

use anyhow::Result;

use super::Context;
use super::commands::{self, Outcome};
use crate::loadgen::calls::{Call, Caller, Calls};
use crate::loadgen::reply::Check;
use crate::loadgen::template::{Command, Shape};
use crate::measure::{Contestant, exhaust, interleave};
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::Server;

const AT_MOST: f64 = 0.6;
const PIPELINE: usize = 16;
/// Elements of a small collection, and of what a range reads.
const SMALL: u64 = 10;
/// Of the small collections there is one for this many of `--keys`.
const KEYS_PER_COLLECTION: u64 = 5;
const VALUE: &[u8] = b"sixteen bytes...";
const LARGE_KEY: &[u8] = b"large";

/// One line of the comparison.
struct Row {
    label: &'static str,
    caller: Caller,
    /// On the one large collection.
    large: bool,
}

const fn row(label: &'static str, caller: Caller) -> Row {
    Row {
        label,
        caller,
        large: false,
    }
}

const fn large(label: &'static str, caller: Caller) -> Row {
    Row {
        label,
        caller,
        large: true,
    }
}

/// Rows that only read a list come before those that change its length.
const ROWS: [Row; 11] = [
    row("SADD", sadd),
    row("HSET", hset),
    row("HGETALL of 10 fields", |call, _| {
        call.begin(2, "HGETALL").any_key(b'h');
        Check::Bulks(2 * SMALL as u32)
    }),
    row("ZADD, small sets", |call, _| {
        call.begin(4, "ZADD").any_key(b'z');
        scored(call, SMALL)
    }),
    row("ZRANGE, small sets, all 10", |call, _| {
        call.begin(4, "ZRANGE").any_key(b'z').word(b"0").word(b"-1");
        Check::Bulks(SMALL as u32)
    }),
    large("ZADD, a large set", |call, _| {
        call.begin(4, "ZADD").word(LARGE_KEY);
        scored(call, call.elements)
    }),
    large("ZRANGE, a large set, 10", |call, _| {
        let start = call.rng.below(call.elements - SMALL);
        call.begin(4, "ZRANGE").word(LARGE_KEY);
        call.number(start).number(start + SMALL - 1);
        Check::Bulks(SMALL as u32)
    }),
    row("LRANGE, all 10", |call, _| {
        call.begin(4, "LRANGE").any_key(b'l').word(b"0").word(b"9");
        Check::Bulks(SMALL as u32)
    }),
    row("LPUSH", |call, _| {
        call.begin(3, "LPUSH").any_key(b'l').word(VALUE);
        Check::Integer
    }),
    row("RPOPLPUSH, two lists", |call, _| {
        call.begin(3, "RPOPLPUSH").any_key(b'l').any_key(b'l');
        Check::Bulk
    }),
    row("RPOPLPUSH, one list", |call, _| {
        let number = call.rng.below(call.collections);
        call.begin(3, "RPOPLPUSH").name(b'l', number);
        call.name(b'l', number);
        Check::Bulk
    }),
];

/// Half of the members are there at first.
fn sadd(call: &mut Call<'_>, _number: u64) -> Check {
    let member = call.rng.below(2 * SMALL);
    call.begin(3, "SADD").any_key(b's').name(b'm', member);
    Check::Integer
}

fn hset(call: &mut Call<'_>, _number: u64) -> Check {
    let field = call.rng.below(SMALL);
    call.begin(4, "HSET").any_key(b'h').name(b'f', field);
    call.word(VALUE);
    Check::Integer
}

/// A member below `members` with another score than before.
fn scored(call: &mut Call<'_>, members: u64) -> Check {
    let (score, member) = (call.rng.below(1_000_000_000), call.rng.below(members));
    call.number(score).name(b'm', member);
    Check::Integer
}

/// What the rows find, a command for each collection.
const LOADING: [Caller; 4] = [
    |call, number| {
        call.begin(2 + SMALL, "SADD").name(b's', number);
        for i in 0..SMALL {
            call.name(b'm', i);
        }
        Check::Integer
    },
    |call, number| {
        call.begin(2 + 2 * SMALL, "HSET").name(b'h', number);
        for i in 0..SMALL {
            call.name(b'f', i).word(VALUE);
        }
        Check::Integer
    },
    |call, number| {
        call.begin(2 + 2 * SMALL, "ZADD").name(b'z', number);
        for i in 0..SMALL {
            call.number(i * 100_000_000).name(b'm', i);
        }
        Check::Integer
    },
    |call, number| {
        call.begin(2 + SMALL, "RPUSH").name(b'l', number);
        for _ in 0..SMALL {
            call.word(VALUE);
        }
        Check::Integer
    },
];

/// How many collections there are and how large the large one is.
#[derive(Clone, Copy)]
struct Scale {
    collections: u64,
    large: u64,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let keys = context.options.keys();
    let scale = Scale {
        collections: (keys / KEYS_PER_COLLECTION).max(1),
        large: keys.max(10 * SMALL),
    };
    let specs = context.options.contestants()?;
    let progress = Progress::new("types", (ROWS.len() + specs.len()) as u64);
    let mut contestants = Vec::new();
    for spec in &specs {
        progress.doing(&format!("loading {}", spec.name));
        let connections = context.options.connections;
        let contestant = Contestant::start(spec, Command::Set, Shape::default(), 0, connections)?;
        context.note_version(&contestant.server)?;
        load(&contestant.server, scale)?;
        contestants.push(contestant);
        progress.advance(1);
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    for row in &ROWS {
        progress.doing(row.label);
        let elements = if row.large { scale.large } else { SMALL };
        let source =
            Calls::new(row.caller, 0..u64::MAX, PIPELINE).over(scale.collections, elements);
        let samples = interleave(&mut contestants, &source, context.options.rounds())?;
        let outcome = commands::compare(row.label, AT_MOST, &contestants, &samples);
        progress.say(&outcome.line());
        outcomes.push(outcome);
        progress.advance(1);
    }
    let title = "CPU time per command on collections beside the peers";
    Ok(commands::report(
        "types",
        title,
        method(context, scale),
        &outcomes,
    ))
}

fn load(server: &Server, scale: Scale) -> Result<()> {
    for caller in LOADING {
        exhaust(
            server,
            &mut Calls::new(caller, 0..scale.collections, PIPELINE),
        )?;
    }
    let member: Caller = |call, number| {
        let score = call.rng.below(1_000_000_000);
        call.begin(4, "ZADD").word(LARGE_KEY).number(score);
        call.name(b'm', number);
        Check::Integer
    };
    exhaust(server, &mut Calls::new(member, 0..scale.large, PIPELINE))?;
    // What loading left to other threads is not the first row's.
    std::thread::sleep(Duration::from_millis(300));
    Ok(())
}

fn method(context: &Context, scale: Scale) -> Vec<String> {
    let options = &context.options;
    let rounds = options.rounds();
    vec![
        format!(
            "{} each of hashes, sets, sorted sets and lists of {SMALL} elements, and one sorted set of \
             {}; members and fields of 9 B, values of 16 B. Pipeline {PIPELINE}, {} connections, keys \
             and members drawn uniformly, every reply checked. The server runs on processor {}, the \
             load generator on processor {}. Windows of {} ms alternate between the servers, {} each; \
             the table shows medians and quartiles.",
            scale.collections,
            scale.large,
            options.connections,
            options.server_core,
            options.load_core,
            rounds.window.as_millis(),
            rounds.count,
        ),
        "CPU-µs/op is the server's user and system time divided by completed commands; the ratio is \
         taken window by window against the peer with the lower median. SADD finds half of its members \
         present at first, HSET overwrites, ZADD moves a member to another score, and LPUSH makes \
         lists longer from window to window, the faster a server the more."
            .into(),
    ]
}
