//! Messages between workers of a node, and outcomes of requests.

use super::lattice::Draining;
use super::linear::Letter;
use super::spanning::{Hold, Release};
use super::waiting::{Arrival, WaitNote};
use crate::batch::Batch;
use crate::durable::{Note, TxnId};
use crate::lock::{KeyName, Scope, Ticket};
use crate::multi::{Gathered, Part};
use rufous_base::{ConnId, WorkerId};
use rufous_mapping::NodeNo;
use std::sync::Arc;

/// A message between workers of a node.
#[derive(Debug)]
pub enum Message {
    Requests(Box<Batch>),
    Replies(Box<Batch>),
    /// The sender needs memory that it may not evict: evict here, if possible.
    MakeRoom,
    /// Hold these keys for a command of the sender. `touch`: it counts as an access to them.
    Acquire {
        multi: u64,
        scope: Scope,
        /// The client of the command.
        client: u64,
        touch: bool,
        part: Option<Box<Part>>,
    },
    /// The keys are held; these are their entries.
    Acquired {
        multi: u64,
        ticket: Ticket,
        hold: Hold,
    },
    /// The sender's command, which holds everything here, also reads these keys.
    Fetch {
        multi: u64,
        touch: bool,
        keys: Vec<KeyName>,
    },
    /// These are their entries.
    Fetched {
        multi: u64,
        gathered: Vec<Gathered>,
    },
    /// Apply these.
    Release(Release),
    /// A part of the receiver's command is committed.
    Committed {
        multi: u64,
    },
    /// A part of the receiver's command may not be committed for a long time.
    Doubtful {
        multi: u64,
    },
    /// Requests of the receiver whose effects may not be committed for a long time.
    Lost(Box<Batch>),
    /// All parts are committed: release the keys.
    Unlock {
        ticket: Ticket,
        txn: TxnId,
    },
    /// A client of the sender waits for keys of the receiver.
    Await(Box<Arrival>),
    /// A client of the receiver waits.
    Waits(Box<WaitNote>),
    /// A client of the sender no longer waits.
    Forget {
        conn: ConnId,
        seq: u32,
    },
    /// Changes of replicated keys, or a report on them.
    Replicate(Arc<[u8]>),
    /// A message of another node to this one, which had that number.
    Told(u16, Arc<[u8]>),
    /// While the table of keyspaces changes.
    Draining(Draining),
    /// For a head or a client of the receiver, from a worker of this node, which has this number.
    Letter(NodeNo, Box<Letter>),
    /// To the sender itself, when it has waited: this may be sent now.
    Post(Box<Letter>),
    /// About loading and saving.
    Note(Box<Note>),
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// Its reply was appended.
    Done,
    /// A refusal was appended for a forwarded request: not executed, the keys are not here.
    NotHere,
    /// Its reply will be an [`super::Outcome`].
    Pending,
    /// As `Pending`, and later requests of the same connection must wait for the reply, because
    /// they could overtake it.
    Barrier,
}

/// The work to do once keys are held.
#[derive(Debug)]
pub(super) enum Work {
    /// A request that found its key held: execute it, then reply to `origin`.
    Run { batch: Box<Batch>, origin: WorkerId },
    /// A hold for a command for which `coordinator` gathers keys.
    Hold {
        multi: u64,
        coordinator: WorkerId,
        client: u64,
        touch: bool,
        part: Option<Box<Part>>,
    },
}
