//! Session guarantees [HAT §5.1.3]. Each by itself, and PRAM and causal as
//! what they consist of.

use super::order::Order;
use super::{Seen, Value, What};
use rufous_kernel::replicate::level::{
    Level, monotonic_reads, monotonic_writes, read_your_writes, writes_follow_reads,
};
use std::collections::BTreeMap;

/// What a session has done so far.
#[derive(Default)]
struct Session {
    /// The last of each key.
    read: BTreeMap<usize, Value>,
    wrote: BTreeMap<usize, Vec<Value>>,
    last_write: Option<Value>,
    reads: Vec<Value>,
}

pub(super) fn pairs(level: Level, seen: &Seen<'_>, order: &mut Order) {
    let mut sessions: BTreeMap<usize, Session> = BTreeMap::new();
    for event in seen.events() {
        let session = sessions.entry(event.session).or_default();
        match event.what {
            What::Read(Some(value)) => session.read(level, event.key, value, order),
            What::Read(None) => {}
            What::Write(value) => session.write(level, event.key, value, order),
        }
    }
}

impl Session {
    fn read(&mut self, level: Level, key: usize, value: Value, order: &mut Order) {
        if level.has(&monotonic_reads::LEVEL)
            && let Some(before) = self.read.insert(key, value)
        {
            order.before(before, value, "was read before");
        }
        if level.has(&read_your_writes::LEVEL) {
            for own in self.wrote.get(&key).into_iter().flatten() {
                order.before(*own, value, "was written by the session that read");
            }
        }
        self.reads.push(value);
    }

    fn write(&mut self, level: Level, key: usize, value: Value, order: &mut Order) {
        if level.has(&monotonic_writes::LEVEL)
            && let Some(before) = self.last_write
        {
            order.before(before, value, "was written before by the same session");
        }
        if level.has(&writes_follow_reads::LEVEL) {
            // What was read before the last write is before that one, or else
            // is among these.
            for read in &self.reads {
                order.before(*read, value, "was read by the session that wrote");
            }
        }
        self.last_write = Some(value);
        self.wrote.entry(key).or_default().push(value);
    }
}

/// Writes of a session that are all at one replica become visible in their order to a session that stays
/// at another: once it has read one of them, it reads no other key in a state before an earlier one.
pub(super) fn in_order(level: Level, seen: &Seen<'_>, order: &mut Order) {
    if !level.has(&monotonic_writes::LEVEL) {
        return;
    }
    // The writes of each session; and for each reader how many it must see of each session.
    let mut writes: BTreeMap<usize, Vec<(usize, Value)>> = BTreeMap::new();
    let mut heard: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for event in seen.events() {
        match event.what {
            What::Write(value) => {
                let all = writes.entry(event.session).or_default();
                all.push((event.key, value));
            }
            What::Read(Some(value)) => {
                let writer = seen.writer(value).session;
                let all = writes.get(&writer).into_iter().flatten();
                let upto = all.take_while(|(_, other)| *other != value).count() + 1;
                let known = heard.entry((event.session, writer)).or_default();
                *known = (*known).max(upto);
                let by_reader = (event.session, 0)..(event.session + 1, 0);
                for (&(_, writer), &upto) in heard.range(by_reader) {
                    let all = writes.get(&writer).into_iter().flatten().take(upto);
                    for &(_, earlier) in all.filter(|(key, _)| *key == event.key) {
                        let why = "was written before what the reader had read of its session";
                        order.before(earlier, value, why);
                    }
                }
            }
            What::Read(None) => {}
        }
    }
}
