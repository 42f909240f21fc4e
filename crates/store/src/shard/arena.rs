//! Memory for records: slots of fixed sizes in pages, named by 32-bit handles.
//!
//! Slots have the sizes of `classes.rs`. A class's pages grow with the class, from 4 KiB to 256 KiB, so that at most
//! about a thirty-second of its memory lies unused in the newest page; pages are allocated as zeroes, which costs no
//! memory until a slot is used. Slots are taken from the fullest page that has a free one, so that the emptiest pages
//! become empty; pages that stay partly used are emptied by `compact.rs`.
//!
//! Invariants:
//! 1. A free slot's first byte is 0, a record's is not.
//! 2. A page is in exactly one of its class's lists, the one for its fullness
//!    ([`LISTS`]), unless it is full or is being emptied.
//! 3. Page 0 has no slots: handle 0 names none.

use super::classes::{CLASSES, class_of, class_size};

/// Bits of a handle for the slot's number in its page.
pub(super) const SLOT_BITS: u32 = 14;
const MAX_SLOTS: usize = 1 << SLOT_BITS;
const MAX_PAGES: usize = 1 << (32 - SLOT_BITS);

pub(super) const SMALLEST_PAGE: usize = 4 << 10;
const LARGEST_PAGE: usize = 256 << 10;
/// Once a quarter of the handles is used, pages become larger, so that handles suffice for the memory of any machine.
const LAST_PAGE: usize = 4 << 20;

/// Bytes of a cache line, and number of lines of a slot that are prefetched.
const LINE: usize = 64;
const WARM_LINES: usize = 4;

/// Lists of a class by how full their pages are, in eighths.
const LISTS: usize = 8;
const IN_NO_LIST: u8 = u8::MAX;
pub(super) const NONE: u32 = u32::MAX;

/// One cache line, with the fields of every access first.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Page {
    pub(super) bytes: Box<[u8]>,
    pub(super) slot_size: u32,
    pub(super) slots: u32,
    pub(super) used: u32,
    /// First of the freed slots; each names the next.
    free: u32,
    /// Slots from here on were never used.
    pub(super) fresh: u32,
    prev: u32,
    next: u32,
    class: u8,
    list: u8,
}

#[derive(Debug)]
pub(super) struct Class {
    /// First page of each list.
    pub(super) heads: [u32; LISTS],
    pages: u32,
    pub(super) slots: usize,
    pub(super) used: usize,
}

/// A page whose records are being moved elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Emptying {
    pub(super) page: u32,
    pub(super) next_slot: u32,
}

#[derive(Debug, Default)]
pub(super) struct Arena {
    /// A plain vector: every access goes through it, and doubling it copies only one page header for each 256 KiB of
    /// records.
    pub(super) pages: Vec<Page>,
    free_pages: Vec<u32>,
    /// Empty until the first record is added.
    pub(super) classes: Vec<Class>,
    records: usize,
    used_bytes: usize,
    pub(super) page_bytes: usize,
    pub(super) emptying: Option<Emptying>,
    /// The class at which the search for one worth compacting continues.
    pub(super) next_class: usize,
}

#[inline]
fn page_of(handle: u32) -> usize {
    (handle >> SLOT_BITS) as usize
}

#[inline]
fn slot_of(handle: u32) -> usize {
    handle as usize & (MAX_SLOTS - 1)
}

impl Arena {
    pub(super) fn records(&self) -> usize {
        self.records
    }

    /// Bytes of slots in use.
    pub(super) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Bytes allocated; those of a class's newest page may be untouched.
    pub(super) fn bytes(&self) -> usize {
        self.page_bytes
            + self.pages.capacity() * size_of::<Page>()
            + self.free_pages.capacity() * 4
            + self.classes.capacity() * size_of::<Class>()
    }

    #[inline]
    pub(super) fn get(&self, handle: u32) -> &[u8] {
        let page = &self.pages[page_of(handle)];
        let size = page.slot_size as usize;
        &page.bytes[slot_of(handle) * size..][..size]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: u32) -> &mut [u8] {
        let page = &mut self.pages[page_of(handle)];
        let size = page.slot_size as usize;
        &mut page.bytes[slot_of(handle) * size..][..size]
    }

    /// The bytes of a slot. Any handle is valid, even one that names no slot.
    #[inline(always)]
    pub(super) fn slot(&self, handle: u32) -> Option<&[u8]> {
        let page = self.pages.get(page_of(handle))?;
        let size = page.slot_size as usize;
        let start = slot_of(handle) * size;
        page.bytes.get(start..start + size)
    }

    #[inline(always)]
    pub(super) fn slot_mut(&mut self, handle: u32) -> Option<&mut [u8]> {
        let page = self.pages.get_mut(page_of(handle))?;
        let size = page.slot_size as usize;
        let start = slot_of(handle) * size;
        page.bytes.get_mut(start..start + size)
    }

    /// Prefetches the first cache lines of a slot: packed collections are read and moved whole. Any handle is valid,
    /// even one that names no slot.
    #[inline]
    pub(super) fn warm(&self, handle: u32) -> u64 {
        self.warm_lines(handle, WARM_LINES)
    }

