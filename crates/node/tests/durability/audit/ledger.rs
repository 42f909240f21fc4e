//! One client's memory: what it wrote, what it was told, and what it finds.

use super::object::{Cell, Object, State, Step};
use super::wire::{Connection, Reply, encode};
use super::{Rng, unix_ms};
use std::collections::BTreeSet;
use std::io::Result;

/// How far the node's clock, read once a turn, may be from ours.
const SLACK_MS: u64 = 20;

/// Objects that are asked for at once.
const ASKED_AT_ONCE: usize = 64;

pub(crate) struct Ledger {
    objects: Vec<Object>,
    rng: Rng,
    next_id: u64,
    /// Writes acknowledged.
    pub(crate) acknowledged: u64,
    /// Writes refused with an error, and what the errors said.
    pub(crate) refused: u64,
    pub(crate) refusals: BTreeSet<String>,
    /// Reads answered right.
    pub(crate) read: u64,
    /// Answers that contradict what was acknowledged before.
    pub(crate) wrong: Vec<String>,
}

/// What an audit found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Keys that hold what they should.
    pub(crate) keys: u64,
    /// Of these, keys that are there.
    pub(crate) present: u64,
    /// Commands without an answer that happened, and that did not.
    pub(crate) happened: u64,
    pub(crate) not_happened: u64,
    /// What is missing or otherwise not as acknowledged, one line for each object.
    pub(crate) lost: Vec<String>,
}

impl Findings {
    pub(crate) fn add(&mut self, other: Findings) {
        self.keys += other.keys;
        self.present += other.present;
        self.happened += other.happened;
        self.not_happened += other.not_happened;
        self.lost.extend(other.lost);
    }
}

impl Ledger {
    /// Client number `owner`, with about so many keys.
    pub(crate) fn new(owner: usize, keys: usize, seed: u64) -> Self {
        // Six kinds of objects have twelve keys together.
        let objects = (0..keys.div_ceil(2).max(6)).map(|number| Object::new(owner, number));
        Self {
            objects: objects.collect(),
            rng: Rng::new(seed ^ (owner as u64) << 32),
            next_id: 0,
            acknowledged: 0,
            refused: 0,
            refusals: BTreeSet::new(),
            read: 0,
            wrong: Vec::new(),
        }
    }

    /// Writes every object once.
    pub(crate) fn fill(&mut self, connection: &mut Connection) -> Result<()> {
        let all: Vec<usize> = (0..self.objects.len()).collect();
        for some in all.chunks(ASKED_AT_ONCE) {
            let steps = some.iter().map(|&at| (at, true)).collect();
            self.carry_out(connection, steps)?;
        }
        Ok(())
    }

    /// Has up to `depth` commands on different objects under way at once. An
    /// error means that the connection is gone; what was under way is noted.
    pub(crate) fn drive(&mut self, connection: &mut Connection, depth: usize) -> Result<()> {
        let mut chosen: Vec<usize> = Vec::with_capacity(depth);
        for _ in 0..depth {
            let at = self.rng.below(self.objects.len() as u64) as usize;
            if !chosen.contains(&at) {
                chosen.push(at);
            }
        }
        let steps = chosen.into_iter().map(|at| (at, self.rng.below(5) > 0));
        let steps = steps.collect();
        self.carry_out(connection, steps)
    }

    /// Reads all objects of which it is known what they hold.
    pub(crate) fn read_all(&mut self, connection: &mut Connection) -> Result<()> {
        let all: Vec<usize> = (0..self.objects.len()).collect();
        for some in all.chunks(ASKED_AT_ONCE) {
            let steps = some.iter().map(|&at| (at, false)).collect();
            self.carry_out(connection, steps)?;
        }
        Ok(())
    }

    /// Objects with whether they are written.
    fn carry_out(&mut self, connection: &mut Connection, chosen: Vec<(usize, bool)>) -> Result<()> {
        let (mut bytes, mut steps, now_ms) = (Vec::new(), Vec::new(), unix_ms());
        for (at, write) in chosen {
            let step = match write {
                true => {
                    self.next_id += 1;
                    self.objects[at].write(self.next_id, now_ms, &mut self.rng)
                }
                false => self.objects[at].read(),
            };
            step.requests
                .iter()
                .for_each(|request| encode(request, &mut bytes));
            steps.push((at, write, step));
        }
        let mut gone = connection.send(&bytes);
        for (at, write, step) in steps {
            let last = match &gone {
                Ok(()) => last_reply(connection, step.requests.len()),
                Err(error) => Err(error.kind().into()),
            };
            match last {
                Ok(reply) => {
                    self.take(at, write, step, &reply);
                    if !self.wrong.is_empty() {
                        // Nothing that comes behind it can be trusted.
                        gone = Err(std::io::Error::other("a wrong answer"));
                    }
                }
                Err(error) => {
                    if write {
                        self.objects[at].maybe.push(step.after);
                    }
                    gone = gone.and(Err(error));
                }
            }
        }
        gone
    }

