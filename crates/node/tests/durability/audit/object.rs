//! What one client writes as a whole: a few keys, usually of several workers,
//! and what each command makes of them.

use super::Rng;
use super::wire::{Reply, Words, words};

/// What a key holds: a value, and when it goes (Unix milliseconds).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) value: Vec<u8>,
    pub(crate) expires: Option<u64>,
}

/// What all keys of an object hold at one instant.
pub(crate) type State = Vec<Option<Cell>>;

/// A command with what it makes of the keys. `replies` come in all; the last
/// one says whether it happened.
pub(crate) struct Step {
    pub(crate) requests: Vec<Words>,
    pub(crate) after: State,
    /// What the last reply has to be, where it follows from what is known.
    pub(crate) expected: Option<Reply>,
}

pub(crate) struct Object {
    pub(crate) keys: Vec<String>,
    /// The last state that was acknowledged, or found by an audit.
    pub(crate) known: State,
    /// States of commands since then whose outcome nobody knows.
    pub(crate) maybe: Vec<State>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// SET, DEL, APPEND, large values now and then.
    Register,
    /// INCRBY.
    Counter,
    /// Values that expire.
    Expiring,
    /// MSET and DEL of several keys.
    Group,
    /// Several commands between MULTI and EXEC.
    Transaction,
    /// A value that goes from key to key with RENAME.
    Wanderer,
}

const KINDS: [Kind; 6] = [
    Kind::Register,
    Kind::Counter,
    Kind::Expiring,
    Kind::Group,
    Kind::Transaction,
    Kind::Wanderer,
];

fn live(value: impl Into<Vec<u8>>) -> Option<Cell> {
    Some(Cell {
        value: value.into(),
        expires: None,
    })
}

fn ok() -> Option<Reply> {
    Some(Reply::Status("OK".into()))
}

impl Object {
    /// Object `number` of client `owner`.
    pub(crate) fn new(owner: usize, number: usize) -> Self {
        let kind = KINDS[number % KINDS.len()];
        let (letter, count) = match kind {
            Kind::Register => ('r', 1),
            Kind::Counter => ('c', 1),
            Kind::Expiring => ('e', 1),
            Kind::Group => ('g', 4),
            Kind::Transaction => ('t', 3),
            Kind::Wanderer => ('w', 2),
        };
        let keys: Vec<_> = (0..count)
            .map(|part| format!("{letter}:{owner}:{number}:{part}"))
            .collect();
        Self {
            known: vec![None; keys.len()],
            maybe: Vec::new(),
            keys,
            kind,
        }
    }

    /// A question that changes nothing.
    pub(crate) fn read(&self) -> Step {
        let mut request = words(&["MGET"]);
        request.extend(self.keys.iter().map(|key| key.clone().into_bytes()));
        let bulk = |cell: &Option<Cell>| Reply::Bulk(cell.as_ref().map(|c| c.value.clone()));
        let expiring = self.known.iter().flatten().any(|c| c.expires.is_some());
        let certain = self.maybe.is_empty() && !expiring;
        Step {
            requests: vec![request],
            after: self.known.clone(),
            expected: certain.then(|| Reply::Array(Some(self.known.iter().map(bulk).collect()))),
        }
    }

    /// The next command on these keys; `id` is never used again.
    pub(crate) fn write(&self, id: u64, now_ms: u64, rng: &mut Rng) -> Step {
        match self.kind {
            Kind::Register => self.register(id, rng),
            Kind::Counter => self.counter(rng),
            Kind::Expiring => self.expiring(id, now_ms, rng),
            Kind::Group => self.group(id, rng),
            Kind::Transaction => self.transaction(id),
            Kind::Wanderer => self.wanderer(id),
        }
    }

    /// Filled up to one of several lengths, so that records of all sizes are met.
    fn value(&self, id: u64, rng: &mut Rng) -> Vec<u8> {
        let len = match rng.below(64) {
            0 => 20_000,
            1..8 => 600,
            _ => 24,
        };
        let mut value = format!("{}={id};", self.keys[0]).into_bytes();
        value.resize(value.len().max(len), b'a' + (id % 26) as u8);
        value
    }

    fn is_certain(&self) -> bool {
        self.maybe.is_empty()
    }