    /// Prefetches this many lines of a slot.
    #[inline]
    pub(super) fn warm_lines(&self, handle: u32, lines: usize) -> u64 {
        let Some(slot) = self.slot(handle) else {
            return 0;
        };
        let lines = slot.iter().step_by(LINE).take(lines);
        lines.map(|&byte| u64::from(byte)).sum()
    }

    /// Allocates a slot for a record of `size` bytes. The caller must write a record to it (invariant 1).
    #[inline]
    pub(super) fn alloc(&mut self, size: usize) -> u32 {
        let number = class_of(size);
        if self.classes.is_empty() {
            self.start();
        }
        let heads = &self.classes[number].heads;
        let Some(&at) = heads.iter().rev().find(|&&page| page != NONE) else {
            let at = self.add_page(number);
            return self.take_slot(at);
        };
        self.take_slot(at)
    }

    #[inline]
    fn take_slot(&mut self, at: u32) -> u32 {
        let page = &mut self.pages[at as usize];
        let slot = if page.free != NONE {
            let slot = page.free;
            let start = slot as usize * page.slot_size as usize;
            page.free = read_link(&page.bytes[start..]);
            slot
        } else {
            page.fresh += 1;
            page.fresh - 1
        };
        page.used += 1;
        let class = &mut self.classes[usize::from(page.class)];
        class.used += 1;
        self.records += 1;
        self.used_bytes += page.slot_size as usize;
        if list_of(page) != page.list {
            self.relist(at);
        }
        at << SLOT_BITS | slot
    }

    pub(super) fn free(&mut self, handle: u32) {
        let at = page_of(handle) as u32;
        let page = &mut self.pages[at as usize];
        let start = slot_of(handle) * page.slot_size as usize;
        let link = page.free;
        let slot = &mut page.bytes[start..start + page.slot_size as usize];
        debug_assert_ne!(slot[0], 0, "freed twice");
        slot[0] = 0;
        slot[4..8].copy_from_slice(&link.to_le_bytes());
        page.free = slot_of(handle) as u32;
        page.used -= 1;
        let class = &mut self.classes[usize::from(page.class)];
        class.used -= 1;
        self.records -= 1;
        self.used_bytes -= page.slot_size as usize;
        if page.used == 0 && self.emptying.is_some_and(|e| e.page == at) {
            self.drop_page(at);
            return;
        }
        if page.used == 0 {
            // One page of free slots is kept, unless it is large and the last one: adding and removing one key must
            // not allocate each time.
            let others_have = class.slots - page.slots as usize > class.used;
            if others_have || page.bytes.len() > SMALLEST_PAGE && class.used == 0 {
                self.drop_page(at);
                return;
            }
        }
        if self.emptying.is_none_or(|e| e.page != at) {
            let page = &self.pages[at as usize];
            if list_of(page) != page.list {
                self.relist(at);
            }
        }
    }

    #[cold]
    fn start(&mut self) {
        let class = || Class {
            heads: [NONE; LISTS],
            pages: 0,
            slots: 0,
            used: 0,
        };
        self.classes = (0..CLASSES).map(|_| class()).collect();
        self.pages.push(Page::new(0, 0, 0));
    }

    #[cold]
    fn add_page(&mut self, number: usize) -> u32 {
        let size = class_size(number);
        let class = &mut self.classes[number];
        let largest = if self.pages.len() < MAX_PAGES / 4 {
            LARGEST_PAGE
        } else {
            LAST_PAGE
        };
        let wanted = (class.used * size / 32).clamp(SMALLEST_PAGE, largest);
        let bytes = 1usize << wanted.ilog2();
        let slots = (bytes / size).clamp(1, MAX_SLOTS);
        let page = Page::new(number, size, slots);
        self.page_bytes += page.bytes.len();
        class.pages += 1;
        class.slots += slots;
        let at = match self.free_pages.pop() {
            Some(at) => {
                self.pages[at as usize] = page;
                at
            }
            None => {
                let full = "a database holds at most 2^32 records or 800 GiB of them";
                assert!(self.pages.len() < MAX_PAGES, "{full}");
                self.pages.push(page);
                (self.pages.len() - 1) as u32
            }
        };
        self.relist(at);
        at
    }

    pub(super) fn drop_page(&mut self, at: u32) {
        if self.emptying.is_some_and(|e| e.page == at) {
            self.emptying = None;
        } else {
            self.unlist(at);
        }
        let page = &mut self.pages[at as usize];
        let class = &mut self.classes[usize::from(page.class)];
        class.pages -= 1;
        class.slots -= page.slots as usize;
        self.page_bytes -= page.bytes.len();
        *page = Page::new(0, 0, 0);
        self.free_pages.push(at);
    }

    /// Puts a page into the list for its fullness.
    fn relist(&mut self, at: u32) {
        self.unlist(at);
        let list = list_of(&self.pages[at as usize]);
        self.pages[at as usize].list = list;
        if list == IN_NO_LIST {
            return;
        }
        let class = usize::from(self.pages[at as usize].class);
        let head = &mut self.classes[class].heads[usize::from(list)];
        let next = std::mem::replace(head, at);
        self.pages[at as usize].next = next;
        self.pages[at as usize].prev = NONE;
        if next != NONE {
            self.pages[next as usize].prev = at;
        }
    }

