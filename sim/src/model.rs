//! What commands mean, said once more and as simply as can be: a few keys, one
//! command after the other. Oracles compare what clients saw with it.

pub mod act;
pub mod claret;
mod expect;
mod held;
mod keys;
mod pipeline;
pub mod pops;
mod quiet;
mod text;
pub mod value;

use crate::engine::clock::Clock;
use act::Act;
pub use expect::Expect;
use rufous_resp::Reply;
use text::{holds_other, increment, put, text};
use value::Value;

/// A key's contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    pub value: Value,
    pub expiry: Option<Expiry>,
}

/// When a key may and when it must be gone. Clients do not know when exactly
/// their command ran, so neither is one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expiry {
    /// Milliseconds of the wall clock.
    pub earliest: i64,
    pub latest: i64,
    /// No clock reading before this can have made it expire.
    pub since_us: u64,
}

/// The keys that are checked together.
pub type State = Vec<Option<Entry>>;

/// When a command may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from_us: u64,
    pub to_us: u64,
    pub min_ms: i64,
    pub max_ms: i64,
}

impl Window {
    pub fn new(from_us: u64, to_us: u64, clock: &Clock) -> Self {
        let (min, max) = clock.range_ms(from_us, to_us);
        Self {
            from_us,
            to_us,
            min_ms: min,
            max_ms: max,
        }
    }
}

/// One command; keys are places in the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Get(usize),
    Set {
        key: usize,
        value: Vec<u8>,
        px: Option<u64>,
    },
    SetNx(usize, Vec<u8>),
    GetSet(usize, Vec<u8>),
    GetDel(usize),
    Append(usize, Vec<u8>),
    SetRange(usize, usize, Vec<u8>),
    Strlen(usize),
    IncrBy(usize, i64),
    Del(Vec<usize>),
    Exists(usize),
    Expire(usize, u64),
    Persist(usize),
    Pttl(usize),
    SetAll(Vec<u8>),
    /// If none of the keys exists.
    SetAllNx(Vec<u8>),
    GetAll,
    Rename(usize, usize),
    Copy(usize, usize, bool),
    /// Of the whole database.
    Flush,
    /// On collections.
    Act(Act),
    /// After `QUIET`.
    Quiet(Box<Step>),
}

/// What a client asks for at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    One(Step),
    /// MULTI, the steps, EXEC; `guard` is what a watched key held.
    Transaction {
        steps: Vec<Step>,
        guard: Option<(usize, Option<Vec<u8>>)>,
    },
}

impl Op {
    /// The commands of it, for keys of these names.
    pub fn requests(&self, keys: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        match self {
            Op::One(step) => vec![step.request(keys)],
            Op::Transaction { steps, .. } => {
                let mut all = vec![vec![b"MULTI".to_vec()]];
                all.extend(steps.iter().map(|s| s.request(keys)));
                all.push(vec![b"EXEC".to_vec()]);
                all
            }
        }
    }

    pub fn steps(&self) -> &[Step] {
        match self {
            Op::One(step) => std::slice::from_ref(step),
            Op::Transaction { steps, .. } => steps,
        }
    }

    pub fn writes(&self) -> bool {
        self.steps().iter().any(Step::writes)
    }

    /// All states that may follow from `state` where the client saw `reply`
    /// (`None`: it never saw any).
    pub fn outcomes(
        &self,
        state: &State,
        reply: Option<&Reply>,
        window: &Window,
        world: &World<'_>,
    ) -> Vec<State> {
        let mut all = Vec::new();
        for before in self.before(state, window, world) {
            for op in self.choices(&before, reply) {
                let mut state = before.clone();
                if op.runs(&mut state, reply, window) && !all.contains(&state) {
                    all.push(state);
                }
            }
        }
        all
    }

    /// Where the node chooses, all that it may have chosen.
    fn choices(&self, state: &State, reply: Option<&Reply>) -> Vec<Op> {
        match self {
            Op::One(step) => {
                let steps = step.choices(state, reply).into_iter();
                steps.map(Op::One).collect()
            }
            Op::Transaction { steps, guard } => {
                let mut steps = steps.clone();
                if let Some(Reply::Array(parts)) = reply {
                    let told = steps.iter_mut().zip(parts);
                    told.for_each(|(step, part)| step.be_told(part));
                }
                vec![Op::Transaction {
                    steps,
                    guard: guard.clone(),
                }]
            }
        }
    }

