//! What workers of a node send one another, and what becomes of a request.

use super::converting::Draining;
use super::spanning::{Hold, Release};
use super::waiting::Arrival;
use crate::batch::Batch;
use crate::durable::{Note, TxnId};
use crate::lock::{KeyName, Scope, Ticket};
use crate::multi::{Gathered, Part};
use crate::wait::Note as WaitNote;
use rufous_base::{ConnId, WorkerId};
use std::sync::Arc;

/// What workers of a node send one another.
#[derive(Debug)]
pub enum Message {
    Requests(Box<Batch>),
    Replies(Box<Batch>),
    /// The sender may not evict what it needs: evict here, if you can.
    MakeRoom,
    /// Hold these keys for a command of the sender's.
    /// `touch`: it counts as an access to them.
    Acquire {
        multi: u64,
        scope: Scope,
        /// Whose command it is.
        client: u64,
        touch: bool,
        part: Option<Box<Part>>,
    },
    /// They are held; this is what they contain.
    Acquired {
        multi: u64,
        ticket: Ticket,
        hold: Hold,
    },
    /// The sender's command, which holds everything here, reads these keys too.
    Fetch {
        multi: u64,
        touch: bool,
        keys: Vec<KeyName>,
    },
    /// This is what they contain.
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
    /// A part of the receiver's command may not be committed for long.
    Doubtful {
        multi: u64,
    },
    /// Requests of the receiver's, whose effects may not be committed for long.
    Lost(Box<Batch>),
    /// All of it is: let go.
    Unlock {
        ticket: Ticket,
        txn: TxnId,
    },
    /// This client of the sender's waits for keys of the receiver.
    Await(Box<Arrival>),
    /// This client of the receiver's waits.
    Waits(Box<WaitNote>),
    /// This client of the sender's does not wait any more.
    Forget {
        conn: ConnId,
        seq: u32,
    },
    /// Changes of replicated keys, or a report on them.
    Replicate(Arc<[u8]>),
    /// What another node has told this one, which had that number.
    Told(u16, Arc<[u8]>),
    /// While the table of keyspaces changes.
    Draining(Draining),
    /// Of loading and saving.
    Note(Box<Note>),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// Its reply was appended.
    Done,
    /// Likewise, to the request of another node: nothing was executed, as the keys are not here.
    NotHere,
    /// Its reply will be an [`super::Outcome`].
    Pending,
    /// Likewise, and later requests of the same connection must wait for it,
    /// because they could overtake it.
    Barrier,
}

/// What is to be done once keys are held.
#[derive(Debug)]
pub(super) enum Work {
    /// A request that found its key held: run it, then answer `origin`.
    Run { batch: Box<Batch>, origin: WorkerId },
    /// A hold for a command that `coordinator` is collecting keys for.
    Hold {
        multi: u64,
        coordinator: WorkerId,
        client: u64,
        touch: bool,
        part: Option<Box<Part>>,
    },
}
