//! Replicated strings with causal order: a write replaces what its context has seen, each value has its own deadline
//! and increments, and a value that was seen to be replaced is never restored.

use super::replicas::{Model, Write, run};
use crate::shard::causal;
use crate::shard::strings;
use crate::shard::{ExpirySetting, Key, NewValue, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_datatype::object::Tag;
use rufous_lattice::siblings::MAX_SIBLINGS;
use rufous_lattice::{Seen, Stamp};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq)]
struct Value {
    written: Vec<u8>,
    /// Each increment with its stamp.
    added: BTreeMap<Stamp, i64>,
    deadline: (Stamp, u64),
    has_expired: bool,
}

impl Value {
    fn text(&self) -> Vec<u8> {
        if self.added.is_empty() {
            return self.written.clone();
        }
        let base = String::from_utf8(self.written.clone()).expect("digits");
        let base: i64 = base.parse().unwrap_or(0);
        let sum = base + self.added.values().sum::<i64>();
        sum.to_string().into_bytes()
    }

    fn merge(&mut self, other: &Value) {
        let rank = |of: &Value| (of.deadline, of.has_expired);
        if rank(other) > rank(self) {
            self.written.clone_from(&other.written);
            (self.deadline, self.has_expired) = rank(other);
        }
        self.added.extend(&other.added);
    }
}

/// All writes that were seen, one by one, and the live ones.
#[derive(Clone, Debug, Default)]
struct Values {
    live: BTreeMap<Stamp, Value>,
    seen: BTreeSet<Stamp>,
    /// What was seen at some time, as clients have it and as a plain set.
    tokens: Vec<(Seen, BTreeSet<Stamp>)>,
}

impl Values {
    fn shown(&self) -> impl DoubleEndedIterator<Item = (&Stamp, &Value)> {
        self.live.iter().filter(|(_, value)| !value.has_expired)
    }

    fn texts(&self) -> Vec<Vec<u8>> {
        let texts = self.shown().rev().map(|(_, value)| value.text());
        texts.collect()
    }

    fn next_deadline(&self) -> u64 {
        let newest = self.shown().next_back();
        newest.map_or(0, |(_, value)| value.deadline.1)
    }

    fn newest(&self) -> Stamp {
        let deadlines = self.live.values().map(|value| value.deadline.0);
        deadlines
            .chain(self.seen.iter().copied())
            .max()
            .unwrap_or_default()
    }

    fn until(&self) -> u64 {
        let deadlines = self
            .live
            .values()
            .map(|value| (value.deadline.1 * 1000) << 12);
        deadlines.chain([self.newest().time]).max().unwrap_or(0)
    }

    fn covers(&self, dot: Stamp) -> bool {
        self.seen.contains(&dot) || dot == Stamp::ZERO && !self.seen.is_empty()
    }

    /// `None`: everything here. Returns whether a value is shown no more.
    fn replace(&mut self, context: Option<&BTreeSet<Stamp>>) -> bool {
        let before = self.shown().count();
        match context {
            None => self.live.clear(),
            Some(context) => {
                self.live
                    .retain(|dot, _| *dot != Stamp::ZERO && !context.contains(dot));
                self.seen.extend(context);
            }
        }
        self.shown().count() < before
    }

    fn write(&mut self, stamp: Stamp, written: Vec<u8>, deadline: u64) {
        while self.live.len() >= MAX_SIBLINGS {
            let expired = self.live.iter().find(|(_, value)| value.has_expired);
            let oldest = expired.or(self.live.first_key_value()).map(|(dot, _)| *dot);
            self.live.remove(&oldest.expect("too many"));
        }
        let deadline = match deadline {
            0 => Default::default(),
            at => (stamp, at),
        };
        let value = Value {
            written,
            deadline,
            ..Value::default()
        };
        self.live.insert(stamp, value);
        self.seen.insert(stamp);
    }

    fn increment(&mut self, shard: &mut Shard, key: Key<'_>, (stamp, now): (Stamp, Now), by: i64) {
        let is_known = shard.show_replica(0, key, now, &mut |_, _| ()).is_some();
        let newest = self.shown().next_back().map(|(dot, _)| *dot);
        let sum = match strings::increment(&mut shard.at(0, key, now), by).expect("replicated") {
            Ok(sum) => sum,
            Err(_) => return assert_eq!(self.texts()[0][0], b'x'),
        };
        match newest {
            None if is_known => {
                self.replace(None);
                self.write(stamp, by.to_string().into_bytes(), 0);
            }
            dot => {
                let value = self.live.entry(dot.unwrap_or_default()).or_default();
                value.added.insert(stamp, by);
            }
        }
        assert_eq!(self.texts()[0], sum.to_string().into_bytes());
    }

