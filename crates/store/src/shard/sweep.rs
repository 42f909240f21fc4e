//! Performs the work that operations on large collections have deferred.

use super::db::Db;
use rufous_datatype::object::Object;

impl Db {
    /// Notes a large collection with deferred work. Code that takes it out of the slab removes the note.
    pub(super) fn note_unswept(&mut self, number: u32) {
        if self.objects.get_mut(number).sweep(&mut 0) {
            self.unswept.insert(number);
        }
    }

    /// See `Shard::sweep_step`.
    pub(super) fn sweep(&mut self, budget: &mut usize) -> bool {
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
