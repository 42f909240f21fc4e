//! Whether a history of registers can be: for each there has to be one order of its operations
//! that explains all answers and keeps to what was before what (linearizability). An
//! acknowledged write that is lost has no such order with the reads of the end.
//!
//! The search is that of the simulator ([`rufous_sim::oracle::linear`]). It is given no write
//! whose outcome is unknown: each would double its work. As no value is written twice, nothing
//! is lost by that: of those that nobody has read no answer depends, and one that was read
//! happened before that read's answer.

use std::collections::{BTreeMap, HashMap};

use rufous_resp::Reply;
use rufous_sim::engine::clock::Clock;
use rufous_sim::history::{History, Kind, Outcome, Record, Unit};
use rufous_sim::model::{Op, Step, World};
use rufous_sim::oracle::linear;

use crate::history::{Came, Operation, What};
use crate::registers::key;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Verdict {
    pub registers: usize,
    /// What cannot be, in words.
    pub wrong: Vec<String>,
    /// Registers whose search was given up.
    pub unsure: usize,
}

pub fn judge(history: &[Operation]) -> Verdict {
    let mut by_register: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        let all = by_register.entry(operation.register).or_default();
        all.push(*operation);
    }
    let units = by_register.keys().map(|register| Unit {
        kind: Kind::Text,
        db: 0,
        keys: vec![key(*register).into_bytes()],
    });
    let mut known = History::new(units.collect());
    for (unit, operations) in by_register.values().enumerate() {
        for record in records(operations) {
            known.add(unit, 0, record);
        }
    }
    let (clock, mut verdict) = (Clock::default(), Verdict::default());
    let world = World {
        clock: &clock,
        evicts: false,
    };
    for unit in 0..known.units.len() {
        let found = linear::check(&known, unit, &world, u64::MAX);
        verdict.registers += 1;
        verdict.wrong.extend(found.failure);
        verdict.unsure += usize::from(found.unsure);
    }
    verdict
}

