//! Performs the work that operations on large collections have deferred.

use super::Shard;
use super::db::Db;
use rufous_datatype::object::Object;

impl Db {
    /// Notes a large collection with deferred work. Code that takes it out of the slab removes the note.
    pub(super) fn note_unswept(&mut self, number: u32) {
        if self.objects.get_mut(number).sweep(&mut 0) {
            self.unswept.insert(number);
        }
    }

    fn sweep(&mut self, budget: &mut usize) -> bool {
        while *budget > 0
            && let Some(&number) = self.unswept.first()
        {
            let object: &mut Object = self.objects.get_mut(number);
            let before = object.heap_bytes();
            let more = object.sweep(budget);
            self.outside = self.outside + object.heap_bytes() - before;
            if more {
                return true;
            }
            self.unswept.remove(&number);
        }
        !self.unswept.is_empty()
    }
}

impl Shard {
    /// Performs a part of the work that commands on large collections have deferred, about a microsecond for each
    /// unit of the budget. It is visible only in memory use. Returns whether there is more to do.
    pub fn sweep_step(&mut self, budget: usize) -> bool {
        let mut left = budget;
        let mut more = false;
        for db in &mut self.dbs {
            more |= db.sweep(&mut left);
        }
        more
    }
}
