//! Which collections are large ones, and what becomes of them over restarts:
//! they come back packed, where they have grown small.

use super::World;
use rufous_base::Now;
use rufous_kernel::marks::{self, Mark};
use rufous_kernel::shard::Any;

/// A time at which nothing has expired, so that looking changes nothing.
const NO_TIME: Now = Now {
    mono_us: 0,
    unix_us: 0,
};

impl World {
    /// The node ends: notes which collections are large.
    pub(super) fn note_shapes(&mut self) {
        self.large = self.collections(|value| matches!(value, Any::Object(_)));
    }

    /// Reaches the probes of the run's own marks; marks that others left in this thread
    /// are not counted.
    pub(super) fn take_marks(&mut self, own: bool) {
        let places = [
            (Mark::Grew, "collection grew"),
            (Mark::SavedOn, "collection saved in parts"),
            (Mark::FullChunk, "chunk of 64 KiB"),
        ];
        for (mark, probe) in places {
            let count = marks::take(mark);
            (0..count)
                .filter(|_| own)
                .for_each(|_| self.engine.reach(probe));
        }
    }

    /// After a turn: all that was loaded is there, and nothing has changed yet.
    pub(super) fn compare_shapes(&mut self) {
        if self.large.is_empty() || !self.seats.iter().all(|s| s.front.kernel.is_serving()) {
            return;
        }
        let packed = self.collections(|value| matches!(value, Any::Packed(..)));
        let before = std::mem::take(&mut self.large);
        let back = before.iter().filter(|key| packed.contains(key));
        (0..back.count()).for_each(|_| self.engine.reach("collection shrank"));
    }

    fn collections(&mut self, wanted: impl Fn(Any<'_>) -> bool) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (number, unit) in self.history.units.iter().enumerate() {
            for (at, name) in unit.keys.iter().enumerate() {
                let holds = self.seats.iter_mut().any(|seat| {
                    let shard = &mut seat.front.kernel.shard;
                    let key = shard.key(name);
                    shard.look(unit.db, key, NO_TIME).is_some_and(&wanted)
                });
                if holds {
                    found.push((number, at));
                }
            }
        }
        found
    }
}