    /// Writes or deletes what some client has seen.
    fn write_having_seen(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) {
        let Write { stamp, now, rng } = write;
        let which = rng.below(3 + self.tokens.len() as u64) as usize;
        let (seen, plain) = match which.checked_sub(3) {
            Some(token) => self.tokens[token].clone(),
            None if which == 0 => Default::default(),
            None => {
                let now_seen = causal::see(&mut shard.at(0, key, now)).seen().clone();
                let token = (now_seen.into(), self.seen.clone());
                self.tokens.push(token.clone());
                token
            }
        };
        let later = now.unix_ms() + 1 + rng.below(40);
        let value = match rng.below(4) {
            0 => None,
            1 => Some((b"x".repeat(3000), later)),
            2 => Some((b"7".to_vec(), later)),
            _ => Some((stamp.time.to_string().into_bytes(), 0)),
        };
        let plainly = value.as_ref().map(|(text, at)| (&text[..], *at));
        let written = causal::set(&mut shard.at(0, key, now), plainly, &seen);
        let before = (self.live.clone(), self.seen.clone());
        let removed = self.replace(Some(&plain));
        match value {
            Some((text, at)) => self.write(stamp, text, at),
            None => {
                assert_eq!(written.map(|written| written.removed), Some(removed));
                if (&self.live, &self.seen) != (&before.0, &before.1) {
                    self.seen.insert(stamp);
                }
            }
        }
    }
}

impl Model for Values {
    const STRINGS: Tag = Tag::Siblings;

    fn write(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) -> Self {
        let Write { stamp, now, rng } = write;
        let later = now.unix_ms() + 1 + rng.below(40);
        let is_shown = self.shown().next().is_some();
        match rng.below(10) {
            0 => {
                let kept = self.next_deadline();
                let text = stamp.time.to_string().into_bytes();
                let value = NewValue::Copy(&text);
                assert_eq!(shard.set(0, key, value, ExpirySetting::Keep, now), is_shown);
                self.replace(None);
                self.write(stamp, text, kept);
            }
            1 => {
                assert_eq!(shard.remove(0, key, now), is_shown);
                if is_shown {
                    self.replace(None);
                    self.seen.insert(stamp);
                }
            }
            what @ 2..4 => {
                let at = (what == 2).then_some(later);
                assert_eq!(shard.set_expire_at(0, key, at, now), is_shown);
                for value in self.live.values_mut().filter(|value| !value.has_expired) {
                    value.deadline = (stamp, at.unwrap_or(0));
                }
            }
            4..6 => {
                let by = rng.below(100) as i64 - 50;
                self.increment(shard, key, (stamp, now), by);
            }
            _ => self.write_having_seen(shard, key, Write { stamp, now, rng }),
        }
        let old = self.tokens.len().saturating_sub(4);
        self.tokens.drain(..old);
        self.clone()
    }

    fn merge(&mut self, other: &Values, horizon: u64) {
        let is_hidden = self.shown().next().is_none();
        if is_hidden && self.until() <= horizon && other.newest() < self.newest() {
            (self.live, self.seen) = Default::default();
        }
        let mut live = BTreeMap::new();
        for (dot, value) in &self.live {
            let mut value = value.clone();
            match other.live.get(dot) {
                Some(theirs) => value.merge(theirs),
                None if other.covers(*dot) => continue,
                None => {}
            }
            live.insert(*dot, value);
        }
        for (dot, value) in &other.live {
            if !self.live.contains_key(dot) && !self.covers(*dot) {
                live.insert(*dot, value.clone());
            }
        }
        self.live = live;
        self.seen.extend(&other.seen);
        self.tokens.extend(other.tokens.iter().cloned());
    }

    fn expire(&mut self, now: Now) {
        for value in self.live.values_mut() {
            if (1..=now.unix_ms()).contains(&value.deadline.1) {
                value.has_expired = true;
                value.written.clear();
            }
        }
    }

    fn forget(&mut self, horizon: u64) {
        assert!(self.texts().is_empty() && self.until() <= horizon);
        *self = Values::default();
    }

    fn shown(&self) -> String {
        format!("{:?}", self.texts())
    }

    fn check(&self, shard: &mut Shard, key: Key<'_>, now: Now) {
        let seen = causal::see(&mut shard.at(0, key, now));
        let seen: Vec<_> = seen.live().map(|value| value.text().into_owned()).collect();
        assert_eq!(seen, self.texts(), "{self:?}");
        let first = shard.peek(0, key, now).expect("a string");
        let first = first.map(|value| value.bytes().to_vec());
        assert_eq!(first.as_ref(), seen.first());
        let deadline = Some(self.next_deadline()).filter(|&at| at > 0);
        let expected = first.map(|_| deadline);
        assert_eq!(shard.expire_at(0, key, now), expected, "{self:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn replicas_keep_what_was_not_seen_and_converge(seed in any::<u64>(), steps in 1usize..400) {
        run::<Values>(seed, steps);
    }
}
