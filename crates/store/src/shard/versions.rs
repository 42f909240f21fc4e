//! Counts of changes, by which it is seen that keys have not changed between two reads.
//!
//! Keys share counts by their hashes: a key may seem to have changed where another one has, and never the other way
//! round. The keys of all databases with one name share one.

/// Counts, as a power of two.
const COUNTS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Empty as long as they were not asked for.
    counts: Vec<u32>,
    /// Changes of all keys.
    all: u32,
}

impl Versions {
    #[inline]
    pub(super) fn are_on(&self) -> bool {
        !self.counts.is_empty()
    }

    pub(super) fn turn_on(&mut self) {
        if !self.are_on() {
            self.counts = vec![0; COUNTS];
        }
    }

    /// A key with this hash has changed.
    #[inline]
    pub(super) fn touch(&mut self, hash: u32) {
        if let Some(count) = self.counts.get_mut(hash as usize % COUNTS) {
            *count = count.wrapping_add(1);
        }
    }

    /// Any key may have changed.
    pub(super) fn touch_all(&mut self) {
        self.all = self.all.wrapping_add(1);
    }

    pub(super) fn of(&self, hash: u32) -> u64 {
        let count = self.counts.get(hash as usize % COUNTS);
        u64::from(self.all) << 32 | u64::from(count.copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_in_the_counts_of_its_key() {
        let mut versions = Versions::default();
        versions.touch(7);
        versions.turn_on();
        let (before, other) = (versions.of(7), versions.of(8));
        assert_eq!(before, versions.of(7));
        versions.touch(7);
        assert_ne!(before, versions.of(7));
        assert_eq!(other, versions.of(8));
        // It shares the count.
        assert_eq!(versions.of(7 + COUNTS as u32), versions.of(7));
        let before = versions.of(7);
        versions.turn_on();
        assert_eq!(before, versions.of(7), "they are on already");
        versions.touch_all();
        assert_ne!(before, versions.of(7));
        assert_ne!(other, versions.of(8));
    }
}