    fn take(&mut self, at: usize, write: bool, step: Step, reply: &Reply) {
        if let Reply::Error(text) = reply {
            if write {
                self.refused += 1;
            }
            self.refusals.insert(text.clone());
            return;
        }
        let failed = |reply: &Reply| matches!(reply, Reply::Error(_));
        let bad = match (&step.expected, reply) {
            (Some(expected), reply) => expected != reply,
            (None, Reply::Array(Some(all))) => {
                // What stands between MULTI and EXEC, or as many values as were asked for.
                let asked = match step.requests.len() {
                    1 => step.after.len(),
                    requests => requests - 2,
                };
                all.len() != asked || all.iter().any(failed)
            }
            (None, _) => step.requests.len() > 1,
        };
        let object = &mut self.objects[at];
        if bad {
            self.wrong.push(format!(
                "{:?} was answered {}, expected {}",
                object.keys,
                short(&format!("{reply:?}")),
                short(&format!("{:?}", step.expected)),
            ));
        }
        if write {
            self.acknowledged += 1;
            object.known = step.after;
            object.maybe.clear();
        } else {
            self.read += 1;
        }
    }

    /// Compares all keys with what is known, and goes on from what is there.
    pub(crate) fn audit(&mut self, port: u16) -> Result<Findings> {
        let mut connection = Connection::open(port)?;
        let mut findings = Findings::default();
        for objects in self.objects.chunks_mut(ASKED_AT_ONCE) {
            let before_ms = unix_ms();
            let found = match ask(&mut connection, objects) {
                Ok(found) => found,
                Err(error) => {
                    // What it found so far must not be forgotten.
                    self.wrong.append(&mut findings.lost);
                    return Err(error);
                }
            };
            let after_ms = unix_ms();
            for (object, mut state) in objects.iter_mut().zip(found) {
                let is_old = |cell: &Option<Cell>| {
                    let expires = cell.as_ref().and_then(|cell| cell.expires);
                    expires.is_some_and(|at| at + SLACK_MS < before_ms)
                };
                if state.iter().any(is_old) {
                    // The turn that answered may have begun long before: the next has not.
                    state = ask(&mut connection, std::slice::from_ref(object))?.remove(0);
                }
                if state.iter().any(is_old) {
                    findings
                        .lost
                        .push(format!("{:?}: still there after it expired", object.keys));
                }
                judge(object, state, after_ms, &mut findings);
            }
        }
        Ok(findings)
    }
}

fn judge(object: &mut Object, found: State, now_ms: u64, findings: &mut Findings) {
    let explains = |state: &State| {
        let mut pairs = state.iter().zip(&found);
        pairs.all(|(should, is)| match (should, is) {
            (Some(should), None) => should.expires.is_some_and(|at| at <= now_ms + SLACK_MS),
            (should, is) => should == is,
        })
    };
    if explains(&object.known) {
        findings.not_happened += object.maybe.len() as u64;
    } else if object.maybe.iter().any(explains) {
        findings.happened += 1;
        findings.not_happened += object.maybe.len() as u64 - 1;
    } else {
        findings.lost.push(format!(
            "{:?}: found {}, acknowledged {}, under way {}",
            object.keys,
            show(&found),
            show(&object.known),
            object
                .maybe
                .iter()
                .map(show)
                .collect::<Vec<_>>()
                .join(" or "),
        ));
    }
    findings.keys += found.len() as u64;
    findings.present += found.iter().flatten().count() as u64;
    object.known = found;
    object.maybe.clear();
}

fn last_reply(connection: &mut Connection, replies: usize) -> Result<Reply> {
    for _ in 1..replies {
        connection.read()?;
    }
    connection.read()
}

/// What the keys of objects hold now.
fn ask(connection: &mut Connection, objects: &[Object]) -> Result<Vec<State>> {
    let mut bytes = Vec::new();
    for key in objects.iter().flat_map(|object| &object.keys) {
        for name in ["GET", "PEXPIRETIME"] {
            let request = vec![name.as_bytes().to_vec(), key.clone().into_bytes()];
            encode(&request, &mut bytes);
        }
    }
    connection.send(&bytes)?;
    let mut found = Vec::new();
    for object in objects {
        let mut state = State::new();
        for _ in &object.keys {
            let (value, expires) = (connection.read()?, connection.read()?);
            state.push(match (value, expires) {
                // It went between the two questions.
                (Reply::Bulk(Some(_)), Reply::Int(-2)) => None,
                (Reply::Bulk(Some(value)), Reply::Int(at)) => Some(Cell {
                    value,
                    expires: u64::try_from(at).ok(),
                }),
                (Reply::Bulk(None), Reply::Int(_)) => None,
                other => {
                    return Err(std::io::Error::other(format!(
                        "{:?} cannot be read: {other:?}",
                        object.keys
                    )));
                }
            });
        }
        found.push(state);
    }
    Ok(found)
}

fn show(state: &State) -> String {
    let cell = |cell: &Option<Cell>| match cell {
        None => "nothing".to_owned(),
        Some(cell) => {
            let value = short(&String::from_utf8_lossy(&cell.value));
            match cell.expires {
                Some(at) => format!("{value} until {at}"),
                None => value,
            }
        }
    };
    format!(
        "[{}]",
        state.iter().map(cell).collect::<Vec<_>>().join(", ")
    )
}

fn short(text: &str) -> String {
    match text.char_indices().nth(90) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Audits of all clients, side by side.
pub(crate) fn audit_all(ledgers: &mut [Ledger], port: u16) -> Result<Findings> {
    let all: Vec<Result<Findings>> = std::thread::scope(|scope| {
        let audit = |ledger| scope.spawn(move || Ledger::audit(ledger, port));
        let threads: Vec<_> = ledgers.iter_mut().map(audit).collect();
        let panicked = |_| Err(std::io::Error::other("an audit panicked"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked))
            .collect()
    });
    let mut findings = Findings::default();
    for one in all {
        findings.add(one?);
    }
    Ok(findings)
}
