//! Messages between workers on loading and saving.

use super::keeper::{Pinned, Purpose, Saved, Usage};
use super::load::{Folder, Loaded, LogSummary};
use super::resolve::Verdict;
use rufous_base::Until;
use rufous_store::effect::SlotMark;
use rufous_store::keyspace::Keyspaces;
use rufous_store::shard::{Entry, Held, KeyName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The loading plan that worker 0 sends to all workers.
#[derive(Debug)]
pub struct LoadPlan {
    pub folder: Folder,
    /// The generation that logs continue.
    pub generation: u64,
    /// The highest generation of any file, in use or not.
    pub highest: u64,
    /// The number of workers has changed: keys move to other owners.
    pub moves: bool,
}

impl LoadPlan {
    /// The generation of the new layout, if there is to be one.
    pub fn rewrite(&self) -> Option<u64> {
        self.moves.then_some(self.highest + 1)
    }

    /// The seed of the salts of all files.
    pub fn hash_seed(&self) -> Option<u64> {
        self.folder.manifest.as_ref().map(|m| m.hash_seed)
    }
}

/// A message on loading or saving; to worker 0 unless its description says otherwise.
#[derive(Debug)]
pub enum Note {
    /// To all: load according to this plan.
    Plan(Arc<LoadPlan>),
    /// The logs of a partition were scanned.
    Scanned {
        partition: u16,
        summary: LogSummary,
    },
    /// To all: the verdicts, by partition.
    Resolved {
        verdicts: Arc<Vec<Verdict>>,
        run: u64,
    },
    /// To all: the table of keyspaces of one of the sender's partitions.
    Table(Arc<Keyspaces>),
    /// To all: the counters of one of the sender's partitions that are held back.
    Held(Arc<Held>),
    /// To all: the slot marks of one of the sender's partitions.
    Marks(Arc<BTreeMap<u16, SlotMark>>),
    /// To all: the node to which the replicated keys of one of the sender's partitions belonged.
    Node(u16),
    /// The sender's log has the state that all other nodes sent to the node with that number.
    HasHeard(u16),
    /// A worker has loaded all of its partitions.
    Loaded,
    /// To one worker: keys that it now owns.
    Keys(Vec<(KeyName, Entry)>),
    /// To all: the sender sends no more keys.
    NoMoreKeys,
    /// To all: this is the table of keyspaces; exchange the state of replicated keys.
    Exchange(Arc<Keyspaces>),
    /// The sender has received the state of all others.
    Exchanged,
    /// To all: serve.
    Serve,
    /// To all: the node cannot start.
    Unloadable(Arc<str>),
    /// A worker's part of a save is on disk, or cannot be.
    Saved {
        generation: u64,
        saved: Saved,
    },
    /// To all: the result of a save.
    SaveEnded(Result<u64, Arc<str>>),
    /// The sender's log before this generation is synced.
    Sealed {
        generation: u64,
    },
    Usage(Usage),
    /// A save is due: by the schedule, or because a sync of the sender's log failed.
    SaveNow(Purpose),
    /// To all: end the log, if there is one.
    EndLog,
    /// The sender has no log any more.
    LogEnded,
    /// To all: the sender's log can no longer be written, or can be again.
    Trouble(Option<Trouble>),
    /// The node stops, and no work that the sender began is in progress.
    Quiet,
    /// To all: no work is in progress anywhere.
    CloseLogs,
}

/// Why changes are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub text: Arc<str>,
    /// The log can be written, but some of its frames are lost.
    pub lost: bool,
}

/// An event of loading or saving for the embedder.
#[derive(Debug)]
pub enum Event {
    /// The amount that this worker has to read.
    LoadPlanned {
        bytes: u64,
    },
    LoadProgress {
        bytes: u64,
    },
    /// One of this worker's partitions was loaded.
    Loaded(Loaded),
    Serving,
    /// The node cannot start.
    Unloadable(Arc<str>),
    SaveEnded(Result<u64, Arc<str>>),
    /// At worker 0: every log before this generation is synced.
    Sealed {
        generation: u64,
        pinned: Result<Pinned, String>,
    },
    /// This worker's log can no longer be written, or can be again.
    Trouble(Option<Arc<str>>),
    /// Appended frames may stay uncommitted for a long time, in the log or in chains: no reply that
    /// waits for them can be sent.
    Uncommitted(Until),
}
