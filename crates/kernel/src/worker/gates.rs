//! Replies and messages that wait until a write is committed: in this worker's log, and at every
//! member of its slot's chain. Positions count frames. Those that concern lattice keys alone wait
//! for the log only, and not behind those that wait for chains.

use super::{Message, Outcome, Worker};
use crate::batch::Batch;
use crate::durable::LogWriter;
use crate::planted::{self, Planted};
use crate::program::Program;
use rufous_base::{Now, Output, Until, WorkerId};
use std::collections::VecDeque;

/// The position that has to be committed, the recipient, and the message.
type Waits = (u64, WorkerId, Message);

/// Messages that wait.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// They wait for the log and for chains.
    passed: VecDeque<Waits>,
    /// They wait for the log alone.
    logged: VecDeque<Waits>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.passed.is_empty() && self.logged.is_empty()
    }

    fn push(&mut self, until: Until, waits: Waits) {
        match until {
            Until::Passed => self.passed.push_back(waits),
            Until::Logged => self.logged.push_back(waits),
        }
    }

    /// The next message whose position is committed and for which `may_go` is true.
    fn pop(&mut self, at: At, may_go: impl Fn(&Waits) -> bool) -> Option<Waits> {
        let next = |line: &mut VecDeque<Waits>, at: u64| {
            line.pop_front_if(|waits| waits.0 <= at && may_go(waits))
        };
        next(&mut self.logged, at.logged).or_else(|| next(&mut self.passed, at.passed))
    }

    fn has_passed(&self, at: At) -> bool {
        let is_due =
            |line: &VecDeque<Waits>, at: u64| line.front().is_some_and(|waits| waits.0 <= at);
        is_due(&self.logged, at.logged) || is_due(&self.passed, at.passed)
    }
}

/// The committed positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) passed: u64,
    pub(super) logged: u64,
}

impl At {
    fn of(self, until: Until) -> u64 {
        match until {
            Until::Passed => self.passed,
            Until::Logged => self.logged,
        }
    }
}

impl<P: Program> Worker<P> {
    /// The position that commits everything that happened so far.
    pub(super) fn position(&self) -> u64 {
        let open = !self.durable.closing && self.shard.observers().journal_tells();
        match &self.durable.log {
            Some(log) if open => self.durable.base + log.appended() + 1,
            None if open && self.chains.is_some() => self.durable.base + 1,
            _ => self.durable.told,
        }
    }

    /// The position that is committed in the log.
    pub fn logged(&self) -> u64 {
        let log = self.durable.log.as_ref();
        self.durable.base + log.map_or(0, LogWriter::committed)
    }

    pub(super) fn committed(&self) -> u64 {
        let logged = self.logged();
        match &self.chains {
            None => logged,
            Some(chains) => chains.committed_of(logged),
        }
    }

    fn committed_at(&self) -> At {
        At {
            passed: self.committed(),
            logged: self.logged(),
        }
    }

    /// Whether replies wait for the log alone, and whether replies wait for more.
    #[inline]
    pub fn splits(&self) -> bool {
        self.chains.is_some() && self.placement.has_lattice()
    }

    /// What replies wait for that concern these keys only.
    #[inline]
    pub fn until<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Until {
        match self.splits() {
            true if planted::is(Planted::AllTakenForLattice) => Until::Logged,
            true => self.placement.until(keys),
            false => Until::Passed,
        }
    }

    /// Whether there is a log or chain that replies wait for.
    pub(super) fn commits(&self) -> bool {
        self.durable.logs() || self.chains.is_some()
    }

    /// Sends a message once everything that happened so far is committed; `to` may be this worker.
    /// While the log cannot be written, a message that only contains data is sent at once, and one
    /// that reports a commit waits.
    pub(super) fn send_committed(
        &mut self,
        now: Now,
        to: WorkerId,
        (until, message): (Until, Message),
    ) {
        let position = self.position();
        let waits = matches!(message, Message::Committed { .. }) || !self.is_in_trouble();
        if waits && self.committed_at().of(until) < position {
            self.durable.held.push(until, (position, to, message));
        } else if to == self.id {
            self.take(now, to, message);
        } else {
            self.send(to, message);
        }
    }

    /// As [`Worker::send_committed`], for messages to other workers that concern lattice keys.
    pub(super) fn send_logged(&mut self, to: WorkerId, message: Message) {
        let position = self.position();
        if !self.is_in_trouble() && self.logged() < position {
            self.durable
                .held
                .push(Until::Logged, (position, to, message));
        } else {
            self.send(to, message);
        }
    }

    /// The position up to which gates have been passed.
    pub fn passed(&self) -> u64 {
        self.committed()
    }

    /// Messages that wait for `until` or later positions may wait for long. Their clients are told
    /// that the outcome is unknown; messages that only contain data are sent now, as later ones
    /// will be; messages that report a commit wait.
    pub(super) fn lose_held(&mut self, now: Now, until: Until) {
        let at = self.committed_at();
        let passed = std::mem::take(&mut self.durable.held.passed);
        let logged = match until {
            Until::Passed => VecDeque::new(),
            Until::Logged => std::mem::take(&mut self.durable.held.logged),
        };
        let logged = logged.into_iter().map(|waits| (Until::Logged, waits));
        let passed = passed.into_iter().map(|waits| (Until::Passed, waits));
        for (until, (position, to, message)) in logged.chain(passed) {
            let told = match message {
                message if position <= at.of(until) => message,
                Message::Replies(batch) => Message::Lost(batch),
                Message::Committed { multi } => {
                    let message = Message::Committed { multi };
                    self.durable.held.push(until, (position, to, message));
                    Message::Doubtful { multi }
                }
                message => message,
            };
            if to == self.id {
                self.take(now, to, told);
            } else {
                self.send(to, told);
            }
        }
    }

    pub(super) fn on_lost(&mut self, batch: &Batch) {
        let answered = batch.requests.iter().filter(|r| !r.reply.is_later());
        self.out
            .outcomes
            .extend(answered.map(|r| Outcome::Lost(r.header)));
    }

    /// The client of a command over several workers gets no reply; its keys stay held until the
    /// command is committed.
    pub(super) fn on_doubtful(&mut self, multi: u64) {
        let Some(committing) = self.committing.get(&multi) else {
            return;
        };
        let requests = committing.replies.requests.iter();
        if committing.origin == self.id {
            return self
                .out
                .outcomes
                .extend(requests.map(|r| Outcome::Lost(r.header)));
        }
        let mut lost = Box::<Batch>::default();
        requests.for_each(|r| lost.push_reply(r.header, Output::default()));
        self.send(committing.origin, Message::Lost(lost));
    }

    /// Without a log, a frame that needs no chain is committed as soon as it has ended.
    pub(super) fn send_to_others(&mut self) {
        let (at, own) = (self.committed_at(), self.id);
        while let Some((_, to, message)) = self.durable.held.pop(at, |(_, to, _)| *to != own) {
            self.send(to, message);
        }
    }

    /// Whether a waiting message may be sent.
    pub(super) fn has_passed(&self) -> bool {
        self.durable.held.has_passed(self.committed_at())
    }

    pub(super) fn send_held(&mut self, now: Now) {
        // Handling these messages may commit nothing.
        let at = self.committed_at();
        while let Some((_, to, message)) = self.durable.held.pop(at, |_| true) {
            if to == self.id {
                self.take(now, to, message);
            } else {
                self.send(to, message);
            }
        }
    }
}