    fn register(&self, id: u64, rng: &mut Rng) -> Step {
        let key = self.keys[0].as_bytes();
        match (&self.known[0], rng.below(10)) {
            (Some(cell), 0..3) if self.is_certain() && cell.value.len() < 30_000 => {
                let tail = format!("+{id}").into_bytes();
                let value = [&cell.value[..], &tail].concat();
                Step {
                    requests: vec![words(&[&b"APPEND"[..], key, &tail])],
                    expected: Some(Reply::Int(value.len() as i64)),
                    after: vec![live(value)],
                }
            }
            (known @ Some(_), 3) => Step {
                requests: vec![words(&[&b"DEL"[..], key])],
                expected: self
                    .is_certain()
                    .then_some(Reply::Int(known.is_some().into())),
                after: vec![None],
            },
            _ => {
                let value = self.value(id, rng);
                Step {
                    requests: vec![words(&[&b"SET"[..], key, &value])],
                    expected: ok(),
                    after: vec![live(value)],
                }
            }
        }
    }

    fn counter(&self, rng: &mut Rng) -> Step {
        let key = &self.keys[0];
        let by = 1 + rng.below(9) as i64;
        let number = |cell: &Cell| std::str::from_utf8(&cell.value).ok()?.parse::<i64>().ok();
        let before = match &self.known[0] {
            Some(cell) => number(cell).unwrap_or(0),
            None => 0,
        };
        if self.is_certain() {
            return Step {
                requests: vec![words(&["INCRBY", key, &by.to_string()])],
                after: vec![live((before + by).to_string())],
                expected: Some(Reply::Int(before + by)),
            };
        }
        // What to add to is not known: begin anew, above everything there was.
        let highest = self.maybe.iter().flatten().flatten().filter_map(number);
        let value = (highest.fold(before, i64::max) + by).to_string();
        Step {
            requests: vec![words(&["SET", key, &value])],
            after: vec![live(value)],
            expected: ok(),
        }
    }

    fn expiring(&self, id: u64, now_ms: u64, rng: &mut Rng) -> Step {
        let value = format!("{}={id};", self.keys[0]).into_bytes();
        // Some go while the node runs, some while it is down, some never in time.
        let expires = now_ms + [40, 300, 1_500, 600_000][rng.below(4) as usize];
        let at = expires.to_string();
        let key = self.keys[0].as_bytes();
        Step {
            requests: vec![words(&[&b"SET"[..], key, &value, b"PXAT", at.as_bytes()])],
            after: vec![Some(Cell {
                value,
                expires: Some(expires),
            })],
            expected: ok(),
        }
    }

    fn group(&self, id: u64, rng: &mut Rng) -> Step {
        if rng.below(8) == 0 {
            let mut request = words(&["DEL"]);
            request.extend(self.keys.iter().map(|key| key.clone().into_bytes()));
            let there = self.known.iter().flatten().count() as i64;
            return Step {
                requests: vec![request],
                after: vec![None; self.keys.len()],
                expected: self.is_certain().then_some(Reply::Int(there)),
            };
        }
        let value = self.value(id, rng);
        let mut request = words(&["MSET"]);
        for key in &self.keys {
            request.extend([key.clone().into_bytes(), value.clone()]);
        }
        Step {
            requests: vec![request],
            after: vec![live(value); self.keys.len()],
            expected: ok(),
        }
    }

    fn transaction(&self, id: u64) -> Step {
        let value = format!("{}={id};", self.keys[0]);
        let [one, two, three] = [0, 1, 2].map(|part| self.keys[part].as_str());
        Step {
            requests: vec![
                words(&["MULTI"]),
                words(&["SET", one, &value]),
                words(&["DEL", two]),
                words(&["APPEND", two, &value]),
                words(&["GETSET", three, &value]),
                words(&["EXEC"]),
            ],
            after: vec![live(value); 3],
            expected: None,
        }
    }

    fn wanderer(&self, id: u64) -> Step {
        let at = self.known.iter().position(Option::is_some);
        match at {
            Some(from) if self.is_certain() => {
                let to = 1 - from;
                let mut after = self.known.clone();
                after.swap(from, to);
                Step {
                    requests: vec![words(&["RENAME", &self.keys[from], &self.keys[to]])],
                    after,
                    expected: ok(),
                }
            }
            _ => {
                let value = format!("{}={id};", self.keys[0]);
                let (first, second) = (self.keys[0].as_str(), self.keys[1].as_str());
                Step {
                    requests: vec![
                        words(&["MULTI"]),
                        words(&["DEL", second]),
                        words(&["SET", first, &value]),
                        words(&["EXEC"]),
                    ],
                    after: vec![live(value), None],
                    expected: None,
                }
            }
        }
    }
}
