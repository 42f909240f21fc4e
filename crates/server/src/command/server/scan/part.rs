//! What one worker adds to the reply to SCAN.

use super::cursor::Cursor;
use super::filter::Filter;
use crate::front::listing::Scope;
use crate::front::local::Local;
use rufous_base::Now;
use rufous_kernel::shard::{ListStep, Listing};
use rufous_resp::encode;

/// Keys of one walk at one worker.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) visited: usize,
    pub(super) matched: usize,
    /// The matches as elements of the reply.
    pub(super) encoded: Vec<u8>,
    /// Of matching lattice keys the hash, and the end of the element.
    pub(super) places: Vec<(u32, usize)>,
    /// Where this worker's walk goes on; `None` where it ended.
    pub(super) next: Option<u32>,
}

/// The parts of one worker.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) strict: Part,
    pub(super) lattice: Part,
}

/// How far a walk goes in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// To about as many keys as are wanted.
    Count,
    /// To the end, if that is not more; or nowhere.
    All,
}

/// The question to a worker.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) db: usize,
    pub(super) scope: Scope,
    pub(super) cursor: Cursor,
    /// Whether lattice keys follow the strict ones.
    pub(super) then_lattice: bool,
    pub(super) filter: Filter,
}

impl Question {
    /// The next keys of the walk whose turn it is; of those behind it, all their keys, or none where these are many.
    pub(super) fn parts(&self, local: &mut Local<'_>, now: Now) -> Parts {
        let lattice = |at| self.step(at, self.scope.lattice());
        if self.cursor.is_lattice() {
            let lattice = self.walk(local, now, lattice(self.cursor.at), Extent::Count);
            return Parts {
                lattice,
                ..Parts::default()
            };
        }
        let mut parts = Parts::default();
        let worker = u32::from(local.id().0);
        let (at, extent) = if worker == self.cursor.worker {
            (self.cursor.at, Extent::Count)
        } else {
            (0, Extent::All)
        };
        if worker >= self.cursor.worker {
            let step = self.step(at, Listing::STRICT);
            parts.strict = self.walk(local, now, step, extent);
        }
        if self.then_lattice {
            parts.lattice = self.walk(local, now, lattice(0), Extent::All);
        }
        parts
    }

    fn step(&self, cursor: u32, listing: Listing) -> ListStep {
        ListStep {
            db: self.db,
            cursor,
            count: self.filter.count,
            listing,
        }
    }

    fn walk(&self, local: &mut Local<'_>, now: Now, step: ListStep, extent: Extent) -> Part {
        let (filter, mut part) = (&self.filter, Part::default());
        if !local.may_list(self.db, step.listing) {
            return part;
        }
        part.next = Some(step.cursor);
        if extent == Extent::All && local.len_with_replicas(self.db) > filter.count {
            return part;
        }
        while let Some(cursor) = part.next {
            let count = filter.count.saturating_sub(part.visited).max(1);
            let step = ListStep {
                cursor,
                count,
                ..step
            };
            part.next = local.scan(step, now, &mut |hash, item| {
                part.visited += 1;
                if filter.matches(&item) {
                    part.matched += 1;
                    encode::bulk(&mut part.encoded, item.key);
                    if step.listing.lattice.is_some() {
                        part.places.push((hash, part.encoded.len()));
                    }
                }
            });
            if extent == Extent::Count {
                break;
            }
        }
        part
    }
}
