//! Rare states that runs have to reach: a simulation that never gets there
//! proves nothing about them.

/// A state worth counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    TurnWithManyInputs,
    RequestSplit,
    ReadHeld,
    ConnectionLostWithRequests,
    ClockJumpedBack,
    ClockJumpedAhead,
    KeyExpired,
    MessagesOvertook,
    ExecSucceeded,
    ExecAborted,
    WatchedKeyTouched,
    ReplyWaitedForGate,
    RepliesAbandoned,
    ProcessKilled,
    PowerLost,
    CleanStop,
    WriteTorn,
    NameLost,
    DiskFull,
    WriteFailed,
    SyncFailed,
    BitFlipped,
    Loading,
    Misconf,
    OutOfMemory,
    Evicted,
    WorkersChanged,
    SegmentRotated,
    ManifestReplaced,
    EarlierSaveKept,
    CrashDuringSnapshot,
    CrashDuringLoad,
    LossAllowedAndSeen,
    StartRefused,
    OutcomeUnknown,
    WaitServed,
    WaitTimedOut,
    OrderJudged,
    CollectionGrew,
    CollectionShrank,
    CollectionSavedInParts,
    ChunkOf64K,
    WrongType,
    QuietUpdate,
    LatticeRefused,
    LatticeExec,
    TableChanged,
    SiblingsShown,
}

use Probe::*;

impl Probe {
    pub const ALL: [Probe; 48] = [
        TurnWithManyInputs,
        RequestSplit,
        ReadHeld,
        ConnectionLostWithRequests,
        ClockJumpedBack,
        ClockJumpedAhead,
        KeyExpired,
        MessagesOvertook,
        ExecSucceeded,
        ExecAborted,
        WatchedKeyTouched,
        ReplyWaitedForGate,
        RepliesAbandoned,
        ProcessKilled,
        PowerLost,
        CleanStop,
        WriteTorn,
        NameLost,
        DiskFull,
        WriteFailed,
        SyncFailed,
        BitFlipped,
        Loading,
        Misconf,
        OutOfMemory,
        Evicted,
        WorkersChanged,
        SegmentRotated,
        ManifestReplaced,
        EarlierSaveKept,
        CrashDuringSnapshot,
        CrashDuringLoad,
        LossAllowedAndSeen,
        StartRefused,
        OutcomeUnknown,
        WaitServed,
        WaitTimedOut,
        OrderJudged,
        CollectionGrew,
        CollectionShrank,
        CollectionSavedInParts,
        ChunkOf64K,
        WrongType,
        QuietUpdate,
        LatticeRefused,
        LatticeExec,
        TableChanged,
        SiblingsShown,
    ];
}

/// How often each was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probes([u64; Probe::ALL.len()]);

impl Default for Probes {
    fn default() -> Self {
        Self([0; Probe::ALL.len()])
    }
}

impl Probes {
    pub fn hit(&mut self, probe: Probe) {
        self.0[probe as usize] += 1;
    }

    pub fn count(&self, probe: Probe) -> u64 {
        self.0[probe as usize]
    }

    pub fn merge(&mut self, other: &Probes) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }

    /// Those that were never reached.
    pub fn missing(&self) -> impl Iterator<Item = Probe> {
        Probe::ALL.into_iter().filter(|&p| self.count(p) == 0)
    }
}

impl std::fmt::Display for Probes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for probe in Probe::ALL {
            writeln!(f, "{:>10}  {probe:?}", self.count(probe))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_probe_has_its_place() {
        for (index, probe) in Probe::ALL.into_iter().enumerate() {
            assert_eq!(probe as usize, index);
        }
        let mut probes = Probes::default();
        probes.hit(KeyExpired);
        let mut sum = probes.clone();
        sum.merge(&probes);
        assert_eq!(sum.count(KeyExpired), 2);
        assert_eq!(sum.missing().count(), Probe::ALL.len() - 1);
    }
}
