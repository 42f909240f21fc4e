//! Changes with cuts of nodes that are away. Other nodes may have received them, where this one has not; what they write then
//! depends on them, and waits here ([`super::inbox`]). So each node keeps what it has received lately, and tells it
//! to all others when the sender has gone away.
//!
//! One worker of a node keeps the changes of a sender: the worker with the sender's number modulo the workers. Only changes
//! with cuts are kept and told: what a sender had sent is complete up to a date in this sense alone.

use crate::batch::{Batch, Body, Relayed};
use crate::heard::Heard;
use crate::member;
use rufous_store::effect::NotAnEffect;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Bytes that are kept, and bytes of others that wait: changes of some seconds.
const MOST_BYTES: usize = 4 << 20;

/// The changes of an epoch of another node.
#[derive(Clone, Debug)]
struct Kept {
    of: Relayed,
    messages: Vec<Arc<[u8]>>,
}

fn bytes_of(messages: &[Arc<[u8]>]) -> usize {
    messages.iter().map(|bytes| bytes.len()).sum()
}

/// The date of the sender's epoch with changes before this one.
fn prev_of(from: u16, bytes: &[u8]) -> Option<u64> {
    let Body::Ordered { after, .. } = Batch::decode(bytes).ok()?.body else {
        return None;
    };
    let own = after.iter().find(|(replica, _)| *replica == from);
    own.map(|(_, prev)| *prev)
}

/// What was received of a sender.
#[derive(Debug, Default)]
struct Origin {
    /// The date of its last epoch with changes; before there is one, of the first one.
    last: u64,
    /// Those of the epoch that is being received.
    open: Vec<Arc<[u8]>>,
}

/// What is told to others.
#[derive(Debug, Default)]
pub(super) struct Sent {
    origins: BTreeMap<u16, Origin>,
    kept: VecDeque<Kept>,
    bytes: usize,
}

impl Sent {
    /// A sender's stream begins: what it told before is of no use.
    pub(super) fn on_begin(&mut self, from: u16) {
        self.origins.remove(&from);
        self.kept.retain(|kept| kept.of.origin != from);
        self.bytes = self.kept.iter().map(|kept| bytes_of(&kept.messages)).sum();
    }

    /// These changes of a sender were applied.
    pub(super) fn on_changes(&mut self, from: u16, bytes: &Arc<[u8]>) {
        if let Some(origin) = self.origins.get_mut(&from) {
            origin.open.push(Arc::clone(bytes));
        }
    }

    /// The sender's epoch has ended. `horizon`: the time up to which all nodes have all changes.
    pub(super) fn on_report(&mut self, (from, date): (u16, u64), horizon: impl Fn() -> u64) {
        let origin = self.origins.entry(from).or_insert_with(|| Origin {
            last: date,
            open: Vec::new(),
        });
        let messages = std::mem::take(&mut origin.open);
        if messages.is_empty() {
            return;
        }
        let prev = messages.first().and_then(|bytes| prev_of(from, bytes));
        origin.last = date;
        // An earlier program does not tell it.
        let Some(prev) = prev else {
            return;
        };
        let of = Relayed {
            origin: from,
            prev,
            date,
        };
        self.bytes += bytes_of(&messages);
        self.kept.push_back(Kept { of, messages });
        let known = horizon();
        while let Some(oldest) = self
            .kept
            .pop_front_if(|oldest| self.bytes > MOST_BYTES || oldest.of.date <= known)
        {
            self.bytes -= bytes_of(&oldest.messages);
        }
    }

    /// Another worker has sent on an epoch, which is not kept here: others that lack it get it from there.
    pub(super) fn on_relayed(&mut self, from: u16, date: u64) {
        if let Some(origin) = self.origins.get_mut(&from) {
            origin.last = origin.last.max(date);
        }
    }

