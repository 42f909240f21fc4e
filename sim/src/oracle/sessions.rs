//! Whether what sessions saw of strings is what their level promises.
//!
//! The definitions refer to versions in an order that the store chose and
//! does not reveal. So each fact that must hold becomes a pair of writes of
//! which one must be before the other, and the promise is kept if one
//! order of all writes satisfies all these pairs: if they form no
//! cycle. The ends of rounds determine much of that order: what all replicas show
//! then is after all other writes to the key before, and before all
//! later ones.

mod causal;
mod guarantees;
mod history;
mod order;

pub use history::{Event, History, Quiet, Value, What};

use order::Order;
use rufous_kernel::replicate::level::Level;
use std::collections::BTreeMap;

/// What sessions are promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    Level(Level),
    /// The same, where sessions stay at their replicas and these have all keys.
    Whole(Level),
    /// A causal cut over all keys.
    Cut,
}

impl Promise {
    /// Of sessions at a level.
    pub fn of_level(name: &str) -> Result<Promise, String> {
        let level = name.parse::<Level>();
        level.map(Promise::Level).map_err(|error| error.to_string())
    }
}

/// See the module's description.
pub fn judge(promise: Promise, history: &History) -> Result<(), String> {
    let seen = Seen::of(history)?;
    let mut order = Order::new(history.values());
    seen.order_rounds(&mut order);
    match promise {
        Promise::Level(level) => guarantees::pairs(level, &seen, &mut order),
        Promise::Whole(level) => {
            guarantees::pairs(level, &seen, &mut order);
            guarantees::in_order(level, &seen, &mut order);
        }
        Promise::Cut => causal::pairs(&seen, &mut order),
    }
    order.check()
}

/// A history whose reads all were found to be of writes.
struct Seen<'a> {
    history: &'a History,
    /// The event that wrote a value.
    writes: BTreeMap<Value, usize>,
    /// Surely written: acknowledged, or read by a client.
    happened: Vec<bool>,
}

impl<'a> Seen<'a> {
    fn of(history: &'a History) -> Result<Self, String> {
        let mut seen = Seen {
            history,
            writes: BTreeMap::new(),
            happened: vec![false; history.values()],
        };
        for (at, event) in history.events.iter().enumerate() {
            match event.what {
                What::Write(value) => {
                    seen.writes.insert(value, at);
                    seen.happened[value as usize] |= event.replied;
                }
                What::Read(value) if event.replied => {
                    seen.take(event.key, value, at)
                        .map_err(|why| format!("session {} read {why}", event.session))?;
                }
                What::Read(_) => {}
            }
        }
        for quiet in &history.quiets {
            for (key, value) in quiet.shown.iter().enumerate() {
                seen.take(key, *value, quiet.events)
                    .map_err(|why| format!("after quiet there is {why}"))?;
            }
        }
        Ok(seen)
    }

    /// A value of a key is there after `at` events.
    fn take(&mut self, key: usize, value: Option<Value>, at: usize) -> Result<(), String> {
        let Some(value) = value else {
            return Err(format!("nothing at key {key}, which is never deleted"));
        };
        let wrote = self.writes.get(&value).filter(|&&wrote| wrote < at);
        if wrote.is_none_or(|&wrote| self.history.events[wrote].key != key) {
            return Err(format!("v{value} at key {key}, where nobody wrote it"));
        }
        self.happened[value as usize] = true;
        Ok(())
    }

    /// Events whose outcome is known, in the order in which they were asked for.
    fn events(&self) -> impl Iterator<Item = &'a Event> {
        let known = |event: &&Event| match event.what {
            What::Write(value) => self.happened[value as usize],
            What::Read(_) => event.replied,
        };
        self.history.events.iter().filter(known)
    }

    fn writer(&self, value: Value) -> &'a Event {
        &self.history.events[self.writes[&value]]
    }

    fn order_rounds(&self, order: &mut Order) {
        let mut begin = 0;
        let mut last: &[Option<Value>] = &[];
        for quiet in &self.history.quiets {
            for event in &self.history.events[begin..quiet.events] {
                let What::Write(value) = event.what else {
                    continue;
                };
                if !self.happened[value as usize] {
                    continue;
                }
                if let Some(Some(before)) = last.get(event.key) {
                    order.before(*before, value, "was everywhere before");
                }
                if let Some(end) = quiet.shown[event.key] {
                    order.before(value, end, "is what the round ended with after");
                }
            }
            (begin, last) = (quiet.events, &quiet.shown);
        }
    }
}
