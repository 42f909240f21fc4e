//! Empties pages that are little used: their records move to free slots of other pages of the same class, a few at a
//! time.

use super::arena::{Arena, Emptying, NONE, SLOT_BITS, SMALLEST_PAGE};
use super::record::MAX_RECORD;

impl Arena {
    /// Moves records out of pages that are little used, until `budget` slots were examined or nothing is worth
    /// moving. `moved` is called with the old and the new handle of a record, which is at both, before the old slot
    /// is freed. Returns whether the budget ended it.
    pub(super) fn compact(
        &mut self,
        budget: &mut usize,
        mut moved: impl FnMut(&[u8], u32, u32),
    ) -> bool {
        let mut copy = [0; MAX_RECORD];
        while *budget > 0 {
            let Some(Emptying {
                page: at,
                next_slot,
            }) = self.emptying
            else {
                *budget -= 1;
                if !self.choose_page() {
                    return false;
                }
                continue;
            };
            *budget -= 1;
            let page = &self.pages[at as usize];
            debug_assert!(next_slot < page.fresh, "a page without records is dropped");
            self.emptying = Some(Emptying {
                page: at,
                next_slot: next_slot + 1,
            });
            let size = page.slot_size as usize;
            let start = next_slot as usize * size;
            if page.bytes[start] == 0 {
                continue;
            }
            let record = &mut copy[..size];
            record.copy_from_slice(&page.bytes[start..start + size]);
            let old = at << SLOT_BITS | next_slot;
            let new = self.alloc(size);
            self.get_mut(new).copy_from_slice(record);
            moved(record, old, new);
            self.free(old);
        }
        true
    }

    /// Chooses a page whose records fit into its class's other pages, in a class that is less than nine tenths used.
    fn choose_page(&mut self) -> bool {
        for _ in 0..self.classes.len() {
            let number = self.next_class;
            self.next_class = (number + 1) % self.classes.len();
            let class = &self.classes[number];
            if class.used * 10 >= class.slots * 9 {
                continue;
            }
            let Some(&at) = class.heads.iter().find(|&&page| page != NONE) else {
                continue;
            };
            let page = &self.pages[at as usize];
            let elsewhere = class.slots - page.slots as usize;
            let fits = elsewhere >= class.used;
            // The last page of a class may be far too large for the records that are left.
            let too_large =
                page.bytes.len() > SMALLEST_PAGE && class.used * 8 < page.slots as usize;
            if !fits && !too_large {
                continue;
            }
            // There may be more pages to empty in this class.
            self.next_class = number;
            if page.used == 0 {
                self.drop_page(at);
                return true;
            }
            self.unlist(at);
            self.emptying = Some(Emptying {
                page: at,
                next_slot: 0,
            });
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_moves_everything_to_few_pages() {
        let mut arena = Arena::default();
        let mut at = std::collections::HashMap::new();
        for i in 0..40_000u32 {
            let handle = arena.alloc(64);
            let slot = arena.get_mut(handle);
            slot[0] = 1;
            slot[8..12].copy_from_slice(&i.to_le_bytes());
            at.insert(i, handle);
        }
        for i in (0..40_000).filter(|i| i % 8 != 0) {
            arena.free(at.remove(&i).expect("present"));
        }
        let before = arena.bytes();
        let id = |slot: &[u8]| u32::from_le_bytes([slot[8], slot[9], slot[10], slot[11]]);
        loop {
            let mut budget = 100;
            let more = arena.compact(&mut budget, |record, old, new| {
                assert_eq!(at.insert(id(record), new), Some(old));
            });
            if !more {
                break;
            }
        }
        arena.check();
        assert!(arena.bytes() < before / 4);
        assert_eq!((arena.records(), at.len()), (5000, 5000));
        for (&i, &handle) in &at {
            assert_eq!(id(arena.get(handle)), i);
        }
        for handle in at.into_values() {
            arena.free(handle);
        }
        assert!(!arena.compact(&mut 1000, |_, _, _| unreachable!("nothing is left")));
        arena.check();
        assert_eq!(arena.page_bytes, 0);
    }
}
