//! Requests and replies between workers, many in one message.

use super::chains::{Fate, Item};
use super::{Message, Outcome, Work, Worker};
use crate::batch::{Batch, Header, ReplyRange, Request, Status};
use crate::lock::Scope;
use crate::planted::{self, Planted};
use crate::program::Program;
use rufous_base::{Args, Now, Output, Until, WorkerId};
use std::collections::BTreeMap;

/// A request that has run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran<'a> {
    /// The slots of its strict keys.
    pub(super) slots: &'a [u16],
    pub(super) origin: WorkerId,
    /// Where its reply begins in the output.
    pub(super) start: (usize, usize),
}

impl<P: Program> Worker<P> {
    pub(super) fn forward(&mut self, owner: WorkerId, header: &Header, args: Args<'_>) {
        let mark = self.table_mark();
        let until = self.until([args.get(usize::from(header.key))]);
        self.out.mail.collect(owner, until, |batch| {
            batch.push(*header, args);
            batch.judged_by(mark);
        });
    }

    pub(super) fn send(&mut self, to: WorkerId, message: Message) {
        self.out.send(to, message);
    }

    pub(super) fn batch_of(&mut self, header: &Header, args: Args<'_>) -> Box<Batch> {
        let mut batch = self.out.mail.batch();
        batch.push(*header, args);
        batch.judged_by(self.table_mark());
        batch
    }

    /// Takes back a batch whose outcomes were handled.
    pub fn recycle(&mut self, batch: Box<Batch>) {
        self.out.mail.recycle(batch);
    }

    pub(super) fn park(&mut self, scope: Scope, header: &Header, args: Args<'_>, origin: WorkerId) {
        self.park_judged(scope, header, args, (origin, self.table_mark()));
    }

    /// Parks a request that was checked by the given table.
    fn park_judged(
        &mut self,
        scope: Scope,
        header: &Header,
        args: Args<'_>,
        (origin, table): (WorkerId, u16),
    ) {
        let until = self.until(scope.names());
        let mut batch = self.batch_of(header, args);
        batch.judged_by(table);
        batch.until = until;
        self.locks.acquire(scope, Work::Run { batch, origin });
    }

    /// Prefetches the data of the batch into the cache, then executes it.
    pub(super) fn on_requests(
        &mut self,
        now: Now,
        from: WorkerId,
        mut batch: Box<Batch>,
    ) -> Box<Batch> {
        self.warm.clear();
        for request in &batch.requests {
            self.warm.push(
                self.shard
                    .warm_index(usize::from(request.header.db), request.header.hash),
            );
        }
        for (request, &warm) in batch.requests.iter().zip(&self.warm) {
            self.shard.warm_record(usize::from(request.header.db), warm);
        }
        for index in 0..batch.requests.len() {
            let is_stale = batch.requests[index].table != self.table_mark();
            let (header, args, out) = batch.parts(index);
            let start = out.mark();
            let key = usize::from(header.key);
            let held = !self.locks.is_idle() && self.locks.blocks(header.db, args.get(key));
            let named = |args: &Args<'_>| vec![(header.db, args.get(key).into())];
            let slots = self.slots_of([args.get(key)]);
            let status = if held {
                let table = batch.requests[index].table;
                let (header, args, _) = batch.parts(index);
                self.park_judged(Scope::keys(named(&args)), &header, args, (from, table));
                Status::Later
            } else if is_stale
                && store!(self).refuses_stale::<P>(
                    from,
                    &header,
                    &args,
                    [args.get(key)].into_iter(),
                    out,
                )
            {
                Status::Ready
            } else {
                let status = self.run_or_wait(now, &header, args, from, named, out);
                let out = &mut batch.replies;
                let ran = Ran {
                    slots: &slots,
                    origin: from,
                    start,
                };
                if status == Status::Ready && self.withholds(ran, &header, out) {
                    Status::Later
                } else {
                    status
                }
            };
            let end = batch.replies.mark();
            batch.requests[index].reply = ReplyRange { start, end, status };
        }
        batch
    }

    pub(super) fn on_replies(&mut self, batch: Box<Batch>) {
        if !self.waits.clients().is_empty() {
            let answered = |request: &&Request| !request.reply.is_later();
            for request in batch.requests.iter().filter(answered) {
                self.waits
                    .on_answered(&request.header, &mut store!(self), &mut self.out);
            }
        }
        self.out.outcomes.push_back(Outcome::Replies(batch));
    }

    /// Sends a message, which may be to this worker, once all copies of these slots have what was
    /// written to them so far.
    pub(super) fn send_after(
        &mut self,
        now: Now,
        slots: &[u16],
        to: WorkerId,
        (until, message): (Until, Message),
    ) {
        let journaled = self.journaled();
        match &mut self.chains {
            Some(chains) if chains.awaits(slots, journaled) => {
                chains.withhold(slots, Item::Message(to, (until, message)));
            }
            _ => self.pass_on(now, to, (until, message)),
        }
    }

