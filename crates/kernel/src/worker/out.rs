//! The only queue for outputs of a worker's machines: outcomes of requests for the embedder,
//! messages to other workers, requests to the disk, events, and calls between machines, which the
//! worker carries out in order.

use super::lattice::Draining;
use super::linear::Transacted;
use super::mail::Mail;
use super::saves::CutOf;
use super::spanning::Release;
use super::store::Store;
use super::{Message, Work, boot};
use crate::batch::{Batch, Header};
use crate::durable::keeper::Keeper;
use crate::durable::{Event, Note, TxnId};
use crate::lock::{Scope, Ticket};
use crate::multi::Multi;
use crate::replicate::replicas::To;
use rufous_base::WorkerId;
use rufous_base::disk::DiskRequest;
use rufous_lattice::Stamp;
use rufous_mapping::{Mapping, NodeNo};
use std::collections::VecDeque;
use std::sync::Arc;

/// The outcome of requests after [`super::Submitted::Pending`] or [`super::Submitted::Barrier`].
/// The embedder takes outcomes in order with [`super::Worker::next_outcome`], after every call that
/// may execute requests and before it takes messages.
#[derive(Debug)]
pub enum Outcome {
    /// The replies to these requests, by [`crate::batch::Status`]: a request that is `Later` gets
    /// its reply in another batch; one that is `NotHere` was not executed as its keys are at
    /// another node, to which the embedder may forward it. Give the batch to
    /// [`super::Worker::recycle`] afterwards.
    Replies(Box<Batch>),
    /// The request was executed, but its log cannot be written: its outcome is unknown.
    Lost(Header),
    /// The client of this request begins to wait for data. If the client has disconnected, the
    /// embedder ends the wait with [`super::WaitEnd::Gone`].
    Waits(Header),
    /// A transaction over slots has ended.
    Transacted(Box<Transacted>),
}

/// A request of a machine to another one, or to the worker.
#[derive(Debug)]
pub(super) enum Call {
    /// Sends a note to a worker, which may be this one.
    Tell(WorkerId, Note),
    /// Sends a message that no longer waits to a worker, which may be this one.
    Send(WorkerId, Message),
    /// Begins a command over several workers.
    Begin(Box<Multi>),
    /// Executes a command over several workers, whose keys are held.
    Run(Box<Multi>),
    /// Prepares a transaction whose keys are held for the embedder.
    Ready(Box<Multi>),
    /// Makes replicas here equal, for a command of this worker.
    Drain(Draining),
    /// Ends a hold at a worker, which may be this one, with its part of a command.
    Release(WorkerId, Release),
    /// All parts of a command are committed: ends a hold at a worker, which may be this one.
    Unlock(WorkerId, Ticket, TxnId),
    /// Continues loading, now that the notes before this call have arrived here.
    Load(boot::Next),
    /// Begins a new generation of all logs.
    Cut { generation: u64, cut: CutOf },
    /// The manifest is on disk: with the snapshots of this generation, or with a change only of
    /// whether changes are logged. Or it cannot be written.
    ManifestWritten(Result<Option<u64>, Arc<str>>),
    /// Passes on the record of snapshots and logs that worker 0 has read.
    Keep(Box<Keeper>),
    /// Begins this worker's log.
    StartLog(LogStart),
    /// Snapshots the whole shard as the beginning of this generation.
    Snapshot { generation: u64 },
    /// Starts the exchange of replicas: everything is loaded everywhere.
    Exchange,
    /// Sends a message on lattice keys to another worker, once the log has everything so far.
    SendLogged(WorkerId, Message),
    /// Sends changes of replicas.
    Replicate(To, Arc<[u8]>),
    /// All changes of replicas up to now have been passed on.
    Replicated,
    /// Replicas here have received all that the others kept, and all that is here was sent.
    ReplicasEqual,
    /// Ends a hold.
    LetGo(Ticket),
    /// Holds keys for work.
    Acquire(Scope, Work),
    /// Replies to the requests of a worker, which may be this one.
    Answer(WorkerId, Box<Batch>),
    /// A mapping was applied to the slots here, in which this node has or had this number.
    MappingTaken(Arc<Mapping>, NodeNo),
    /// The outcome of writes that wait for chains is unknown.
    ChainsLost,
    /// Counters that were held back have been restored: their number, and the latest time at which
    /// one was written.
    CountsRestored { count: u64, latest: Stamp },
}

/// Where a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogStart {
    pub(super) generation: u64,
    pub(super) index: u32,
    pub(super) seq: u64,
    /// The salt of earlier segments of this generation.
    pub(super) salt: Option<u32>,
}

impl LogStart {
    /// At the beginning of a generation.
    pub(super) fn of(generation: u64) -> Self {
        Self {
            generation,
            index: 0,
            seq: 0,
            salt: None,
        }
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) outcomes: VecDeque<Outcome>,
    /// How many of them are clients that begin to wait.
    undecided: usize,
    pub(super) mail: Mail,
    pub(super) disk: Vec<DiskRequest>,
    pub(super) events: Vec<Event>,
    calls: VecDeque<Call>,
    /// Calls of the event at hand that are carried out before the others.
    first: Vec<Call>,
}

impl Out {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            mail: Mail::new(workers),
            ..Self::default()
        }
    }

    /// Sends a message to another worker.
    pub(super) fn send(&mut self, to: WorkerId, message: Message) {
        self.mail.send(to, message);
    }

    /// The client of this request begins to wait, if the embedder still has it.
    pub(super) fn begins_to_wait(&mut self, header: Header) {
        self.undecided += 1;
        self.outcomes.push_back(Outcome::Waits(header));
    }

    /// The outcome of these requests is unknown; those without a reply yet are not over.
    pub(super) fn lost(&mut self, batch: &Batch) {
        let answered = batch.requests.iter().filter(|r| !r.reply.is_later());
        self.outcomes
            .extend(answered.map(|r| Outcome::Lost(r.header)));
    }

    /// Whether the embedder has yet to say if a client waits.
    pub(super) fn has_undecided(&self) -> bool {
        self.undecided > 0
    }

    #[inline]
    pub(super) fn next_outcome(&mut self) -> Option<Outcome> {
        let outcome = self.outcomes.pop_front()?;
        if matches!(outcome, Outcome::Waits(_)) {
            self.undecided -= 1;
        }
        Some(outcome)
    }

    pub(super) fn call(&mut self, call: Call) {
        self.calls.push_back(call);
    }

    /// Makes a call that is carried out when the event at hand was handled, before all calls of
    /// earlier events.
    pub(super) fn call_first(&mut self, call: Call) {
        self.first.push(call);
    }

    /// Those calls, in order.
    pub(super) fn take_first(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.first)
    }

    pub(super) fn tell(&mut self, to: WorkerId, note: Note) {
        self.call(Call::Tell(to, note));
    }

    /// Sends a note to all workers; to this one last.
    pub(super) fn tell_all(&mut self, store: &Store<'_>, note: impl Fn() -> Note) {
        store.others().for_each(|to| self.tell(to, note()));
        self.tell(store.id, note());
    }

    #[inline]
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    #[inline]
    pub(super) fn next_call(&mut self) -> Option<Call> {
        self.calls.pop_front()
    }
}
