//! Requests and replies between workers, many in one message.

use super::{Message, Outcome, Work, Worker};
use crate::batch::{Batch, Header, ReplyRange, Request, Status};
use crate::lock::Scope;
use crate::program::Program;
use rufous_base::{Args, Now, WorkerId};

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
                self.run_or_wait(now, &header, args, from, named, out)
            };
            let end = batch.replies.mark();
            batch.requests[index].reply = ReplyRange { start, end, status };
        }
        batch
    }

    pub(super) fn on_replies(&mut self, batch: Box<Batch>) {
        if !self.waits.clients().is_empty() {
            let answered = |request: &&Request| request.reply.status == Status::Ready;
            for request in batch.requests.iter().filter(answered) {
                self.waits
                    .on_answered(&request.header, &mut store!(self), &mut self.out);
            }
        }
        self.out.outcomes.push_back(Outcome::Replies(batch));
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
