//! Transactions of level serializable over keys of several slots: `BEGIN` with commands, and `COMMIT` in a second message, if
//! no command was refused. What was told of the commands has to be true at the time of the `COMMIT`. Some seeds have them.

use super::clients::Client;
use super::plan::Plan;
use super::spread;
use super::wishes::{Aim, Wish};
use super::world::World;
use crate::history::{Outcome, Record};
use crate::model::{Op, Step};
use rufous_base::Close;
use rufous_resp::Reply;

/// What was told before a `COMMIT`.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// With the keys of this unit.
    pub(super) unit: usize,
    pub(super) op: Op,
    told: Vec<Reply>,
    /// Its outcome is kept at this key.
    pub(super) token: Option<Vec<u8>>,
}

fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

impl Begun {
    pub(super) fn commit(&self) -> Vec<Vec<u8>> {
        match &self.token {
            Some(token) => words(&[b"COMMIT", b"TOKEN", token]),
            None => words(&[b"COMMIT"]),
        }
    }

    /// Asks for its outcome.
    pub(super) fn ask(&self) -> Vec<Vec<u8>> {
        words(&[b"OUTCOME", self.token.as_deref().unwrap_or_default()])
    }

    /// Whether an error says that all of it was undone, as a command has failed: that is so where it has a token.
    pub(super) fn is_undone(&self, error: &[u8]) -> bool {
        let has_failed = self.told.iter().any(is_error);
        self.token.is_some() && has_failed && error.starts_with(b"EXECABORT")
    }
}

const COMMITTED: &[u8] = b"COMMITTED";
const ABORTED: &[u8] = b"ABORTED";

/// Whether a reply is an error that a command comes to, rather than a refusal.
fn is_result(error: &[u8]) -> bool {
    error.starts_with(b"ERR ") || error.starts_with(b"WRONGTYPE")
}

fn is_error(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(_))
}

impl Plan {
    /// Whether clients use them.
    pub fn has_begun(&self) -> bool {
        self.has_spread() && self.seed % 16 == 15
    }

    /// Whether their outcomes are kept, and asked for where a client does not hear of them.
    pub fn has_tokens(&self) -> bool {
        self.has_begun() && self.is_new() && (self.seed / 32).is_multiple_of(2)
    }
}

/// The requests of a transaction up to its end.
pub(super) fn requests(unit: usize, op: &Op) -> Vec<Vec<Vec<u8>>> {
    let mut all = op.requests(&spread::keys_of(unit));
    all.pop();
    if let Some(first) = all.first_mut() {
        *first = vec![b"BEGIN".to_vec(), b"SERIALIZABLE".to_vec()];
    }
    all
}

/// Whether a transaction is begun and committed, rather than queued.
pub(super) fn begins(client: &mut Client, op: &Op) -> bool {
    matches!(op, Op::Transaction { .. }) && client.begun.chance(0.5)
}

impl World {
    /// A client has been told what its commands come to.
    pub(super) fn on_begun(&mut self, client: usize, (unit, op): (usize, Op), replies: Vec<Reply>) {
        let mut told = replies.into_iter();
        let begun = told.next();
        if begun != Some(Reply::Simple(b"OK".to_vec())) {
            return self.fail(format!("client {client} cannot begin: {begun:?}"));
        }
        let told: Vec<Reply> = told.collect();
        let refusal = told.iter().find_map(|reply| match reply {
            Reply::Error(text) if !is_result(text) => Some(text),
            _ => None,
        });
        let found = &mut self.clients[client];
        let Some(wire) = found.connection.as_ref().map(|connection| connection.wire) else {
            return;
        };
        let Some(refusal) = refusal else {
            found.further.rely_on(wire);
            // Often for so long that slots may leave.
            if found.begun.chance(0.3) {
                found.pause_us = found.begun.skewed(100_000, 5_000_000);
            }
            let token = self.plan.has_tokens().then(|| {
                self.values += 1;
                let tag = ["a", "b", "c", "d"][self.values as usize % 4];
                let token = format!("{{{tag}}}token:{}", self.values);
                self.tokens.push(token.clone());
                token.into_bytes()
            });
            let begun = Begun {
                unit,
                op,
                told,
                token,
            };
            let aim = Aim::Commit(begun);
            return self.clients[client].again.push_back(Wish { aim, at: None });
        };
        let refusal = String::from_utf8_lossy(refusal).into_owned();
        let known = ["TRYAGAIN", "CLUSTERDOWN", "LOADING", "MISCONF"];
        if !known.iter().any(|begin| refusal.starts_with(begin)) {
            return self.fail(format!("client {client} is refused a command: {refusal}"));
        }
        // Its end is the end of the transaction.
        self.clients[client].connection = None;
        self.reach("a command of a begun transaction was refused");
        self.close(wire, 0, Close::Now);
    }

    /// The reply to a `COMMIT`. Returns the operation and all that was told of it, if it was executed.
    pub(super) fn on_committed(&mut self, begun: Begun, reply: Reply) -> Option<(Op, Reply)> {
        let Reply::Array(mut done) = reply else {
            if matches!(&reply, Reply::Error(text) if begun.is_undone(text)) {
                self.reach("a begun transaction with a token was undone");
                return None;
            }
            let is_null = matches!(reply, Reply::Null | Reply::NullArray);
            if !is_null {
                self.fail(format!("a COMMIT is answered {reply:?}"));
            }
            self.reach("what a begun transaction had read was changed");
            return None;
        };
        if begun.token.is_some() && done.pop() != Some(Reply::Simple(COMMITTED.to_vec())) {
            self.fail(format!(
                "a COMMIT with a token replies no outcome: {begun:?}"
            ));
        }
        let steps = begun.op.steps().iter().zip(&begun.told);
        let kept = steps.filter(|(step, told)| Step::writes(step) && !is_error(told));
        let kept: Vec<&Reply> = kept.map(|(_, told)| told).collect();
        if !kept.iter().copied().eq(&done) {
            let op = &begun.op;
            self.fail(format!(
                "{op:?} was told {kept:?}, and COMMIT replies {done:?}"
            ));
        }
        self.reach("a begun transaction was committed");
        Some((begun.op, Reply::Array(begun.told)))
    }

    /// A client asks what became of a transaction whose end was asked for at that time.
    pub(super) fn ask_outcome(&mut self, client: usize, begun: Begun, from_us: u64) {
        self.reach("a client asks for an outcome");
        let aim = Aim::Outcome(begun, from_us);
        self.clients[client].again.push_back(Wish { aim, at: None });
    }

    /// A client is told what became of a transaction, or is not.
    pub(super) fn note_outcome(
        &mut self,
        client: usize,
        begun: Begun,
        (from_us, outcome): (u64, Outcome),
    ) {
        let Outcome::Seen(reply) = outcome else {
            return self.ask_outcome(client, begun, from_us);
        };
        match reply {
            Reply::Simple(text) if text == COMMITTED => {
                self.reach("an outcome was that all was executed");
                let record = Record {
                    op: begun.op,
                    outcome: Outcome::Seen(Reply::Array(begun.told)),
                    // Not in the order of a connection: what it asked then and what it is told now are apart.
                    connection: u64::MAX - self.operations,
                    order: 0,
                    asked_us: from_us,
                    answered_us: self.engine.now_us,
                };
                self.history.add(spread::place_of(begun.unit), 0, record);
            }
            Reply::Simple(text) if text == ABORTED => {
                self.reach("an outcome was that nothing was executed");
            }
            reply => self.fail(format!("{begun:?} has the outcome {reply:?}")),
        }
    }
}
