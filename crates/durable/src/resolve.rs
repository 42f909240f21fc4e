//! Which commands over several workers are complete in a set of logs, and where logs must end so
//! that no frame remains that depends on an incomplete command.
//!
//! Each worker to which a command wrote logs its part (a piece), keeps its locks until all pieces
//! are logged, and then logs the command's end (done). So a command with missing pieces was never
//! answered, unless writes that were not synced were lost; only then can a log contain the end of a
//! command of which another log has lost a piece. Frames behind that end may depend on the lost
//! data and are cut off too; this may cut off pieces of other commands, and so on. The result is
//! the largest consistent state.

use super::entry::TxnId;
use std::collections::HashSet;

/// The commands over several workers in one partition's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The pieces with the numbers of their frames, in the order of the log.
    pub pieces: Vec<(TxnId, u64)>,
    pub dones: Vec<(TxnId, u64)>,
    /// For each of `pieces`, an index into `groups`.
    pub group_of: Vec<u32>,
    /// The sets of partitions that have pieces of one command; there are few of them.
    pub groups: Vec<Vec<u16>>,
}

impl Parts {
    /// Adds a piece in frame `at`, which never decreases.
    pub fn piece(&mut self, txn: TxnId, participants: impl Iterator<Item = u16>, at: u64) {
        let mut group: Vec<u16> = participants.collect();
        group.sort_unstable();
        group.dedup();
        // The newest first: similar commands follow one another.
        let known = self.groups.iter().rposition(|other| *other == group);
        let index = known.unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        });
        self.pieces.push((txn, at));
        self.group_of.push(index as u32);
    }

    pub fn done(&mut self, txn: TxnId, at: u64) {
        self.dones.push((txn, at));
    }

    /// Removes the pieces at `end` and behind it.
    pub fn cut(&mut self, end: u64) {
        let keep = self.pieces.partition_point(|(_, at)| *at < end);
        self.pieces.truncate(keep);
        self.group_of.truncate(keep);
        let keep = self.dones.partition_point(|(_, at)| *at < end);
        self.dones.truncate(keep);
    }
}

/// The decision for one partition's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Commands whose pieces in this log are skipped.
    pub skip: HashSet<TxnId>,
    /// The first frame that is cut off, if commands require that.
    pub cut: Option<u64>,
}

/// A command as recorded in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    txn: TxnId,
    partition: u16,
    /// `None`: only its end is in this log.
    piece: Option<(u64, u32)>,
    done: Option<u64>,
}

/// Decides for all partitions, which are numbered from 0 in the order given.
pub fn resolve(parts: &[&Parts]) -> Vec<Verdict> {
    let seen = gather(parts);
    let mut judge = Judge {
        parts,
        seen: &seen,
        cuts: vec![None; parts.len()],
        // Pieces from these indices on were processed when they were cut off.
        left: parts.iter().map(|parts| parts.pieces.len()).collect(),
        pending: Vec::new(),
        skip: HashSet::new(),
    };
    for commands in seen.chunk_by(|a, b| a.txn == b.txn) {
        if !judge.is_whole(commands) {
            judge.give_up(commands);
        }
    }
    while let Some(partition) = judge.pending.pop() {
        judge.follow(partition);
    }
    judge.verdicts()
}

struct Judge<'a> {
    parts: &'a [&'a Parts],
    seen: &'a [Seen],
    cuts: Vec<Option<u64>>,
    left: Vec<usize>,
    pending: Vec<usize>,
    skip: HashSet<TxnId>,
}

impl Judge<'_> {
    fn counts(&self, partition: u16, at: u64) -> bool {
        self.cuts[usize::from(partition)].is_none_or(|cut| at < cut)
    }

    /// Whether each participant has its piece, according to the current ends.
    fn is_whole(&self, commands: &[Seen]) -> bool {
        let has = |partition: u16| {
            commands
                .iter()
                .any(|seen| seen.partition == partition && self.piece_counts(seen))
        };
        commands.iter().all(|seen| match seen.piece {
            // Its pieces may have been removed with an older generation.
            None => true,
            Some((_, group)) => {
                let parts = self.parts[usize::from(seen.partition)];
                let group = &parts.groups[group as usize];
                group.iter().all(|participant| has(*participant))
            }
        })
    }

    fn piece_counts(&self, seen: &Seen) -> bool {
        let piece = seen.piece;
        piece.is_some_and(|(at, _)| self.counts(seen.partition, at))
    }

    fn give_up(&mut self, commands: &[Seen]) {
        if !self.skip.insert(commands[0].txn) {
            return;
        }
        for seen in commands {
            if let Some(done) = seen.done
                && self.counts(seen.partition, done)
            {
                let partition = usize::from(seen.partition);
                self.cuts[partition] = Some(done);
                self.pending.push(partition);
            }
        }
    }

    /// Gives up the commands whose pieces were cut off in this log.
    fn follow(&mut self, partition: usize) {
        let Some(cut) = self.cuts[partition] else {
            return;
        };
        while let Some(last) = self.left[partition].checked_sub(1) {
            let (txn, at) = self.parts[partition].pieces[last];
            if at < cut {
                break;
            }
            self.left[partition] = last;
            let start = self.seen.partition_point(|seen| seen.txn < txn);
            let len = self.seen[start..].partition_point(|seen| seen.txn == txn);
            let seen = self.seen;
            self.give_up(&seen[start..start + len]);
        }
    }

    fn verdicts(self) -> Vec<Verdict> {
        let mut verdicts: Vec<Verdict> = (self.cuts.iter())
            .map(|cut| Verdict {
                skip: HashSet::new(),
                cut: *cut,
            })
            .collect();
        for seen in self.seen {
            if self.skip.contains(&seen.txn) && self.piece_counts(seen) {
                verdicts[usize::from(seen.partition)].skip.insert(seen.txn);
            }
        }
        verdicts
    }
}

/// All records of each command, by command.
fn gather(parts: &[&Parts]) -> Vec<Seen> {
    let count = parts.iter().map(|p| p.pieces.len() + p.dones.len()).sum();
    let mut all: Vec<Seen> = Vec::with_capacity(count);
    for (partition, parts) in parts.iter().enumerate() {
        let partition = partition as u16;
        for ((txn, at), group) in parts.pieces.iter().zip(&parts.group_of) {
            all.push(Seen {
                txn: *txn,
                partition,
                piece: Some((*at, *group)),
                done: None,
            });
        }
        for (txn, at) in &parts.dones {
            all.push(Seen {
                txn: *txn,
                partition,
                piece: None,
                done: Some(*at),
            });
        }
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