    /// Messages of `own` with all that is kept of a node, which has sent nothing else up to the dates that `heard` has. What all nodes
    /// have is not sent on: removals that they have forgotten may be later.
    pub(super) fn of_node(
        &self,
        node: u16,
        own: u16,
        heard: &Heard,
    ) -> Result<Vec<Arc<[u8]>>, NotAnEffect> {
        let is_its = |replica: u16| member::node_of(replica) == node;
        let horizon = heard.horizon();
        let mut out = Vec::new();
        let kept = self.kept.iter().filter(|kept| is_its(kept.of.origin));
        for kept in kept.filter(|kept| kept.of.date > horizon) {
            for bytes in &kept.messages {
                out.push(Batch::relay(Some(&Batch::decode(bytes)?), own, kept.of));
            }
        }
        for (&origin, Origin { last, .. }) in &self.origins {
            let (prev, date) = (*last, heard.sent(origin));
            if is_its(origin) && date > prev && date < u64::MAX {
                let of = Relayed { origin, prev, date };
                out.push(Batch::relay(None, own, of));
            }
        }
        Ok(out)
    }
}

/// An epoch that another worker sends on.
#[derive(Debug)]
struct Epoch {
    prev: u64,
    /// All of it was received.
    is_whole: bool,
    messages: Vec<Arc<[u8]>>,
}

/// An epoch to be applied: its sender, its date, and its changes.
pub(super) type Due = (u16, u64, Vec<Arc<[u8]>>);

/// What others have told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// By sender, date, and worker that has sent them on.
    epochs: BTreeMap<(u16, u64, u16), Epoch>,
    /// Workers of which there was no room for all: until their next report nothing is taken.
    torn: BTreeSet<u16>,
}

impl Told {
    pub(super) fn is_empty(&self) -> bool {
        self.epochs.is_empty()
    }

    /// Receives a part of an epoch from another worker.
    pub(super) fn receive(&mut self, by: u16, of: Relayed, bytes: Arc<[u8]>) {
        let all = self.epochs.values();
        let waiting: usize = all.map(|epoch| bytes_of(&epoch.messages)).sum();
        if waiting > MOST_BYTES {
            self.on_begin(by);
            self.torn.insert(by);
        }
        if self.torn.contains(&by) {
            return;
        }
        let new = || Epoch {
            prev: of.prev,
            is_whole: false,
            messages: Vec::new(),
        };
        let epoch = self.epochs.entry((of.origin, of.date, by));
        let epoch = epoch.or_insert_with(new);
        if !epoch.is_whole {
            epoch.messages.push(bytes);
        }
    }

    /// A worker has reported: what it has sent on before is whole.
    pub(super) fn on_report(&mut self, by: u16) {
        self.torn.remove(&by);
        let its = self.epochs.iter_mut().filter(|((.., from), _)| *from == by);
        its.for_each(|(_, epoch)| epoch.is_whole = true);
    }

    /// A worker's stream begins: the rest of what it was sending on will not be received.
    pub(super) fn on_begin(&mut self, by: u16) {
        self.torn.remove(&by);
        self.epochs
            .retain(|(.., from), epoch| *from != by || epoch.is_whole);
    }

    /// Spans of time in which their senders have sent no changes with cuts: behind a date, and up to another one. Two workers of a node
    /// may each have sent changes that depend on an epoch of the other that had none, and is not sent on.
    pub(super) fn empty_spans(&self) -> impl Iterator<Item = (u16, u64, u64)> + '_ {
        let all = self.epochs.iter();
        all.map(|((origin, date, _), epoch)| (*origin, epoch.prev, date.saturating_sub(1)))
    }

    /// An epoch that can be applied now: the sender's changes up to the one before are here, and what its own ones depend on.
    /// `sent`: the date up to which those of a sender are; `covers`: whether what they depend on is here.
    pub(super) fn take(
        &mut self,
        sent: impl Fn(u16) -> u64,
        covers: impl Fn(u16, &[(u16, u64)]) -> bool,
    ) -> Option<Due> {
        self.epochs
            .retain(|(origin, date, _), _| sent(*origin) < *date);
        let is_due = |(origin, epoch): (u16, &Epoch)| {
            let mut messages = epoch.messages.iter();
            let is_covered = |bytes: &Arc<[u8]>| match Batch::decode(bytes) {
                Ok(Batch {
                    body: Body::Ordered { after, .. },
                    ..
                }) => covers(origin, &after[..after.len().saturating_sub(2)]),
                _ => false,
            };
            let is_next = epoch.is_whole && sent(origin) >= epoch.prev;
            is_next && messages.all(is_covered)
        };
        let mut all = self.epochs.iter();
        let (name, _) = all.find(|((origin, ..), epoch)| is_due((*origin, epoch)))?;
        let name = *name;
        let epoch = self.epochs.remove(&name)?;
        Some((name.0, name.1, epoch.messages))
    }
}
