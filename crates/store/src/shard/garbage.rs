//! Large values and databases that were removed: dropping them takes time, so another thread does it.

use super::beside::Outside;
use rufous_base::Garbage;
use std::sync::Arc;

/// Values from this size on are dropped by another thread; handing over a smaller one costs as much as dropping it.
const GARBAGE_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct GarbageList {
    objects: Vec<Garbage>,
    values: Vec<Arc<Vec<u8>>>,
}

impl GarbageList {
    /// Drops a value, here or on another thread.
    pub(super) fn throw(&mut self, outside: Outside) {
        match outside {
            Outside::Big(value) if value.capacity() >= GARBAGE_BYTES => self.values.push(value),
            Outside::Object(object) if object.heap_bytes() >= GARBAGE_BYTES => {
                self.objects.push(Garbage {
                    bytes: object.heap_bytes(),
                    what: Box::new(object),
                });
            }
            Outside::Big(_) | Outside::Object(_) => {}
        }
    }

    pub(super) fn push(&mut self, garbage: Garbage) {
        self.objects.push(garbage);
    }

    /// Everything that is to be dropped.
    pub(super) fn take(&mut self) -> Vec<Garbage> {
        let mut all = std::mem::take(&mut self.objects);
        if !self.values.is_empty() {
            let values = std::mem::take(&mut self.values);
            all.push(Garbage {
                bytes: values.iter().map(|value| value.capacity()).sum(),
                what: Box::new(values),
            });
        }
        all
    }

    /// Drops everything here.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.values.is_empty() || !self.objects.is_empty() {
            self.values.clear();
            self.objects.clear();
        }
    }
}