    /// The state with those keys gone that may have gone by themselves.
    fn before(&self, state: &State, window: &Window, world: &World<'_>) -> Vec<State> {
        let mut all = vec![state.clone()];
        for key in 0..state.len() {
            let Some(entry) = &state[key] else { continue };
            if !self.steps().iter().any(|s| s.looks_at(key)) {
                continue;
            }
            let (may, must) = entry.expiry.as_ref().map_or((false, false), |e| {
                let highest = world.clock.range_ms(e.since_us, window.to_us).1;
                (highest >= e.earliest, window.min_ms > e.latest)
            });
            let mut gone = all.clone();
            gone.iter_mut().for_each(|s| s[key] = None);
            if must {
                all = gone;
            } else if may || world.evicts {
                all.extend(gone);
            }
        }
        all
    }

    fn runs(&self, state: &mut State, reply: Option<&Reply>, window: &Window) -> bool {
        match self {
            Op::One(step) => step.run(state, window).allows(reply),
            Op::Transaction { steps, guard } => {
                if let Some((key, seen)) = guard
                    && state[*key].as_ref().and_then(|e| e.value.text()) != seen.as_ref()
                {
                    return false;
                }
                let expected: Vec<_> = steps.iter().map(|s| s.run(state, window)).collect();
                match reply {
                    None => true,
                    Some(Reply::Array(parts)) => {
                        parts.len() == expected.len()
                            && expected.iter().zip(parts).all(|(e, p)| e.allows(Some(p)))
                    }
                    Some(_) => false,
                }
            }
        }
    }
}

/// What the model has to know beside the keys.
#[derive(Debug)]
pub struct World<'a> {
    pub clock: &'a Clock,
    /// Whether any key may be evicted at any time.
    pub evicts: bool,
}

fn integer(n: usize) -> Expect {
    Expect::Exactly(Reply::Integer(n as i64))
}

fn ok() -> Expect {
    Expect::Exactly(Reply::Simple(b"OK".to_vec()))
}

fn bulk(entry: &Option<Entry>) -> Reply {
    entry
        .as_ref()
        .and_then(|e| e.value.text())
        .map_or(Reply::Null, |text| Reply::Bulk(text.clone()))
}

fn plain(value: &[u8]) -> Option<Entry> {
    Some(Entry {
        value: Value::Text(value.to_vec()),
        expiry: None,
    })
}

impl Step {
    pub fn writes(&self) -> bool {
        match self {
            Step::Act(act) => return act.writes(),
            Step::Quiet(step) => return step.writes(),
            _ => {}
        }
        !matches!(
            self,
            Step::Get(_) | Step::Strlen(_) | Step::Exists(_) | Step::Pttl(_) | Step::GetAll
        )
    }

    /// Whether what it does depends on what is at `key`.
    pub(crate) fn looks_at(&self, key: usize) -> bool {
        match self {
            Step::Get(k)
            | Step::SetNx(k, _)
            | Step::GetSet(k, _)
            | Step::GetDel(k)
            | Step::Append(k, _)
            | Step::SetRange(k, ..)
            | Step::Strlen(k)
            | Step::IncrBy(k, _)
            | Step::Exists(k)
            | Step::Expire(k, _)
            | Step::Persist(k)
            | Step::Pttl(k) => *k == key,
            Step::Del(keys) => keys.contains(&key),
            Step::Rename(a, b) | Step::Copy(a, b, _) => *a == key || *b == key,
            Step::GetAll | Step::SetAllNx(_) => true,
            Step::Act(act) => act.looks_at(key),
            Step::Quiet(step) => step.looks_at(key),
            Step::Set { .. } | Step::SetAll(_) | Step::Flush => false,
        }
    }

    fn request(&self, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let word = |w: &str| w.as_bytes().to_vec();
        let one = |name: &str, key: &usize| vec![word(name), keys[*key].clone()];
        let with =
            |name: &str, key: &usize, rest: Vec<u8>| vec![word(name), keys[*key].clone(), rest];
        match self {
            Step::Get(k) => one("GET", k),
            Step::Set { key, value, px } => {
                let mut all = with("SET", key, value.clone());
                if let Some(px) = px {
                    all.extend([word("PX"), word(&px.to_string())]);
                }
                all
            }
            Step::SetNx(k, value) => with("SETNX", k, value.clone()),
            Step::GetSet(k, value) => with("GETSET", k, value.clone()),
            Step::GetDel(k) => one("GETDEL", k),
            Step::Append(k, tail) => with("APPEND", k, tail.clone()),
            Step::SetRange(k, at, bytes) => {
                let mut all = with("SETRANGE", k, word(&at.to_string()));
                all.push(bytes.clone());
                all
            }
            Step::Strlen(k) => one("STRLEN", k),
            Step::IncrBy(k, by) => with("INCRBY", k, word(&by.to_string())),
            Step::Del(which) => std::iter::once(word("DEL"))
                .chain(which.iter().map(|k| keys[*k].clone()))
                .collect(),
            Step::Exists(k) => one("EXISTS", k),
            Step::Expire(k, ms) => with("PEXPIRE", k, word(&ms.to_string())),
            Step::Persist(k) => one("PERSIST", k),
            Step::Pttl(k) => one("PTTL", k),
            Step::SetAll(value) => pairs("MSET", keys, value),
            Step::SetAllNx(value) => pairs("MSETNX", keys, value),
            Step::GetAll => std::iter::once(word("MGET"))
                .chain(keys.iter().cloned())
                .collect(),
            Step::Rename(a, b) => with("RENAME", a, keys[*b].clone()),
            Step::Copy(a, b, replace) => {
                let mut all = with("COPY", a, keys[*b].clone());
                all.extend(replace.then(|| word("REPLACE")));
                all
            }
            Step::Flush => vec![word("FLUSHDB")],
            Step::Act(act) => act.request(keys),
            Step::Quiet(step) => std::iter::once(word("QUIET"))
                .chain(step.request(keys))
                .collect(),
        }
    }

