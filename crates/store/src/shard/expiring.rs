//! Expired records: absent for every access, and removed at an access or in the order of their times. Where copies of
//! a slot are at several nodes, the node that answers for it decides: its clock alone says when a record has expired,
//! and the others show the record until they have its removal.

use super::Env;
use super::db::{Db, Found};
use super::types::Key;
use crate::planted::{self, Planted};
use rufous_base::Now;

impl Db {
    /// Finds a record that has not expired. An expired one is removed, except for elements that were added after its
    /// expiry.
    pub(super) fn live(&mut self, key: Key<'_>, now: Now, env: &mut Env) -> Option<Found> {
        let mut found = self.live_at(key, now.unix_ms(), env)?;
        let later = env.lattice.time_ms(now);
        // Deadlines of replicated keys count from the clock of the stamps, if that leads the wall clock.
        while later > now.unix_ms() && self.is_due(found.handle, later) {
            if !self.is_replicated(found.handle) {
                break;
            }
            self.expire_one(found, key.hash, env);
            found = self.find(key)?;
        }
        Some(found)
    }

    pub(super) fn live_at(&mut self, key: Key<'_>, now_ms: u64, env: &mut Env) -> Option<Found> {
        let mut found = self.find(key)?;
        // Each of several concurrent values has its own expiry.
        while self.is_due(found.handle, now_ms) {
            if self.is_guest(found.handle, env) {
                return (!planted::is(Planted::CopyExpires)).then_some(found);
            }
            self.expire_one(found, key.hash, env);
            found = self.find(key)?;
        }
        Some(found)
    }

    #[cold]
    pub(super) fn expire_one(&mut self, found: Found, hash: u32, env: &mut Env) {
        if self.is_replicated(found.handle) {
            return self.expire_replica(found, hash, env);
        }
        if env.observers.any() {
            let before = env.observers.journal.bytes().len();
            self.tell_removal(found.handle, hash, env);
            // A node that starts again judges the time once more, but a copy at another node would show the record
            // again: there replies wait for the removal.
            if !env.has_guests() || planted::is(Planted::ExpiryNotAwaited) {
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
        self.remove(found, hash, env);
    }

    /// Removes due records, soonest first, at most `budget` of them. Returns
    /// whether the budget ended it.
    pub(super) fn expire(&mut self, now_ms: u64, budget: &mut usize, env: &mut Env) -> bool {
        let mut next = self.expiry.first();
        let mut removed = false;
        while let Some((at, hash)) = next {
            if at > now_ms {
                return false;
            }
            if *budget == 0 {
                // There may be many keys that are due and stay: other nodes decide their removal, or the clock has jumped.
                return removed || env.guests.is_none() && self.ahead_ms == 0;
            }
            *budget -= 1;
            let is_it = |handle| self.expiry_of(handle) == Some(at);
            let (position, handle) = self
                .index
                .find(hash, is_it)
                // invariant: a key leaves index and expiry order together
                .expect("a pair stands for a record");
            if self.is_guest(handle, env) || !self.is_due(handle, now_ms) {
                next = self.expiry.after(at, hash);
                continue;
            }
            removed = true;
            self.expire_one(Found { position, handle }, hash, env);
            let may_skip = env.guests.is_some() || self.ahead_ms > 0;
            next = if may_skip {
                self.expiry.from(at, hash)
            } else {
                self.expiry.first()
            };
        }
        false
    }

    pub(super) fn expire_entry(&mut self, hash: u32, handle: u32, env: &mut Env) {
        if let Some((position, handle)) = self.index.find(hash, |h| h == handle)
            && !self.is_guest(handle, env)
        {
            self.expire_one(Found { position, handle }, hash, env);
        }
    }
}