    /// The length of the journal, as replies see it.
    #[inline]
    fn journaled(&mut self) -> usize {
        if planted::is(Planted::ExpiryNotAwaited) && !self.shard.observers().journal_tells() {
            return 0;
        }
        self.shard.journal().len()
    }

    /// Sends a message that waits for no copies.
    fn pass_on(&mut self, now: Now, to: WorkerId, (until, message): (Until, Message)) {
        match message {
            Message::Replies(batch) if to == self.id => self.on_replies(batch),
            message => self.send_committed(now, to, (until, message)),
        }
    }

    /// Keeps the reply to a request, if it depends on writes that not all copies have.
    #[inline]
    pub(super) fn withholds(&mut self, ran: Ran<'_>, header: &Header, out: &mut Output) -> bool {
        let Ran {
            slots,
            origin,
            start,
        } = ran;
        if slots.is_empty() {
            return false;
        }
        let journaled = self.journaled();
        let chains = self.chains.as_deref_mut();
        let Some(chains) = chains.filter(|chains| chains.awaits(slots, journaled)) else {
            return false;
        };
        let mut reply = Output::default();
        reply.append_range(out, start, out.mark());
        out.truncate(start);
        let header = *header;
        let item = Item::Reply {
            origin,
            header,
            reply,
        };
        chains.withhold(slots, item);
        true
    }

    /// Keeps the reply to commands on these keys, which the embedder has run here and appended from
    /// `start` on, if it depends on writes that not all copies have: it is an [`Outcome`] then.
    pub fn keeps_reply<'k>(
        &mut self,
        header: &Header,
        keys: impl Iterator<Item = &'k [u8]>,
        start: (usize, usize),
        out: &mut Output,
    ) -> bool {
        let slots = self.slots_of(keys);
        let ran = Ran {
            slots: &slots,
            origin: self.id,
            start,
        };
        self.withholds(ran, header, out)
    }

    /// Sends what no longer waits for copies.
    #[inline]
    pub(super) fn answer_released(&mut self, now: Now) {
        if self.chains.as_ref().is_some_and(|c| c.has_released()) {
            self.send_released(now);
        }
    }

    fn send_released(&mut self, now: Now) {
        let chains = self.chains.as_mut();
        let released = chains.map_or_else(Vec::new, |chains| chains.take_released());
        let mut replies = BTreeMap::<WorkerId, Box<Batch>>::new();
        let mut lost = BTreeMap::<WorkerId, Box<Batch>>::new();
        for (item, fate) in released {
            let of = match fate {
                Fate::Acknowledged => &mut replies,
                Fate::Lost => &mut lost,
            };
            match item {
                Item::Reply {
                    origin,
                    header,
                    reply,
                } => {
                    let batch = of.entry(origin).or_insert_with(|| self.out.mail.batch());
                    batch.add_reply(header, &reply);
                }
                Item::Message(to, message) if fate == Fate::Acknowledged => {
                    self.pass_on(now, to, message);
                }
                Item::Message(to, (_, message)) => self.send_lost(now, to, message),
            }
        }
        for (to, batch) in replies {
            self.pass_on(now, to, (Until::Logged, Message::Replies(batch)));
        }
        for (to, batch) in lost {
            self.send_now(now, to, Message::Lost(batch));
        }
    }

    pub(super) fn send_now(&mut self, now: Now, to: WorkerId, message: Message) {
        if to == self.id {
            self.take(now, to, message);
        } else {
            self.send(to, message);
        }
    }

    /// A message depends on a slot that this node has left: what it says may not be so.
    fn send_lost(&mut self, now: Now, to: WorkerId, message: Message) {
        match message {
            Message::Replies(batch) => self.send_now(now, to, Message::Lost(batch)),
            Message::Committed { multi } => {
                self.send_now(now, to, Message::Doubtful { multi });
                self.send_now(now, to, Message::Committed { multi });
            }
            Message::Acquired {
                multi,
                ticket,
                mut hold,
            } => {
                hold.on_lost();
                let message = Message::Acquired {
                    multi,
                    ticket,
                    hold,
                };
                self.send_now(now, to, message);
            }
            // It is sent again, if it is still so.
            Message::Post(_) => {}
            message => self.send_now(now, to, message),
        }
    }

    /// The slots of the strict keys among these, if other nodes may have copies of any.
    #[inline]
    pub(super) fn slots_of<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Vec<u16> {
        match &self.chains {
            Some(chains) => chains.slots_of(keys, &self.placement),
            None => Vec::new(),
        }
    }

    pub(super) fn answer(&mut self, now: Now, origin: WorkerId, batch: Box<Batch>) {
        if origin == self.id {
            self.on_replies(batch);
        } else {
            let until = batch.until;
            self.send_committed(now, origin, (until, Message::Replies(batch)));
        }
    }
}
