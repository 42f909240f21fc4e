//! One file: what reading shows, and what would be left without power.

use crate::engine::random::Random;

/// What a disk writes whole or not at all, mostly.
const SECTOR: usize = 512;

/// The end of a log's last frame, behind the header of the file.
const LAST_BYTES: usize = 30;
const FILE_HEADER: usize = 64;

/// A change that is not on the disk yet.
#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes } => write(to, *at, bytes),
            Change::Resize(len) => to.resize(*len, 0),
        }
    }
}

fn write(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = at + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    to[at..end].copy_from_slice(bytes);
}

/// How many changes there had been when a sync began.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

/// A file.
#[derive(Clone, Debug, Default)]
pub struct File {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// Changes that are no longer pending.
    settled: u64,
}

impl File {
    pub fn live(&self) -> &[u8] {
        &self.live
    }

    pub fn len(&self) -> usize {
        self.live.len()
    }

    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether everything would outlive the power.
    pub fn is_synced(&self) -> bool {
        self.pending.is_empty()
    }

    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.change(Change::Write {
            at,
            bytes: bytes.to_vec(),
        });
    }

    pub fn resize(&mut self, len: usize) {
        self.change(Change::Resize(len));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    /// A sync begins: it concerns what was written before.
    pub fn mark(&self) -> Mark {
        Mark(self.settled + self.pending.len() as u64)
    }

    /// A sync ended well.
    pub fn synced(&mut self, mark: Mark) {
        let count = mark.0.saturating_sub(self.settled) as usize;
        for change in self.pending.drain(..count.min(self.pending.len())) {
            change.apply(&mut self.durable);
            self.settled += 1;
        }
    }

    /// A sync failed: what was to be written is forgotten, though reading
    /// shows it until the power goes.
    pub fn dropped(&mut self, mark: Mark) {
        let count = mark.0.saturating_sub(self.settled) as usize;
        let count = count.min(self.pending.len());
        self.pending.drain(..count);
        self.settled += count as u64;
    }

    /// The power went. True where a write was left in part.
    pub fn lose_power(&mut self, random: &mut Random, torn: f64) -> bool {
        let pending = std::mem::take(&mut self.pending);
        self.settled += pending.len() as u64;
        let mut tore = false;
        match random.below(4) {
            // All reached the disk, or nothing did.
            0 => pending.iter().for_each(|c| c.apply(&mut self.durable)),
            1 => {}
            // As they were made, up to some moment.
            2 => {
                let kept = random.index(pending.len() + 1);
                pending[..kept]
                    .iter()
                    .for_each(|c| c.apply(&mut self.durable));
                if let Some(next) = pending.get(kept)
                    && random.chance(torn)
                {
                    tore |= self.tear(next, random);
                }
            }
            // In any order: of each, all, nothing, or some sectors.
            _ => {
                for change in &pending {
                    match random.below(3) {
                        0 => change.apply(&mut self.durable),
                        1 if random.chance(torn) => tore |= self.tear(change, random),
                        _ => {}
                    }
                }
            }
        }
        self.live.clone_from(&self.durable);
        tore
    }

    /// Some sectors of a write, one of them perhaps in part.
    fn tear(&mut self, change: &Change, random: &mut Random) -> bool {
        let Change::Write { at, bytes } = change else {
            change.apply(&mut self.durable);
            return false;
        };
        let prefix_only = random.chance(0.5);
        let mut from = 0;
        while from < bytes.len() {
            let to = (from + SECTOR - (at + from) % SECTOR).min(bytes.len());
            match random.below(4) {
                0 if prefix_only => return true,
                0 | 1 if !prefix_only => {}
                2 => {
                    let part = from + random.index(to - from + 1);
                    write(&mut self.durable, at + from, &bytes[from..part]);
                    if prefix_only {
                        return true;
                    }
                }
                _ => write(&mut self.durable, at + from, &bytes[from..to]),
            }
            from = to;
        }
        true
    }

    /// One bit changes on the disk.
    pub fn flip(&mut self, random: &mut Random) -> Option<usize> {
        let used = self.durable.iter().rposition(|b| *b != 0)? + 1;
        let (at, bit) = (random.index(used), random.below(8));
        self.durable[at] ^= 1 << bit;
        if let Some(byte) = self.live.get_mut(at) {
            *byte ^= 1 << bit;
        }
        Some(at)
    }

    /// Sets a bit of the last bytes that is not set.
    pub fn set_bit_near_end(&mut self, random: &mut Random) -> Option<usize> {
        let used = self.durable.iter().rposition(|b| *b != 0)? + 1;
        let from = used.saturating_sub(LAST_BYTES).max(FILE_HEADER);
        if from >= used {
            return None;
        }
        let at = from + random.index(used - from);
        let clear: Vec<u32> = (0..8)
            .filter(|bit| self.durable[at] >> bit & 1 == 0)
            .collect();
        let bit = clear.get(random.index(clear.len().max(1)))?;
        self.durable[at] |= 1 << bit;
        if let Some(byte) = self.live.get_mut(at) {
            *byte |= 1 << bit;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All contents that a file may have after the power went.
    fn after_loss(file: &File) -> Vec<Vec<u8>> {
        let mut all: Vec<_> = (0..200)
            .map(|seed| {
                let mut file = file.clone();
                file.lose_power(&mut Random::new(seed, "loss"), 0.0);
                assert!(file.is_synced());
                file.live().to_vec()
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn only_a_sync_makes_a_write_outlive_the_power() {
        let mut file = File::default();
        file.write(0, b"ab");
        assert_eq!(after_loss(&file), [b"".to_vec(), b"ab".to_vec()]);
        let mark = file.mark();
        file.write(2, b"c");
        file.synced(mark);
        assert_eq!(after_loss(&file), [b"ab".to_vec(), b"abc".to_vec()]);
        file.synced(file.mark());
        assert_eq!(after_loss(&file), [b"abc".to_vec()]);
    }

    #[test]
    fn a_failed_sync_loses_what_reading_still_shows() {
        let mut file = File::default();
        file.write(0, b"ab");
        file.dropped(file.mark());
        assert_eq!(file.live(), b"ab");
        file.synced(file.mark());
        assert_eq!(after_loss(&file), [b"".to_vec()]);
    }

    #[test]
    fn later_writes_may_survive_earlier_ones() {
        let mut file = File::default();
        file.resize(4);
        file.synced(file.mark());
        file.write(0, b"ab");
        file.write(2, b"cd");
        let all = after_loss(&file);
        assert!(all.contains(&b"\0\0cd".to_vec()), "{all:?}");
        assert!(all.contains(&b"ab\0\0".to_vec()), "{all:?}");
    }

    #[test]
    fn writes_tear_at_sectors_and_within() {
        let mut partly = 0;
        for seed in 0..200 {
            let mut file = File::default();
            file.resize(2048);
            file.synced(file.mark());
            file.write(100, &[7; 1500]);
            file.lose_power(&mut Random::new(seed, "loss"), 1.0);
            let written = file.live().iter().filter(|b| **b == 7).count();
            partly += usize::from(written > 0 && written < 1500);
        }
        assert!(partly > 20, "{partly}");
    }
}