    /// Changes the state and returns the expected reply.
    fn run(&self, state: &mut State, window: &Window) -> Expect {
        if self.only_text().is_some_and(|key| holds_other(state, key)) {
            return Expect::Error("WRONGTYPE");
        }
        match self {
            Step::Get(k) => Expect::Exactly(bulk(&state[*k])),
            Step::Set { key, value, px } => {
                state[*key] = plain(value);
                if let (Some(px), Some(entry)) = (px, &mut state[*key]) {
                    entry.expiry = Some(expiry(*px, window));
                }
                ok()
            }
            Step::SetNx(k, value) => {
                let absent = state[*k].is_none();
                if absent {
                    state[*k] = plain(value);
                }
                integer(usize::from(absent))
            }
            Step::GetSet(k, value) => {
                let old = bulk(&state[*k]);
                state[*k] = plain(value);
                Expect::Exactly(old)
            }
            Step::GetDel(k) => Expect::Exactly(bulk(&state[*k].take())),
            Step::Append(k, tail) => {
                let grow = |text: &mut Vec<u8>| {
                    text.extend_from_slice(tail);
                    text.len()
                };
                integer(put(&mut state[*k], grow))
            }
            Step::SetRange(k, at, bytes) => {
                let end = at + bytes.len();
                let grow = |text: &mut Vec<u8>| {
                    text.resize(text.len().max(end), 0);
                    text[*at..end].copy_from_slice(bytes);
                    text.len()
                };
                integer(put(&mut state[*k], grow))
            }
            Step::Strlen(k) => integer(text(&state[*k]).map_or(0, Vec::len)),
            Step::IncrBy(k, by) => increment(&mut state[*k], *by),
            Step::Del(which) => {
                integer(which.iter().filter(|k| state[**k].take().is_some()).count())
            }
            Step::Exists(k) => integer(usize::from(state[*k].is_some())),
            Step::SetAll(value) => {
                state.iter_mut().for_each(|s| *s = plain(value));
                ok()
            }
            Step::SetAllNx(value) => {
                let absent = state.iter().all(Option::is_none);
                if absent {
                    state.iter_mut().for_each(|s| *s = plain(value));
                }
                integer(usize::from(absent))
            }
            Step::GetAll => Expect::Exactly(Reply::Array(state.iter().map(bulk).collect())),
            Step::Flush => {
                state.iter_mut().for_each(|s| *s = None);
                ok()
            }
            Step::Act(act) => act.run(state),
            Step::Quiet(step) => quiet::run(step, state, window),
            Step::Rename(..) | Step::Copy(..) => self.moves(state),
            Step::Expire(..) | Step::Persist(_) | Step::Pttl(_) => self.times(state, window),
        }
    }

    /// The key that must not hold a collection.
    fn only_text(&self) -> Option<usize> {
        match self {
            Step::Get(key)
            | Step::GetSet(key, _)
            | Step::GetDel(key)
            | Step::Append(key, _)
            | Step::SetRange(key, ..)
            | Step::Strlen(key)
            | Step::IncrBy(key, _) => Some(*key),
            _ => None,
        }
    }
}

/// A command that sets all of these keys.
fn pairs(name: &str, keys: &[Vec<u8>], value: &[u8]) -> Vec<Vec<u8>> {
    let pairs = keys.iter().flat_map(|key| [&key[..], value]);
    let words = std::iter::once(name.as_bytes()).chain(pairs);
    words.map(<[u8]>::to_vec).collect()
}

/// The time to live, counted from when the command may have run.
fn expiry(ms: u64, window: &Window) -> Expiry {
    Expiry {
        earliest: window.min_ms + ms as i64,
        latest: window.max_ms + ms as i64,
        since_us: window.from_us,
    }
}
