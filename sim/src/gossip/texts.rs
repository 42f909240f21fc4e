//! Sessions that read and write strings, and whether what they saw is what
//! the keyspace promises.
//!
//! A string that was never written has the first value, which is before all others.

use super::deeds::same;
use super::plan::Plan;
use super::seat::Seat;
use crate::engine::random::Random;
use crate::oracle::sessions::{self, Event, History, Promise, Quiet, Value, What};
use rufous_kernel::shard::{ExpirySetting, NewValue};

fn name_of(key: usize) -> String {
    format!("kw{key}")
}

/// A value as it is written; now and then one that fits no record.
fn text_of(value: Value) -> Vec<u8> {
    let mut text = format!("v{value}-").into_bytes();
    if value.is_multiple_of(13) {
        text.resize(5000, b'x');
    }
    text
}

fn value_of(text: &[u8]) -> Option<Value> {
    let digits = text.strip_prefix(b"v")?.split(|b| *b == b'-').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// See the module's description.
#[derive(Debug)]
pub struct Texts {
    promise: Promise,
    history: History,
    keys: usize,
}

impl Texts {
    /// Where the plan has sessions.
    pub fn new(plan: &Plan) -> Option<Self> {
        let mut texts = Self {
            promise: plan.promise()?,
            history: History::default(),
            keys: plan.texts,
        };
        let shown = (0..plan.texts).map(|key| {
            let value = texts.history.new_value();
            let event = texts.note(0, key, What::Write(value));
            texts.history.reply(event);
            Some(value)
        });
        let shown = shown.collect();
        texts.end_round(shown);
        Some(texts)
    }

    fn note(&mut self, session: usize, key: usize, what: What) -> usize {
        self.history.ask(Event {
            session,
            key,
            what,
            replied: false,
        })
    }

    /// Reads or writes a string, and answers the event's number.
    pub fn act(
        &mut self,
        seat: &mut Seat,
        (session, writes): (usize, &[usize]),
        us: u64,
        random: &mut Random,
    ) -> usize {
        let key = random.index(self.keys);
        if !writes.contains(&key) || random.chance(0.5) {
            let shown = Some(self.read(seat, key, us));
            return self.note(session, key, What::Read(shown));
        }
        let value = self.history.new_value();
        seat.write(us, |shard, now| {
            let (name, text) = (name_of(key), text_of(value));
            let name = shard.key(name.as_bytes());
            shard.set(0, name, NewValue::Copy(&text), ExpirySetting::Clear, now);
        });
        self.note(session, key, What::Write(value))
    }

    fn read(&self, seat: &mut Seat, key: usize, us: u64) -> Value {
        match seat.text(us, name_of(key).as_bytes()) {
            None => key as Value + 1,
            // No other text is written: this is no value.
            Some(text) => value_of(&text).unwrap_or(Value::MAX),
        }
    }

    pub fn tell(&self, event: usize) -> String {
        let Event {
            session, key, what, ..
        } = self.history.events[event];
        format!("session {session}: {what:?} at {}", name_of(key))
    }

    pub fn operations(&self) -> usize {
        self.history.len()
    }

    pub fn reply(&mut self, event: usize) {
        self.history.reply(event);
    }

    /// When all is quiet, of the workers of all nodes.
    pub fn judge_round(&mut self, seats: &mut [&mut Seat], us: u64) -> Result<(), String> {
        let mut shown = Vec::new();
        for key in 0..self.keys {
            let name = name_of(key);
            let state =
                |seat: &mut Seat| (self.read(seat, key, us), seat.state(us, name.as_bytes()));
            shown.push(Some(same(seats, &name, state)?.0));
        }
        self.end_round(shown);
        sessions::judge(self.promise, &self.history)
    }

    fn end_round(&mut self, shown: Vec<Option<Value>>) {
        let events = self.history.len();
        self.history.quiets.push(Quiet { events, shown });
    }
}
