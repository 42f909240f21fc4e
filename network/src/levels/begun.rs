//! A client of a level of transactions: each transaction reads and writes two keys twice, and commits or rolls back. In the
//! keyspace `eventual` it sends the same commands without `BEGIN`.

use std::time::Duration;

use rufous_bench::client::Reply;
use rufous_sim::engine::random::Random;

use super::isolation::{Outcome, Step, Transaction, Value, What};
use super::level::Kind;
use super::pool::Pool;
use super::{Scene, Stage};

/// After so long clients use two new keys: which of their transactions has won there is looked at in the end.
const ROUND: Duration = Duration::from_millis(400);
/// Between two commands, in milliseconds.
const PAUSE_MS: (u64, u64) = (3, 15);
/// Transactions that only read.
const READERS: f64 = 0.4;
const ROLLED_BACK: f64 = 0.25;

#[derive(Clone, Copy)]
enum Command {
    Read(u64),
    Write(u64, u64),
}

pub fn work(stage: &Stage, scene: &Scene, mut random: Random) {
    let mut pool = Pool::new(&scene.record, &stage.doors, false);
    while !stage.has_ended() {
        if pool.is_ready(&mut random) {
            let transaction = run(scene, &mut pool, &mut random);
            scene.record.note_transaction(transaction);
        }
        pause(&mut random);
    }
    scene.record.add(pool.counts);
}

fn pause(random: &mut Random) {
    let time = random.between(PAUSE_MS.0, PAUSE_MS.1);
    std::thread::sleep(Duration::from_millis(time));
}

/// Both keys are written before the transaction ends, by each client in an order of its own.
fn commands(scene: &Scene, random: &mut Random) -> Vec<Command> {
    let round = scene.record.elapsed().as_millis() / ROUND.as_millis();
    let first = 2 * round as u64;
    let (k, l) = if random.chance(0.5) {
        (first, first + 1)
    } else {
        (first + 1, first)
    };
    let (read, write) = (Command::Read, Command::Write);
    if random.chance(READERS) {
        return vec![read(k), read(l), read(k), read(l)];
    }
    vec![
        read(k),
        write(k, 1),
        write(l, 1),
        read(k),
        write(k, 2),
        write(l, 2),
    ]
}

fn run(scene: &Scene, pool: &mut Pool<'_>, random: &mut Random) -> Transaction {
    let record = &scene.record;
    let mut transaction = Transaction {
        no: record.new_number(),
        node: pool.node(),
        at_ms: record.elapsed().as_millis() as u64,
        steps: Vec::new(),
        commits_at: None,
        outcome: Outcome::Broken,
    };
    let begins = scene.begins();
    if begins && pool.ask(&["BEGIN"]).is_none() {
        pool.drop_connection();
        return transaction;
    }
    for command in commands(scene, random) {
        let Some(step) = step(scene, pool, transaction.no, command) else {
            pool.drop_connection();
            return transaction;
        };
        transaction.steps.push(step);
        pause(random);
    }
    if rolls_back(scene, random) {
        transaction.outcome = Outcome::RolledBack;
        if begins && pool.ask(&["ROLLBACK"]).is_none() {
            pool.drop_connection();
        }
        return transaction;
    }
    transaction.commits_at = Some(record.new_number());
    transaction.outcome = Outcome::Committed;
    if begins {
        let reply = pool.ask(&["COMMIT"]);
        if !matches!(reply, Some(Reply::Array(_))) {
            transaction.outcome = Outcome::Unknown;
            pool.drop_connection();
        }
    }
    transaction
}

/// At `read-uncommitted` there is nothing to roll back: writes stay.
fn rolls_back(scene: &Scene, random: &mut Random) -> bool {
    let chance = random.chance(ROLLED_BACK);
    match scene.level.kind {
        Kind::Transactions(rules) => rules.committed && chance,
        Kind::Sessions(_) => false,
    }
}

fn step(scene: &Scene, pool: &mut Pool<'_>, no: u64, command: Command) -> Option<Step> {
    let record = &scene.record;
    let (key, what) = match command {
        Command::Write(key, part) => {
            let value = Value {
                transaction: no,
                part,
                is_last: part == 2,
            };
            pool.ask(&["SET", &scene.key(key), &text(value)])?;
            (key, What::Wrote(value))
        }
        Command::Read(key) => {
            let reply = pool.ask(&["GET", &scene.key(key)])?;
            match value(&reply) {
                Ok(found) => (key, What::Read(found)),
                Err(odd) => {
                    record.on_odd(format!("GET {}: {odd}", scene.key(key)));
                    return None;
                }
            }
        }
    };
    Some(Step {
        key,
        at: record.new_number(),
        what,
    })
}

fn text(value: Value) -> String {
    format!("{}.{}", value.transaction, value.part)
}

/// The value in a reply, or what else there is.
pub fn value(reply: &Reply) -> Result<Option<Value>, String> {
    let odd = || format!("{reply:?}");
    let text = match reply {
        Reply::Nil => return Ok(None),
        Reply::Bulk(text) => std::str::from_utf8(text).map_err(|_| odd())?,
        _ => return Err(odd()),
    };
    let (transaction, part) = text.split_once('.').ok_or_else(odd)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| odd());
    let part = number(part)?;
    Ok(Some(Value {
        transaction: number(transaction)?,
        part,
        is_last: part == 2,
    }))
}
