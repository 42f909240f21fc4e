//! Transactions over keys of several slots of which a command replies an error, on a connection that has them undone then.
//! They leave nothing, so they are no part of the history: one order of all other commands explains what clients see. Some
//! seeds have them.

use super::plan::Plan;
use super::spread;
use super::world::World;
use crate::engine::random::Random;
use crate::model::{Op, Step};
use rufous_resp::Reply;

impl Plan {
    /// Whether clients use them.
    pub(super) fn has_undone(&self) -> bool {
        self.is_new() && self.seed / 512 % 2 == 1
    }
}

/// A transaction on texts: `text` is no number, so that one of its commands fails whatever was there before.
pub(super) fn transaction(random: &mut Random, keys: usize, text: &[u8]) -> Op {
    let first = random.index(keys);
    let second = (first + 1 + random.index(keys - 1)) % keys;
    let set = |key| Step::Set {
        key,
        value: text.to_vec(),
        px: None,
    };
    let mut steps = vec![set(first), Step::IncrBy(first, 1)];
    let further = match random.below(4) {
        0 => set(second),
        1 => Step::Append(second, [text, b","].concat()),
        2 => Step::Rename(first, second),
        _ => Step::Del(vec![second]),
    };
    let at = if random.chance(0.5) { 2 } else { 0 };
    steps.insert(at, further);
    if random.chance(0.3) {
        steps.push(Step::GetAll);
    }
    Op::Transaction { steps, guard: None }
}

/// The option of the connection, for these transactions alone.
fn option(value: &[u8]) -> Vec<Vec<u8>> {
    [b"CLIENT", b"ROLLBACK-ON-ERROR" as &[u8], value]
        .map(<[u8]>::to_vec)
        .into()
}

pub(super) fn requests(unit: usize, op: &Op) -> Vec<Vec<Vec<u8>>> {
    let mut all = vec![option(b"ON")];
    all.extend(op.requests(&spread::keys_of(unit)));
    all.push(option(b"OFF"));
    all
}

/// How many replies there are.
pub(super) fn replies(op: &Op) -> usize {
    op.steps().len() + 4
}

impl World {
    pub(super) fn on_undone(&mut self, client: usize, op: &Op, replies: Vec<Reply>) {
        // Behind it is the reply to the option alone.
        let Some(exec) = replies.iter().rev().nth(1) else {
            return;
        };
        let is_queued = |reply: &&Reply| **reply == Reply::Simple(b"QUEUED".to_vec());
        let all_queued = replies.iter().filter(is_queued).count() == op.steps().len();
        let known = [
            &b"EXECABORT"[..],
            b"TRYAGAIN",
            b"CLUSTERDOWN",
            b"LOADING",
            b"MISCONF",
            b"UNKNOWNRESULT",
        ];
        match exec {
            Reply::Error(text) if text.starts_with(b"EXECABORT") && all_queued => {
                self.reach("a transaction over slots was undone");
            }
            Reply::Error(text) if known.iter().any(|begin| text.starts_with(begin)) => {}
            _ => self.fail(format!(
                "client {client}: {op:?} was not undone: {replies:?}"
            )),
        }
    }
}
