//! Expired records: absent for every access, and removed at an access or in the order of their times. Where copies of
//! a slot are at several nodes, the node that answers for it decides: its clock alone says when a record has expired,
//! and the others show the record until they have its removal.

use super::db::Db;
use super::env::Env;
use super::record::Head;
use super::records::Found;
use super::replica::LocalReplica;
use super::types::Key;
use crate::planted::{self, Planted};
use rufous_base::Now;

impl Db {
    /// Whether a record has expired by this reading of the wall clock.
    #[inline]
    pub(super) fn is_due(&self, handle: u32, now_ms: u64, env: &Env) -> bool {
        let slot = self.records.slot(handle);
        Head::of(slot).is_due(slot, now_ms)
            && (env.lattice.ahead_ms == 0 || self.is_due_yet(handle, now_ms, env.lattice.ahead_ms))
    }

    /// The same on a wall clock that has jumped ahead, by which replicated keys do not expire.
    #[cold]
    fn is_due_yet(&self, handle: u32, now_ms: u64, ahead_ms: u64) -> bool {
        let slot = self.records.slot(handle);
        let now_ms = now_ms.saturating_sub(ahead_ms);
        !self.records.is_replicated(handle) || Head::of(slot).is_due(slot, now_ms)
    }

    /// Finds a record that has not expired. An expired one is removed, except for elements that were added after its
    /// expiry.
    pub(super) fn live(&mut self, key: Key<'_>, now: Now, env: &mut Env) -> Option<Found> {
        let mut found = self.live_at(key, now.unix_ms(), env)?;
        let later = env.lattice.time_ms(now);
        // Deadlines of replicated keys count from the clock of the stamps, if that leads the wall clock.
        while later > now.unix_ms() && self.is_due(found.handle, later, env) {
            if !self.records.is_replicated(found.handle) {
                break;
            }
            self.expire_one(found, key.hash, env);
            found = self.records.find(key)?;
        }
        Some(found)
    }

    pub(super) fn live_at(&mut self, key: Key<'_>, now_ms: u64, env: &mut Env) -> Option<Found> {
        let mut found = self.records.find(key)?;
        // Each of several concurrent values has its own expiry.
        while self.is_due(found.handle, now_ms, env) {
            if self.is_guest(found.handle, env) {
                return (!planted::is(Planted::CopyExpires)).then_some(found);
            }
            self.expire_one(found, key.hash, env);
            found = self.records.find(key)?;
        }
        Some(found)
    }

    /// Before a change of the key: removes it if it has expired; otherwise writes its state to a snapshot under way.
    pub(super) fn prepare(&mut self, key: Key<'_>, now: Now, env: &mut Env) -> Option<Found> {
        let found = self.live(key, now, env)?;
        env.snapshot.capture(self, found.handle);
        Some(found)
    }

    #[cold]
    pub(super) fn expire_one(&mut self, found: Found, hash: u32, env: &mut Env) {
        if self.records.is_replicated(found.handle) {
            let bytes: Box<[u8]> = self.records.key(found.handle).into();
            let key = Key {
                bytes: &bytes,
                hash,
            };
            return LocalReplica::new(self, env, key).expire(found);
        }
        if env.observers.any() {
            let before = env.observers.journal.bytes().len();
            env.tell_removal(self, found.handle, hash);
            // A node that starts again judges the time once more, but a copy at another node would show the record
            // again: there replies wait for the removal.
            if !env.guests.any() || planted::is(Planted::ExpiryNotAwaited) {
                env.observers.journal.set_aside(before);
            }
        }
        self.expire_untold(found, hash, env);
    }

    /// Removes an expired record without an effect, if the effect that follows implies it.
    #[cold]
    pub(super) fn expire_untold(&mut self, found: Found, hash: u32, env: &mut Env) {
        env.counters.expired += 1;
        env.counters.changes += 1;
        self.remove(found, hash, &mut env.garbage);
    }

    /// Removes due records, soonest first, at most `budget` of them. Returns
    /// whether the budget ended it.
    pub(super) fn expire(&mut self, now_ms: u64, budget: &mut usize, env: &mut Env) -> bool {
        // There may be many keys that are due and stay: other nodes decide their removal, or the clock has jumped.
        let may_skip = env.guests.any() || env.lattice.ahead_ms > 0;
        let mut next = self.deadlines.first();
        let mut removed = false;
        while let Some((at, hash)) = next {
            if at > now_ms {
                return false;
            }
            if *budget == 0 {
                return removed || !may_skip;
            }
            *budget -= 1;
            let is_it = |handle| self.records.expiry(handle) == Some(at);
            let found = self
                .records
                .find_where(hash, is_it)
                // invariant: a key leaves index and expiry order together
                .expect("a pair stands for a record");
            if self.is_guest(found.handle, env) || !self.is_due(found.handle, now_ms, env) {
                next = self.deadlines.after(at, hash);
                continue;
            }
            removed = true;
            self.expire_one(found, hash, env);
            next = if may_skip {
                self.deadlines.from(at, hash)
            } else {
                self.deadlines.first()
            };
        }
        false
    }

    pub(super) fn expire_entry(&mut self, hash: u32, handle: u32, env: &mut Env) {
        if let Some(found) = self.records.find_where(hash, |h| h == handle)
            && !self.is_guest(handle, env)
        {
            self.expire_one(found, hash, env);
        }
    }
}
