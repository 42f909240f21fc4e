//! Drains: every worker sends all changes of its replicas and receives those of the others, so that
//! all replicas of the node are equal. See `convert` for their purpose. Every worker is held
//! meanwhile: no command changes anything.

use crate::keyspace::Keyspaces;
use crate::lock::Ticket;
use crate::worker::out::{Call, Out};
use crate::worker::store::Store;
use crate::worker::{Draining, Message};
use rufous_base::WorkerId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A drain: every worker tells every other that it has sent all its changes.
#[derive(Debug)]
struct Drain {
    /// Version of the new table, and whether it has been adopted.
    of: (u64, bool),
    sent: bool,
    then: Then,
}

/// What follows a drain.
#[derive(Debug)]
pub(super) enum Then {
    /// Report what this change would do, to this command at that worker.
    Tell(WorkerId, u64, Arc<Keyspaces>),
    /// End this hold, once that is allowed.
    LetGo(Option<Ticket>),
}

/// The drains of a worker.
#[derive(Debug, Default)]
pub(super) struct Drains {
    current: Option<Drain>,
    /// How many others have sent all their changes, also before this worker began.
    heard: BTreeMap<(u64, bool), usize>,
    /// Messages of workers that have already adopted the table, while this worker, whose replicas
    /// were equal to theirs before that, has not.
    early: Option<Vec<Arc<[u8]>>>,
}

impl Drains {
    #[inline]
    pub(super) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// Whether a table was adopted, and replicas that it requires have yet to arrive.
    pub(super) fn is_converting(&self) -> bool {
        self.current.as_ref().is_some_and(|drain| drain.of.1)
    }

    /// Whether changes of held keys are to be sent too.
    pub(super) fn is_open(&self) -> bool {
        self.current.as_ref().is_some_and(|drain| !drain.sent)
    }

    /// Keeps a message of another worker until this one has adopted the table too: its conversion
    /// must not remove what was just received. Returns the message if it need not be kept.
    pub(super) fn keep_early(&mut self, bytes: Arc<[u8]>) -> Option<Arc<[u8]>> {
        match &mut self.early {
            Some(early) => {
                early.push(bytes);
                None
            }
            None => Some(bytes),
        }
    }

    /// The messages kept, once this worker has adopted the table, or the table was refused.
    pub(super) fn take_early(&mut self) -> Vec<Arc<[u8]>> {
        self.early.take().unwrap_or_default()
    }

    pub(super) fn begin(&mut self, of: (u64, bool), then: Then) {
        debug_assert!(self.current.is_none(), "all is held once");
        let sent = false;
        self.current = Some(Drain { of, sent, then });
    }

    /// All changes here were taken and sent: tells the other workers so, behind these changes.
    pub(super) fn on_sent_all(&mut self, store: &Store<'_>, out: &mut Out) {
        let Some(drain) = self.current.as_mut().filter(|drain| !drain.sent) else {
            return;
        };
        drain.sent = true;
        let (version, taken) = drain.of;
        for to in store.others() {
            let sent = Message::Draining(Draining::Sent { version, taken });
            out.call(Call::SendLogged(to, sent));
        }
    }

    /// Another worker has sent all its changes.
    pub(super) fn on_sent(&mut self, of: (u64, bool)) {
        *self.heard.entry(of).or_default() += 1;
    }

    /// Whether this drain has all messages that it waits for.
    pub(super) fn has_heard(&self, workers: usize) -> bool {
        self.current.as_ref().is_some_and(|drain| {
            let heard = self.heard.get(&drain.of).copied().unwrap_or(0);
            let waits = matches!(drain.then, Then::LetGo(None));
            drain.sent && heard == workers - 1 && !waits
        })
    }

    /// All replicas of this worker are equal to those of the others.
    pub(super) fn end(&mut self) -> Option<Then> {
        let Drain { of, then, .. } = self.current.take()?;
        self.heard.remove(&of);
        if matches!(then, Then::Tell(..)) {
            self.early = Some(Vec::new());
        }
        Some(then)
    }

    /// A hold may end as far as its command is concerned. Returns it, unless it ends with this
    /// drain: the new replicas are not everywhere yet.
    pub(super) fn on_hold_ends(&mut self, ticket: Ticket) -> Option<Ticket> {
        if let Some(drain) = &mut self.current
            && let Then::LetGo(slot) = &mut drain.then
        {
            *slot = Some(ticket);
            return None;
        }
        Some(ticket)
    }
}
