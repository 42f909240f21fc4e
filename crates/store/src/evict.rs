//! The memory limit: which keys are evicted when the node's data exceeds it.
//!
//! Each worker publishes the charge of its data ([`Ledger`]) and may use what the other workers leave of the limit. A
//! command that may grow the data makes room before it runs, with work in proportion to the growth. What a lowered
//! limit or other workers ask for is evicted in bounded slices, at ticks. While another worker is above its share of
//! the limit and can evict, a worker below its own share keeps its keys and asks that worker to make room.
//!
//! Published charges are read and written once per step, not per command: the limit can be exceeded by what all
//! workers add within one step, and by the one command that crosses it.
//!
//! - [`ledger`]: the charges that workers publish
//! - [`choice`]: finding the key with the least value
//! - [`retiring`]: replicated keys, which the worker deletes as a client would

pub mod choice;
pub mod ledger;
mod retiring;
#[cfg(test)]
mod tests;

pub use choice::{By, Choice};
pub use ledger::Ledger;
pub use retiring::Chosen;

use crate::shard::{Drawn, Eviction, Shard};
use choice::{Drawing, Pool};
use retiring::Retiring;
use rufous_base::Now;
use rufous_base::rng::Rng;
use std::sync::Arc;

/// The most keys that one command evicts, unless the data grew by much.
const COMMAND_KEYS: usize = 64;
/// The most keys that one slice at a tick evicts.
const SLICE_KEYS: usize = 256;
/// Growth that is not yet balanced by evictions may be this part of the limit; beyond it, commands evict however long
/// it takes.
const OWED_SHARE: usize = 8;

/// The settings of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the whole node; 0: no limit.
    pub bytes: usize,
    /// `None`: nothing is evicted.
    pub choice: Option<Choice>,
    /// Keys that are compared for each eviction.
    pub samples: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bytes: 0,
            choice: None,
            samples: 5,
        }
    }
}

/// A worker's eviction counters. They never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub evicted: u64,
    /// Of these, keys that had replicas elsewhere.
    pub retired: u64,
    /// Commands refused because there was no room.
    pub refused: u64,
}

/// Whether a command may grow the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Enough,
    /// The limit is exceeded, and this worker can evict nothing.
    None,
}

/// Tombstones up to this part of the limit count as free: they are forgotten when all replicas know of them.
const GRAVES_SHARE: usize = 4;

/// How a key may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    Evict,
    /// It has so many replicas at this node, and is to be deleted at all of them.
    Retire(usize),
}

/// What the worker says of a key that might be evicted; `None` if it stays.
pub type Judged = Option<May>;

/// One worker's part of enforcing the limit.
#[derive(Debug)]
pub struct Evictor {
    ledger: Arc<Ledger>,
    worker: usize,
    settings: Settings,
    /// Whether there is a limit: the only check on the common path.
    armed: bool,
    /// The charge of the other workers, as of this step.
    others: usize,
    /// The charge down to which this worker evicts.
    target: usize,
    /// Another worker can evict.
    others_can: bool,
    /// Another worker that is above its share can evict. So this one may grow to its target, although that is more
    /// than the others leave of the limit.
    borrows: bool,
    /// Another worker asked for room: this one evicts below its share, too.
    asked: bool,
    /// This worker is about to ask the others.
    asks: bool,
    pool: Pool,
    retiring: Retiring,
    /// The charge at the last check, to compute the growth since then.
    seen: usize,
    /// Bytes that commands still have to evict: one and a half times the growth.
    owed: usize,
    rng: Rng,
    counters: Counters,
}

impl Evictor {
    /// The evictor of one worker of the node with that ledger.
    pub fn new(ledger: Arc<Ledger>, worker: usize, seed: u64) -> Self {
        Self {
            ledger,
            worker,
            settings: Settings::default(),
            armed: false,
            others: 0,
            target: usize::MAX,
            others_can: false,
            borrows: false,
            asked: false,
            asks: false,
            pool: Pool::default(),
            retiring: Retiring::default(),
            seen: 0,
            owed: 0,
            rng: Rng::new(seed ^ 0x45_7669_6374),
            counters: Counters::default(),
        }
    }

    /// Sets the ledger that is shared with the node's other workers.
    pub fn set_ledger(&mut self, ledger: Arc<Ledger>) {
        self.ledger = ledger;
    }

