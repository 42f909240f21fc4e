//! What workers tell one another of loading and saving.

use super::keeper::{Pinned, Saved, Usage};
use super::load::{Folder, Loaded, LogSummary};
use super::resolve::Verdict;
use rufous_base::Until;
use rufous_store::effect::SlotMark;
use rufous_store::keyspace::Keyspaces;
use rufous_store::shard::{Entry, Held, KeyName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be loaded, as worker 0 tells everybody.
#[derive(Debug)]
pub struct LoadPlan {
    pub folder: Folder,
    /// Where logs go on.
    pub generation: u64,
    /// The highest generation of any file, whether it counts or not.
    pub highest: u64,
    /// The number of workers has changed: keys move to other owners.
    pub moves: bool,
}

impl LoadPlan {
    /// The generation of the new layout, if there is to be one.
    pub fn rewrite(&self) -> Option<u64> {
        self.moves.then_some(self.highest + 1)
    }

    /// What the salts of all files are made of.
    pub fn hash_seed(&self) -> Option<u64> {
        self.folder.manifest.as_ref().map(|m| m.hash_seed)
    }
}

/// To worker 0 unless it says otherwise.
#[derive(Debug)]
pub enum Note {
    /// To all: load this.
    Plan(Arc<LoadPlan>),
    /// A partition's logs have been looked through.
    Scanned {
        partition: u16,
        summary: LogSummary,
    },
    /// To all: what counts, by partition.
    Resolved {
        verdicts: Arc<Vec<Verdict>>,
        run: u64,
    },
    /// To all: the table of keyspaces that one of the sender's partitions had.
    Table(Arc<Keyspaces>),
    /// To all: counts that one of the sender's partitions had, held back.
    Held(Arc<Held>),
    /// To all: how much of slots one of the sender's partitions had.
    Marks(Arc<BTreeMap<u16, SlotMark>>),
    /// To all: the node whose replicated keys one of the sender's partitions had.
    Node(u16),
    /// The sender's log has what all other nodes have told the one with that number.
    HasHeard(u16),
    /// A worker has loaded all of its partitions.
    Loaded,
    /// To one worker: keys that it owns now.
    Keys(Vec<(KeyName, Entry)>),
    /// To all: no more keys come from the sender.
    NoMoreKeys,
    /// To all: this is the table of keyspaces; tell one another what you have of
    /// replicated keys.
    Exchange(Arc<Keyspaces>),
    /// The sender has heard what all others have.
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
    /// To all: how a save ended.
    SaveEnded(Result<u64, Arc<str>>),
    /// The sender's log before this generation is synced.
    Sealed {
        generation: u64,
    },
    Usage(Usage),
    /// What was synced is lost at the sender; only a save makes up for it.
    SaveNow,
    /// To all: the sender's log cannot be written, or can again.
    Trouble(Option<Trouble>),
    /// The node stops, and nothing that the sender began is under way.
    Quiet,
    /// To all: nothing is under way anywhere.
    CloseLogs,
}

/// Why nothing may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub text: Arc<str>,
    /// The log can be written, but something that it had is lost.
    pub lost: bool,
}

/// What the embedder is told of loading and saving.
#[derive(Debug)]
pub enum Event {
    /// This worker has so much to read.
    LoadPlanned {
        bytes: u64,
    },
    LoadProgress {
        bytes: u64,
    },
    /// One of this worker's partitions.
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
    /// This worker's log cannot be written, or can again.
    Trouble(Option<Arc<str>>),
    /// What was appended may not be committed for long, in the log or by chains: nobody
    /// who waits for it can be answered.
    Uncommitted(Until),
}