/// What the search is given of one register.
fn records(operations: &[Operation]) -> Vec<Record> {
    let mut first_read: HashMap<u64, u64> = HashMap::new();
    for operation in operations {
        if let Came::Value(Some(value)) = operation.came {
            let at = first_read.entry(value).or_insert(u64::MAX);
            *at = operation.ended_us.min(*at);
        }
    }
    let mut records = Vec::new();
    for (place, operation) in operations.iter().enumerate() {
        // Who has asked in doubt asks for other things before that may be done.
        let alone = u64::MAX - place as u64;
        let (client, ended_us, reply) = match (operation.what, operation.came) {
            (_, Came::Done) => (operation.client, operation.ended_us, ok()),
            (_, Came::Value(value)) => {
                let reply = value.map_or(Reply::Null, |value| Reply::Bulk(bytes(value)));
                (operation.client, operation.ended_us, reply)
            }
            (What::Write(value), Came::Unknown) => match first_read.get(&value) {
                Some(read_us) => (alone, *read_us, ok()),
                None => continue,
            },
            (What::Read, Came::Unknown) | (_, Came::NotDone) => continue,
        };
        let step = match operation.what {
            What::Read => Step::Get(0),
            What::Write(value) => Step::Set {
                key: 0,
                value: bytes(value),
                px: None,
            },
        };
        records.push(Record {
            op: Op::One(step),
            outcome: Outcome::Seen(reply),
            connection: client,
            order: operation.order,
            asked_us: operation.asked_us,
            answered_us: ended_us,
        });
    }
    records
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

fn bytes(value: u64) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_sim::engine::random::Random;

    /// Operations as `client asked ended what came`, of one register.
    fn of(lines: &[&str]) -> Vec<Operation> {
        let line = |(order, line): (usize, &&str)| {
            let (client, rest) = line.split_once(' ').unwrap();
            format!("1 {client} {order} {rest}").parse().unwrap()
        };
        lines.iter().enumerate().map(line).collect()
    }

    #[track_caller]
    fn check(can_be: bool, lines: &[&str]) {
        let verdict = judge(&of(lines));
        assert_eq!((verdict.registers, verdict.unsure), (1, 0));
        assert_eq!(verdict.wrong.is_empty(), can_be, "{:?}", verdict.wrong);
    }

    #[test]
    fn what_was_acknowledged_is_read() {
        check(true, &["1 0 5 write=1 done", "2 6 9 read value=1"]);
        check(false, &["1 0 5 write=1 done", "2 6 9 read nothing"]);
        // At the same time both can be.
        check(true, &["1 0 5 write=1 done", "2 4 9 read nothing"]);
        check(true, &["1 0 5 write=1 done", "2 4 9 read value=1"]);
        let two = ["1 0 5 write=1 done", "1 6 9 write=2 done"];
        check(true, &[two[0], two[1], "2 10 11 read value=2"]);
        check(false, &[two[0], two[1], "2 10 11 read value=1"]);
        check(false, &[two[0], two[1], "2 10 11 read value=3"]);
        // An older value after a newer one, all while a write is under way.
        let write = ["1 0 5 write=1 done", "1 6 90 write=2 done"];
        let (new, old) = ("2 10 20 read value=2", "3 30 40 read value=1");
        check(true, &[write[0], write[1], new]);
        check(true, &[write[0], write[1], old]);
        check(false, &[write[0], write[1], new, old]);
    }

    #[test]
    fn a_write_in_doubt_happens_once_or_not_at_all() {
        let doubt = ["1 0 5 write=1 done", "2 6 9 write=2 unknown"];
        let read = |at: u64, value: u64| format!("3 {at} {} read value={value}", at + 1);
        let reads = |values: &[u64]| -> Vec<String> {
            let values = values.iter().enumerate();
            values
                .map(|(at, value)| read(20 + 10 * at as u64, *value))
                .collect()
        };
        for (can_be, values) in [
            (true, &[1, 1][..]),
            (true, &[1, 2]),
            (true, &[2, 2]),
            (false, &[2, 1]),
            (false, &[1, 2, 1]),
        ] {
            let reads = reads(values);
            let mut lines = doubt.to_vec();
            lines.extend(reads.iter().map(String::as_str));
            check(can_be, &lines);
        }
        // Its client went on meanwhile: it may come after what that asked for next.
        let next = [
            "2 10 12 write=3 done",
            "3 13 14 read value=3",
            "3 15 16 read value=2",
        ];
        check(true, &[&doubt[..], &next[..]].concat());
        // Not before it was asked for.
        check(false, &["3 0 1 read value=2", "2 6 9 write=2 unknown"]);
    }

    #[test]
    fn what_was_refused_must_not_be_seen() {
        let refused = ["1 0 5 write=1 done", "1 6 9 write=2 not-done"];
        check(true, &[refused[0], refused[1], "2 10 11 read value=1"]);
        check(false, &[refused[0], refused[1], "2 10 11 read value=2"]);
    }

    /// Histories of a real register: each operation takes effect at one moment of its
    /// time. Seven clients, as many operations as a register gets, many in doubt.
    fn lived(seed: u64) -> Vec<Operation> {
        let mut random = Random::new(seed, "lived");
        let mut all = Vec::new();
        for client in 0..7 {
            let mut at = random.below(50);
            for order in 0..60 {
                let asked_us = at;
                let effect = asked_us + random.skewed(1, 400);
                let ended_us = effect + random.skewed(1, 400);
                at = ended_us + random.below(300);
                let what = match random.chance(0.5) {
                    true => What::Write(1 + client * 1_000 + order),
                    false => What::Read,
                };
                let fate = random.below(10);
                all.push((effect, fate, asked_us, ended_us, client, order, what));
            }
        }
        all.sort_unstable_by_key(|one| (one.0, one.4));
        let (mut value, mut history) = (None, Vec::new());
        for (_, fate, asked_us, ended_us, client, order, what) in all {
            let came = match (what, fate) {
                (What::Write(_), 0) => Came::NotDone,
                (What::Write(_), 1) => Came::Unknown,
                (What::Write(new), fate) => {
                    value = Some(new);
                    if fate == 2 { Came::Unknown } else { Came::Done }
                }
                (What::Read, _) => Came::Value(value),
            };
            history.push(Operation {
                register: 1,
                client,
                order,
                asked_us,
                ended_us,
                what,
                came,
            });
        }
        history
    }

    #[test]
    fn what_a_register_did_can_be_and_what_none_does_cannot() {
        let mut caught = 0;
        for seed in 0..40 {
            let mut history = lived(seed);
            let verdict = judge(&history);
            assert_eq!(verdict.wrong, Vec::<String>::new(), "seed {seed}");
            assert_eq!(verdict.unsure, 0, "seed {seed}");
            // The end shows what was there long ago.
            let end_us = history.iter().map(|one| one.ended_us).max().unwrap();
            let done = history.iter().find(|one| one.came == Came::Done);
            let Some(What::Write(old)) = done.map(|one| one.what) else {
                panic!("nothing was written");
            };
            history.push(Operation {
                register: 1,
                client: 99,
                order: 0,
                asked_us: end_us + 1,
                ended_us: end_us + 2,
                what: What::Read,
                came: Came::Value(Some(old)),
            });
            let verdict = judge(&history);
            assert_eq!(verdict.unsure, 0, "seed {seed}");
            caught += verdict.wrong.len();
        }
        assert_eq!(caught, 40);
    }
}
