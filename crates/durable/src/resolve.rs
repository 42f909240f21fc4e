//! Which commands over several workers a set of logs holds whole, and where
//! logs must end so that nothing is left that came after a command that is not.
//!
//! Each worker that a command wrote at logs its part of it (a piece), keeps
//! its locks until all parts are logged, and then notes the end of it (done).
//! So a command whose pieces are not all there was never answered, unless
//! writes that were not synced got lost; only then can a log hold the end of a
//! command of which another log has lost a piece. What follows that end may
//! have been made of what is lost, and goes too; which may take pieces of
//! other commands, and so on. What is left is the most that is consistent.

use super::entry::TxnId;
use std::collections::HashSet;

/// What one partition's log holds of commands over several workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Each with its frame's number, in the order of the log.
    pub pieces: Vec<(TxnId, u64)>,
    pub dones: Vec<(TxnId, u64)>,
    /// For each of `pieces`, an index into `groups`.
    pub group_of: Vec<u32>,
    /// Sets of partitions that have pieces of one command; few differ.
    pub groups: Vec<Vec<u16>>,
}

impl Parts {
    /// Notes a piece in frame `at`, which never goes down.
    pub fn piece(&mut self, txn: TxnId, participants: impl Iterator<Item = u16>, at: u64) {
        let mut group: Vec<u16> = participants.collect();
        group.sort_unstable();
        group.dedup();
        // The newest first: commands of one kind come in a row.
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

    /// Forgets what lies at `end` and behind it.
    pub fn cut(&mut self, end: u64) {
        let keep = self.pieces.partition_point(|(_, at)| *at < end);
        self.pieces.truncate(keep);
        self.group_of.truncate(keep);
        let keep = self.dones.partition_point(|(_, at)| *at < end);
        self.dones.truncate(keep);
    }
}

/// What becomes of one partition's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Commands whose pieces in this log are passed over.
    pub skip: HashSet<TxnId>,
    /// The first frame that does not count, where commands force an end.
    pub cut: Option<u64>,
}

/// A command as one partition knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    txn: TxnId,
    partition: u16,
    /// `None`: only its end is here.
    piece: Option<(u64, u32)>,
    done: Option<u64>,
}

/// Decides over all partitions, which are numbered from 0 in the order given.
pub fn resolve(parts: &[&Parts]) -> Vec<Verdict> {
    let seen = gather(parts);
    let mut judge = Judge {
        parts,
        seen: &seen,
        cuts: vec![None; parts.len()],
        // Pieces behind these have been looked at since they were cut.
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

    /// Whether each participant has its piece, by what counts so far.
    fn is_whole(&self, commands: &[Seen]) -> bool {
        let has = |partition: u16| {
            commands
                .iter()
                .any(|seen| seen.partition == partition && self.piece_counts(seen))
        };
        commands.iter().all(|seen| match seen.piece {
            // Its pieces may have gone with an older generation.
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

    /// Gives up the commands whose pieces were cut off here.
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

/// Everything known of each command, by command.
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
