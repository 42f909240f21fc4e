//! What waits until a write is committed: in this worker's log, and at every
//! member of its slot's chain. Positions count frames.

use super::{Completions, Message, Worker};
use crate::batch::Batch;
use crate::durable::LogWriter;
use crate::program::Program;
use rufous_base::{Now, Output, WorkerId};

impl<P: Program> Worker<P> {
    /// What has to be committed for everything that happened so far.
    pub(super) fn position(&self) -> u64 {
        let open = !self.durable.closing && self.shard.journal_tells();
        match &self.durable.log {
            Some(log) if open => self.durable.base + log.appended() + 1,
            None if open && self.chains.is_some() => self.durable.base + 1,
            _ => self.durable.told,
        }
    }

    /// Likewise in the log alone.
    pub(super) fn logged(&self) -> u64 {
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

    /// Whether there is anything that replies wait for.
    pub(super) fn commits(&self) -> bool {
        self.durable.logs() || self.chains.is_some()
    }

    /// Sends it once the log has committed what happened so far; `to` may be
    /// this worker. While the log cannot be written, what only tells of data
    /// goes at once, and what says that something is committed waits.
    pub(super) fn send_committed(
        &mut self,
        now: Now,
        to: WorkerId,
        message: Message,
        completions: &mut impl Completions,
    ) {
        let position = self.position();
        let waits = matches!(message, Message::Committed { .. }) || !self.is_in_trouble();
        if waits && self.committed() < position {
            self.durable.held.push_back((position, to, message));
        } else if to == self.id {
            self.take(now, to, message, completions);
        } else {
            self.send(to, message);
        }
    }

    /// Likewise, of what tells of data and is for another worker.
    pub(super) fn send_gated(&mut self, to: WorkerId, message: Message) {
        let position = self.position();
        if !self.is_in_trouble() && self.committed() < position {
            self.durable.held.push_back((position, to, message));
        } else {
            self.send(to, message);
        }
    }

    /// Gates up to this have been passed.
    pub fn passed(&self) -> u64 {
        self.committed()
    }

    /// What waits for the log may wait for long. Whoever would be answered is
    /// told that nobody knows the outcome; what only tells of data goes now,
    /// as it would from here on; what says that something is committed waits.
    pub(super) fn lose_held(&mut self, now: Now, completions: &mut impl Completions) {
        let committed = self.committed();
        for (position, to, message) in std::mem::take(&mut self.durable.held) {
            let told = match message {
                message if position <= committed => message,
                Message::Replies(batch) => Message::Lost(batch),
                Message::Committed { multi } => {
                    let message = Message::Committed { multi };
                    self.durable.held.push_back((position, to, message));
                    Message::Doubtful { multi }
                }
                message => message,
            };
            if to == self.id {
                self.take(now, to, told, completions);
            } else {
                self.send(to, told);
            }
        }
    }

    pub(super) fn on_lost(&mut self, batch: &Batch, completions: &mut impl Completions) {
        let answered = batch.requests.iter().filter(|r| !r.reply.later);
        answered.for_each(|r| completions.lose(&r.header));
    }

    /// The client of a command over workers is not answered; its keys stay
    /// held until it is committed.
    pub(super) fn on_doubtful(&mut self, multi: u64, completions: &mut impl Completions) {
        let Some(committing) = self.committing.get(&multi) else {
            return;
        };
        let requests = committing.replies.requests.iter();
        if committing.origin == self.id {
            return requests.for_each(|r| completions.lose(&r.header));
        }
        let mut lost = Box::<Batch>::default();
        requests.for_each(|r| lost.push_reply(r.header, Output::default()));
        self.send(committing.origin, Message::Lost(lost));
    }

    /// Where there is no log, a frame that no chain has to have is committed as
    /// soon as it has ended.
    pub(super) fn send_to_others(&mut self) {
        let committed = self.committed();
        while let Some(&(position, to, _)) = self.durable.held.front()
            && position <= committed
            && to != self.id
            && let Some((_, to, message)) = self.durable.held.pop_front()
        {
            self.send(to, message);
        }
    }

    /// Whether something waits that need not any more.
    pub(super) fn has_passed(&self) -> bool {
        let held = self.durable.held.front();
        held.is_some_and(|(position, ..)| *position <= self.committed())
    }

    pub(super) fn send_held(&mut self, now: Now, completions: &mut impl Completions) {
        let committed = self.committed();
        while let Some(&(position, ..)) = self.durable.held.front()
            && position <= committed
            && let Some((_, to, message)) = self.durable.held.pop_front()
        {
            if to == self.id {
                self.take(now, to, message, completions);
            } else {
                self.send(to, message);
            }
        }
    }
}