    pub(super) fn unlist(&mut self, at: u32) {
        let page = &mut self.pages[at as usize];
        let (list, prev, next) = (page.list, page.prev, page.next);
        if list == IN_NO_LIST {
            return;
        }
        page.list = IN_NO_LIST;
        let class = usize::from(page.class);
        match prev {
            NONE => self.classes[class].heads[usize::from(list)] = next,
            _ => self.pages[prev as usize].next = next,
        }
        if next != NONE {
            self.pages[next as usize].prev = prev;
        }
    }

    /// The handles of all records; for checks.
    pub(super) fn handles(&self) -> impl Iterator<Item = u32> + '_ {
        self.pages.iter().enumerate().flat_map(|(at, page)| {
            let used = |slot: &u32| page.bytes[*slot as usize * page.slot_size as usize] != 0;
            let slots = (0..page.fresh).filter(used);
            slots.map(move |slot| (at as u32) << SLOT_BITS | slot)
        })
    }

    /// Asserts every invariant of the arena.
    pub(super) fn check(&self) {
        let mut listed = vec![false; self.pages.len()];
        for class in &self.classes {
            for (list, &head) in class.heads.iter().enumerate() {
                let (mut at, mut prev) = (head, NONE);
                while at != NONE {
                    let page = &self.pages[at as usize];
                    assert_eq!((usize::from(page.list), page.prev), (list, prev));
                    assert!(!std::mem::replace(&mut listed[at as usize], true));
                    (prev, at) = (at, page.next);
                }
            }
        }
        let mut slots_of = vec![(0, 0, 0); self.classes.len()];
        let (mut bytes, mut used_bytes) = (0, 0);
        for (at, page) in self.pages.iter().enumerate().filter(|p| p.1.slots > 0) {
            let emptying = self.emptying.is_some_and(|e| e.page as usize == at);
            assert_eq!(listed[at], page.used < page.slots && !emptying);
            assert!(emptying || page.list == list_of(page));
            let mut free = 0;
            let mut link = page.free;
            while link != NONE {
                assert!(link < page.fresh);
                free += 1;
                let slot = &page.bytes[link as usize * page.slot_size as usize..];
                assert_eq!(slot[0], 0);
                link = read_link(slot);
            }
            assert_eq!(page.fresh, page.used + free);
            bytes += page.bytes.len();
            used_bytes += page.used as usize * page.slot_size as usize;
            let class = &mut slots_of[usize::from(page.class)];
            *class = (
                class.0 + 1,
                class.1 + page.slots as usize,
                class.2 + page.used as usize,
            );
        }
        for (class, sums) in self.classes.iter().zip(slots_of) {
            assert_eq!((class.pages, class.slots, class.used), sums);
        }
        assert_eq!((bytes, used_bytes), (self.page_bytes, self.used_bytes));
        assert_eq!(self.handles().count(), self.records);
    }
}

impl Page {
    fn new(class: usize, slot_size: usize, slots: usize) -> Self {
        Self {
            bytes: vec![0; slot_size * slots].into_boxed_slice(),
            slot_size: slot_size as u32,
            slots: slots as u32,
            used: 0,
            free: NONE,
            fresh: 0,
            prev: NONE,
            next: NONE,
            class: class as u8,
            list: IN_NO_LIST,
        }
    }
}

fn read_link(slot: &[u8]) -> u32 {
    u32::from_le_bytes([slot[4], slot[5], slot[6], slot[7]])
}

#[inline]
fn list_of(page: &Page) -> u8 {
    if page.used == page.slots {
        return IN_NO_LIST;
    }
    (page.used * LISTS as u32 / page.slots) as u8
}

const _: () = {
    assert!(size_of::<Page>() == 64);
};

#[cfg(test)]
mod tests {
    use super::*;

    fn put(arena: &mut Arena, size: usize, tag: u8) -> u32 {
        let handle = arena.alloc(size);
        arena.get_mut(handle).fill(tag);
        handle
    }

    #[test]
    fn pages_come_and_go() {
        let mut arena = Arena::default();
        assert_eq!(arena.bytes(), 0);
        assert_eq!(arena.warm(0), 0);
        let handles: Vec<_> = (0..10_000)
            .map(|i| put(&mut arena, 100, i as u8 | 1))
            .collect();
        arena.check();
        assert!(arena.bytes() < 10_000 * 104 * 34 / 32 + 16 * 1024);
        for (i, &handle) in handles.iter().enumerate() {
            assert_eq!(arena.get(handle), [i as u8 | 1; 104]);
            assert!(arena.warm(handle) > 0);
        }
        for &handle in &handles {
            arena.free(handle);
        }
        arena.check();
        assert_eq!((arena.records(), arena.used_bytes()), (0, 0));
        assert!(arena.page_bytes <= SMALLEST_PAGE);
    }
}
