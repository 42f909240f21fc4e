//! Going on with what operations on large collections have left to be done
//! later.

use super::Shard;
use super::db::Db;
use rufous_datatype::object::Object;

impl Db {
    /// Notes a large collection that has work left. Whoever takes it out of the
    /// slab forgets it.
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
    /// Does a part of what commands on large collections have left, about a
    /// microsecond for each unit of the budget. Nobody sees a difference but in
    /// the memory that they take. Returns whether there is more to do.
    pub fn sweep_step(&mut self, budget: usize) -> bool {
        let mut left = budget;
        let mut more = false;
        for db in &mut self.dbs {
            more |= db.sweep(&mut left);
        }
        more
    }
}