    pub fn configure(&mut self, settings: Settings, shard: &Shard) {
        if settings.choice != self.settings.choice {
            self.pool.clear();
        }
        self.settings = settings;
        self.armed = settings.bytes > 0;
        self.owed = 0;
        self.seen = shard.charged();
        self.publish(shard);
        self.look();
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    #[inline(always)]
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    /// Reads the charges of the other workers. To be called at the start of each step if there is a limit.
    pub fn look(&mut self) {
        if !self.armed {
            return;
        }
        let share = self.settings.bytes / self.ledger.workers();
        let others = self.ledger.others(self.worker, share);
        self.others = others.charge;
        self.others_can = others.can_evict;
        self.borrows = others.above_share_can && !self.asked;
        self.target = self.settings.bytes.saturating_sub(self.others);
        if self.borrows {
            let most = self.target.saturating_add(self.loan());
            self.target = share.min(most).max(self.target);
        }
    }

    /// Whether the node is within the limit if this worker is charged with `used`.
    #[inline]
    fn fits(&self, used: usize) -> bool {
        used.saturating_add(self.others) <= self.settings.bytes + self.retiring.credit()
    }

    /// The charge without tombstones, but for those beyond their share of the limit.
    fn used(&self, shard: &Shard) -> usize {
        let most = self.settings.bytes / GRAVES_SHARE / self.ledger.workers();
        shard.charged() - shard.graves_bytes().min(most)
    }

    /// The charge down to which this worker evicts, with what will be free shortly.
    fn goal(&self) -> usize {
        self.target.saturating_add(self.retiring.credit())
    }

    /// Publishes this worker's charge. To be called when a step ends, before its messages leave.
    pub fn publish(&mut self, shard: &Shard) {
        let can = self
            .settings
            .choice
            .is_some_and(|choice| self.armed && shard.draws().can_draw(choice.volatile));
        let charge = self.used(shard).saturating_sub(self.retiring.credit());
        self.ledger.publish(self.worker, charge, can);
    }

    /// Replicated keys that were chosen to be evicted: the worker deletes them, as a client would, and then calls
    /// [`Evictor::on_deleted`] or [`Evictor::on_kept`].
    pub fn take_chosen(&mut self) -> Vec<Chosen> {
        self.retiring.take()
    }

    /// The keys that were taken are deleted. `until`: no stamp of these deletions has a later time.
    pub fn on_deleted(&mut self, now: Now, until: u64) {
        self.retiring.on_deleted(now, until);
    }

    /// All graves with stamps up to a time were forgotten.
    #[inline]
    pub fn settle(&mut self, now: Now, forgotten: u64) {
        self.retiring.settle(now, forgotten);
    }

    /// The keys that were taken cannot be deleted now.
    pub fn on_kept(&mut self) {
        self.retiring.on_kept();
    }

    /// Whether the others are to be asked for room ([`Evictor::on_asked`]); true only once per request.
    pub fn take_asks(&mut self) -> bool {
        std::mem::take(&mut self.asks)
    }

    /// Another worker has no room and nothing to evict, or is below its share.
    pub fn on_asked(&mut self) {
        self.asked = self.armed;
        self.look();
    }

    /// Makes room before a command that may grow the data. `judge` is called for every key that would be evicted.
    pub fn make_room(
        &mut self,
        shard: &mut Shard,
        now: Now,
        judge: impl FnMut(u8, &[u8]) -> Judged,
    ) -> Room {
        let used = shard.charged();
        let grown = used.saturating_sub(self.seen);
        self.seen = used;
        if self.fits(used) {
            self.owed = 0;
            return Room::Enough;
        }
        self.make_room_slowly(shard, grown, now, judge)
    }

    #[cold]
    fn make_room_slowly(
        &mut self,
        shard: &mut Shard,
        grown: usize,
        now: Now,
        judge: impl FnMut(u8, &[u8]) -> Judged,
    ) -> Room {
        let used = self.used(shard);
        if self.fits(used) {
            self.owed = 0;
            return Room::Enough;
        }
        if self.borrows && used <= self.goal() {
            self.asks = true;
            return Room::Enough;
        }
        self.owed += grown + grown / 2;
        // One large value may need the eviction of many small ones.
        let keys = COMMAND_KEYS + grown / 1024;
        let most_owed = (self.settings.bytes / OWED_SHARE).max(1 << 20);
        let floor = used.saturating_sub(self.owed.saturating_sub(most_owed));
        let (any, after) = self.evict(shard, used, now, judge, |evicted, used| {
            evicted >= keys && used <= floor
        });
        self.owed = self.owed.saturating_sub(used.saturating_sub(after));
        self.seen = shard.charged();
        if self.fits(after) {
            self.owed = 0;
        } else if !any {
            // A worker that borrows or has nothing to evict needs another worker to evict.
            let lent = self.borrows && after <= self.goal()
                || self.others_can && self.fits(after.saturating_sub(self.loan()));
            if !lent {
                self.counters.refused += 1;
                return Room::None;
            }
            self.asks = true;
        }
        Room::Enough
    }

    /// How far this worker may exceed what is left while another worker makes room.
    fn loan(&self) -> usize {
        self.settings.bytes / OWED_SHARE / self.ledger.workers()
    }

    /// Evicts a bounded slice if the limit is exceeded. Returns whether there is more to do.
    pub fn step(
        &mut self,
        shard: &mut Shard,
        now: Now,
        judge: impl FnMut(u8, &[u8]) -> Judged,
    ) -> bool {
        self.look();
        let used = self.used(shard);
        if !self.armed || used <= self.goal() {
            self.asked = false;
            return false;
        }
        let enough = |evicted, _| evicted >= SLICE_KEYS;
        let (any, used) = self.evict(shard, used, now, judge, enough);
        let charged = shard.charged();
        self.owed = self.owed.saturating_sub(self.seen.saturating_sub(charged));
        self.seen = self.seen.min(charged);
        let more = any && used > self.goal();
        self.asked &= more;
        more
    }

    /// Evicts a key, or chooses it to be deleted, if it is as it was drawn. Returns whether it goes.
    fn take(
        &mut self,
        shard: &mut Shard,
        drawn: Drawn,
        now: Now,
        may: &mut dyn FnMut(u8, &[u8]) -> Judged,
    ) -> bool {
        let mut judged = None;
        let keep = |key: &[u8]| {
            judged = may(drawn.db, key);
            judged.is_none()
        };
        match shard.evict(drawn, now, keep) {
            Eviction::Evicted => {
                self.counters.evicted += 1;
                true
            }
            Eviction::Expired => true,
            Eviction::Replicated(key, bytes) => {
                let replicas = match judged {
                    Some(May::Retire(replicas)) => replicas,
                    _ => 1,
                };
                let key = Chosen { db: drawn.db, key };
                let is_chosen = self.retiring.choose(key, bytes, replicas);
                self.counters.evicted += u64::from(is_chosen);
                self.counters.retired += u64::from(is_chosen);
                is_chosen
            }
            Eviction::Changed | Eviction::Kept => false,
        }
    }

    /// Evicts until the target is met, nothing is left, or `enough` returns true for the number of keys evicted and
    /// the charge. Returns whether any key was evicted, and the charge.
    fn evict(
        &mut self,
        shard: &mut Shard,
        mut used: usize,
        now: Now,
        mut judge: impl FnMut(u8, &[u8]) -> Judged,
        enough: impl Fn(usize, usize) -> bool,
    ) -> (bool, usize) {
        let Some(choice) = self.settings.choice else {
            return (false, used);
        };
        let (mut evicted, mut in_vain) = (0, 0);
        let workers = self.ledger.workers();
        let most_credit = self.settings.bytes / OWED_SHARE / workers;
        let most_graves = self.settings.bytes / GRAVES_SHARE / workers;
        let mut some_due = self.pool.is_stale();
        let drawing = Drawing {
            choice,
            samples: self.settings.samples.max(1),
        };
        loop {
            if used <= self.goal() || enough(evicted, used) {
                return (evicted > 0, used);
            }
            // A deletion makes nothing free where tombstones stay, as a node is away.
            let retires =
                shard.graves_bytes() < most_graves && self.retiring.credit() < most_credit;
            let mut may =
                |db: u8, key: &[u8]| judge(db, key).filter(|may| retires || *may == May::Evict);
            // Expired records that are not yet removed go first. They are looked for once per round of draws.
            let due = some_due.then(|| shard.draws().soonest()).flatten();
            let due = due.filter(|d| d.expire_at.is_some_and(|at| at <= now.unix_ms()));
            some_due &= due.is_some() && in_vain == 0;
            self.pool.set_some_stay(in_vain > 0);
            let drawn = due.or_else(|| {
                let mut is_good = |db: u8, key: &[u8]| may(db, key).is_some();
                let rng = &mut self.rng;
                self.pool.best(drawing, shard, now, rng, &mut is_good)
            });
            let Some(drawn) = drawn else {
                return (evicted > 0, used);
            };
            let is_gone = self.take(shard, drawn, now, &mut may);
            if is_gone {
                evicted += 1;
            } else {
                // Most keys that stay are protected for a short time only; others are drawn meanwhile.
                in_vain += 1;
                if in_vain > 256 + 4 * evicted {
                    return (evicted > 0, used);
                }
            }
            used = self.used(shard);
        }
    }
}
