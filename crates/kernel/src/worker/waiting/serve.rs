//! Serving the waiters for touched keys.

use super::queues::WaiterId;
use super::{Reach, Told, Waits};
use crate::batch::Batch;
use crate::lock::KeyName;
use crate::multi::Gathered;
use crate::planted::{self, Planted};
use crate::program::{Program, Wait};
use crate::worker::store::Store;
use rufous_base::{Now, WorkerId};

/// A waiter's request to execute now.
#[derive(Debug)]
pub(in crate::worker) enum Serve {
    /// On this worker's keys; then [`Waits::on_ran`].
    Here(WaiterId, Box<Batch>),
    /// As a command over several workers, whose keys these are; then [`Waits::on_ran_over`].
    Over(WaiterId, Box<Batch>, Vec<(WorkerId, KeyName)>),
}

/// What to do about a waiter.
enum Then {
    Serve(Serve),
    /// The waiters behind it may be considered.
    Pass,
    /// They may not.
    Stop,
}

impl Waits {
    /// While `hold` is set, no waiter is served; the keys that they wait for stay on the shard's
    /// list.
    pub(in crate::worker) fn hold(&mut self, hold: bool) {
        self.on_hold = hold;
    }

    /// A hold is about to end: the keys that it kept from being inspected may be.
    pub(in crate::worker) fn on_release(&mut self, store: &mut Store<'_>) {
        for (db, bytes) in std::mem::take(&mut self.held) {
            let key = store.shard.key(&bytes);
            store.shard.observers_mut().touch_awaited(db, key);
        }
    }

    /// The next waiter for a touched key that can be served. To be called until there is none,
    /// before any other command is executed. `is_held`: whether another command holds a key.
    #[cold]
    pub(in crate::worker) fn next<P: Program>(
        &mut self,
        now: Now,
        is_held: impl Fn(&KeyName) -> bool,
        store: &mut Store<'_>,
    ) -> Option<Serve> {
        while !self.on_hold {
            let (key, after) = match self.serving.take() {
                Some((key, after)) => (key, Some(after)),
                None => (store.shard.observers_mut().next_touched()?, None),
            };
            let is_new = after.is_none();
            if is_new && planted::is(Planted::LostWakeUp) && planted::now_and_then() {
                continue;
            }
            let serve = self.next_at::<P>(now, (key, after), &is_held, store);
            if serve.is_some() {
                return serve;
            }
        }
        None
    }

    fn next_at<P: Program>(
        &mut self,
        now: Now,
        (key, mut after): (KeyName, Option<WaiterId>),
        is_held: &impl Fn(&KeyName) -> bool,
        store: &mut Store<'_>,
    ) -> Option<Serve> {
        while let Some(mut id) = self.queues.next_at(&key, after) {
            if planted::is(Planted::LaterFirst) {
                id = self.queues.next_at(&key, Some(id)).unwrap_or(id);
            }
            if is_held(&key) {
                // Even whether the key exists may not be checked.
                self.held.insert(key);
                return None;
            }
            let name = store.shard.key(&key.1);
            if !store.shard.contains(usize::from(key.0), name, now) {
                return None;
            }
            match self.consider::<P>(now, id, &key, is_held, store) {
                Then::Pass => after = Some(id),
                Then::Stop => return None,
                Then::Serve(serve) => {
                    if let Serve::Here(..) = serve {
                        self.serving = Some((key, id));
                    }
                    return Some(serve);
                }
            }
        }
        None
    }

    fn consider<P: Program>(
        &mut self,
        now: Now,
        id: WaiterId,
        key: &KeyName,
        is_held: &impl Fn(&KeyName) -> bool,
        store: &mut Store<'_>,
    ) -> Then {
        let Some(waiter) = self.queues.get_mut(id) else {
            return Then::Pass;
        };
        let Some(mut batch) = waiter.batch.take() else {
            // It runs as a command over several workers, after which the key is touched again.
            return Then::Stop;
        };
        let (header, args, _) = batch.parts(0);
        let place = (usize::from(key.0), store.shard.key(&key.1));
        if waiter.claim.is_taken() || !P::is_ready(header.command, store.shard, place, &args, now) {
            waiter.batch = Some(batch);
            return Then::Pass;
        }
        match &waiter.reach {
            Reach::Over(keys) => Then::Serve(Serve::Over(id, batch, keys.clone())),
            Reach::Here(keys) if keys.iter().any(is_held) => {
                waiter.batch = Some(batch);
                self.held.insert(key.clone());
                Then::Stop
            }
            Reach::Here(_) => {
                if P::is_write(header.command) && !waiter.claim.take() {
                    self.remove(id, store);
                    return Then::Pass;
                }
                Then::Serve(Serve::Here(id, batch))
            }
        }
    }

    /// A waiter's request was executed here. A read may have found no data, and then waits on.
    pub(in crate::worker) fn on_ran<P: Program>(
        &mut self,
        id: WaiterId,
        mut batch: Box<Batch>,
        wait: Option<Wait>,
        store: &mut Store<'_>,
    ) {
        let Some(waiter) = self.queues.get_mut(id) else {
            return;
        };
        let command = batch.requests.first().map_or(0, |r| r.header.command);
        let writes = P::is_write(command);
        debug_assert!(wait.is_none() || !writes, "what is ready does not wait");
        if wait.is_some() && !writes {
            batch.replies.clear();
            waiter.batch = Some(batch);
            return;
        }
        // The claim of a write was taken before.
        let served = writes || waiter.claim.take();
        let origin = waiter.client.origin;
        self.remove(id, store);
        if served {
            self.told.push_back((origin, Told::Served(batch)));
        }
    }

    /// A waiter's request was executed as a command over several workers, on these keys. Returns
    /// the worker to reply to; where there is none, the changes are dropped.
    pub(in crate::worker) fn on_ran_over(
        &mut self,
        id: WaiterId,
        batch: &mut Box<Batch>,
        wait: Option<Wait>,
        gathered: &[Gathered],
        store: &mut Store<'_>,
    ) -> Option<WorkerId> {
        // Whatever the result, the waiters behind it may be considered.
        for g in gathered.iter().filter(|g| g.owner == store.id) {
            let key = store.shard.key(&g.key.1);
            store.shard.observers_mut().touch_awaited(g.key.0, key);
        }
        let waiter = self.queues.get_mut(id)?;
        if wait.is_some() {
            batch.replies.clear();
            waiter.batch = Some(std::mem::take(batch));
            return None;
        }
        let waiter = self.remove(id, store)?;
        waiter.claim.take().then_some(waiter.client.origin)
    }

    /// A waiter's request was refused; the batch has the reply.
    pub(in crate::worker) fn on_refused(
        &mut self,
        id: WaiterId,
        batch: Box<Batch>,
        store: &mut Store<'_>,
    ) {
        if let Some(waiter) = self.remove(id, store)
            && waiter.claim.take()
        {
            let origin = waiter.client.origin;
            self.told.push_back((origin, Told::Served(batch)));
        }
    }
}
