//! Commands on typed keys as operations of transactions: what a command does is reduced to its footprint, so that the
//! transactions that hold a key are counts, and a new one is compared with all of them at once.

use crate::codec::Coded;
use crate::planted::{self, Off};
use crate::txn::{Holders, Operation, Part};
use rufous_datatype::key::{self, Footprint, Held, Relation, Standing};
use std::fmt::Debug;

/// A command on one key, with what was observed of it or promised. The command is what the keys of a slot execute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Typed<C> {
    footprint: Footprint,
    pub command: C,
}

impl<C> Typed<C> {
    /// A command that consists of these operations on its key.
    pub fn new<'a>(command: C, ops: impl IntoIterator<Item = Held<'a>>) -> Self {
        let mut footprint = Footprint::default();
        for held in ops {
            footprint.join(held.footprint());
        }
        Self { footprint, command }
    }

    /// A command that touches this of its key.
    pub fn with(command: C, footprint: Footprint) -> Self {
        Self { footprint, command }
    }
}

impl<C: Clone + Debug> Operation for Typed<C> {
    type Holders = Summary;

    fn relation(&self, other: &Self) -> Relation {
        key::holders::plain_relation([&self.footprint].into_iter(), &other.footprint, None)
    }

    fn writes(&self) -> bool {
        self.footprint.writes()
    }
}

/// The command alone: it says what its operations are.
impl<C: Coded + Clone + Into<Typed<C>>> Coded for Typed<C> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.command.encode(out);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        C::decode(from).map(Into::into)
    }
}

/// The holders of a key as counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary(key::Holders);

impl<C: Clone + Debug> Holders<Typed<C>> for Summary {
    type Standing = Standing;

    fn hold(&mut self, part: &Part<Typed<C>>) {
        self.0.hold(&footprint(part));
    }

    fn release(&mut self, part: &Part<Typed<C>>) {
        self.0.release(&footprint(part));
    }

    fn relation(&self, part: &Part<Typed<C>>, standing: Option<&Standing>) -> Relation {
        self.0.relation(&footprint(part), seen(standing).as_ref())
    }

    fn relation_after(&self, part: &Part<Typed<C>>, standing: Option<&Standing>) -> Relation {
        let part = footprint(part);
        match seen(standing) {
            Some(standing) => self.0.relation_after(&part, &standing),
            None => self.0.relation(&part, None),
        }
    }

    fn pair(&self, [a, b]: [&Part<Typed<C>>; 2], standing: Option<&Standing>) -> Relation {
        let standing = seen(standing);
        self.0
            .pair([&footprint(a), &footprint(b)], standing.as_ref())
    }
}

/// The standing, but for rules that are switched off.
fn seen(standing: Option<&Standing>) -> Option<Standing> {
    let mut standing = *standing?;
    if planted::is(Off::Keys) {
        standing.len = u64::MAX;
    }
    if planted::is(Off::Limits) {
        standing.room = Some((0, i64::MIN, i64::MAX));
    }
    Some(standing)
}

fn footprint<C>(part: &Part<Typed<C>>) -> Footprint {
    let mut all = Footprint::default();
    for op in &part.ops {
        all.join(op.footprint.clone());
    }
    if part.expects.is_some() {
        all.expect_version();
    }
    all
}
