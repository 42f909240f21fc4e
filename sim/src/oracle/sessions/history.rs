//! The clients' operations and what they saw. No two writes have the same value, so
//! a read identifies the write it has seen.

/// A value that was written to a register.
pub type Value = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Write(Value),
    Read(Option<Value>),
}

/// An operation on a register, in the order in which they were asked for; a
/// client asks for the next when it has a reply.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub session: usize,
    pub key: usize,
    pub what: What,
    /// The reply has arrived; otherwise the operation may or may not have been executed.
    pub replied: bool,
}

/// The end of a round, when no message was in transit.
#[derive(Clone, Debug)]
pub struct Quiet {
    /// The events before it.
    pub events: usize,
    /// What all replicas showed of each key.
    pub shown: Vec<Option<Value>>,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    pub events: Vec<Event>,
    pub quiets: Vec<Quiet>,
    last: Value,
}

impl History {
    pub fn new_value(&mut self) -> Value {
        self.last += 1;
        self.last
    }

    /// Notes an operation; returns its number.
    pub fn ask(&mut self, event: Event) -> usize {
        self.events.push(event);
        self.events.len() - 1
    }

    pub fn reply(&mut self, event: usize) {
        self.events[event].replied = true;
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The highest value that was given out, and one.
    pub fn values(&self) -> usize {
        self.last as usize + 1
    }
}
