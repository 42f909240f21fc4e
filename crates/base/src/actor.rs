//! The contract between an actor and what drives it.
//!
//! An actor is a state machine: it is stepped with the time and an input, and
//! leaves effects behind. It never reads a clock, a socket, a file or a random
//! source, so that a real driver and the simulator run the very same code.
//!
//! What a driver promises:
//! 1. `now.mono_us` never goes back from one step to the next, and is read after the input of the
//!    step has arrived. It goes on while the machine is suspended.
//! 2. `Opened` comes before anything else of a connection, `Closed` last and
//!    once, also where the actor asked for the close.
//! 3. While [`Effects::more`] is set after a step, the driver steps the actor
//!    with [`Input::Resume`] and the bytes of the last `Received` before
//!    anything else; only then may it reuse that buffer.
//! 4. Effects are carried out after the last `Resume` of a turn, in order;
//!    all replies to one connection in a turn leave together. Before that,
//!    [`Actor::end_turn`] is called once.
//! 5. Messages between two workers arrive once, in the order sent.
//! 6. `Ended` comes after every `Received` of its connection; nothing is read
//!    from it any more, but replies still leave, until the actor closes it.
//! 7. Replies and closes of a turn wait while its [`Effects::gate`] is above
//!    [`Effects::passed`], and those of later turns behind them. A reply that waits
//!    [`Until::Logged`] does so while its gate is above [`Effects::logged`], behind others
//!    of its kind, and behind all waiting output of its own connection; a close, and a
//!    `Drained`, wait like the output of their connection. If a step
//!    sets [`Effects::abandon`], all replies that wait so, or for more, at the end of the
//!    turn (its own too, if their gate is not passed) are dropped, and their
//!    connections are closed at once. Output in
//!    [`Effects::at_once`] waits for nothing, closes included; input from other nodes is
//!    read even while no other input is.
//! 8. Nothing is read any more after `Stop`; bytes that still arrive are lost.
//! 9. Each request in [`Effects::disk`] is answered by one `Disk` input.
//! 10. Each of [`Effects::dials`] is answered by one `Opened` or `Undialled`, unless
//!     the node stops.

use crate::disk::{DiskDone, DiskRequest};
use crate::ids::{ConnId, WorkerId};
use crate::output::Output;
use crate::time::Now;
use std::any::Any;
use std::sync::Arc;

/// Something that is stepped by a driver.
pub trait Actor {
    /// What actors of a node send one another; one message should carry as
    /// many commands as there are.
    type Message: Send + 'static;

    /// Takes one input. Effects are appended; `fx.more` is set by each step.
    fn step(&mut self, now: Now, input: Input<'_, Self::Message>, fx: &mut Effects<Self::Message>);

    /// Ends a turn: everything that it was stepped with has been taken.
    fn end_turn(&mut self, now: Now, fx: &mut Effects<Self::Message>) {
        let _ = (now, fx);
    }
}

/// Everything that can happen to an actor.
#[derive(Debug)]
pub enum Input<'a, M> {
    /// A connection was opened, by the peer or by this node.
    Opened { conn: ConnId, info: ConnInfo },
    /// A connection of [`Effects::dials`] could not be made.
    Undialled { token: u64, error: DialError },
    /// What one turn has read, each connection at most once.
    Received { bytes: &'a [u8], reads: &'a [Read] },
    /// The last step left work over (`Effects::more`); `bytes` are those of
    /// the last `Received`, or empty where the last input was another.
    Resume { bytes: &'a [u8] },
    /// Another worker of this node sent something.
    Message { from: WorkerId, message: M },
    /// A thread of this node that is no worker did; those of one thread come in
    /// the order sent.
    Told { message: M },
    /// The connection's waiting replies went below the high-water mark, after
    /// the driver had stopped reading from it, or after [`Effects::drains`].
    Drained { conn: ConnId },
    /// The peer sends no more and may still read: the actor asks for the close
    /// once it has answered the earlier requests.
    Ended { conn: ConnId },
    /// The connection is gone.
    Closed { conn: ConnId },
    /// The time requested with `Effects::wake_at_us` was reached.
    Tick,
    /// The answer to a request in `Effects::disk`.
    Disk(DiskDone),
    /// The node stops: finish pending work, then ask for `NodeEffect::Stopped`.
    Stop,
}

/// Bytes read from one connection: `bytes[start..end]` of the turn's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    pub conn: ConnId,
    pub start: usize,
    pub end: usize,
}

/// Where a connection came from.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    /// `ip:port` of the client, or the socket's path.
    pub peer: String,
    /// `ip:port` that the client connected to, or the socket's path.
    pub local: String,
    /// Whether the client is on this machine (loopback, Unix socket, in process).
    pub is_local: bool,
    pub origin: Origin,
    /// The peer's certificate (DER), if it has shown one.
    pub certificate: Option<Arc<[u8]>>,
}

impl ConnInfo {
    /// A handle inside this process, not a client from outside.
    pub fn is_internal(&self) -> bool {
        self.origin == Origin::Internal
    }
}

/// Why a connection was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client from outside.
    Client,
    /// By a client that follows redirections to other nodes.
    Redirected,
    /// By a peer that is another node or claims to be one.
    Peer,
    /// This actor's: see [`Effects::dials`].
    Dialled { token: u64 },
    /// A handle inside this process.
    Internal,
}

impl Origin {
    /// Whether the peer is another node, or claims to be one.
    pub fn is_of_nodes(self) -> bool {
        matches!(self, Self::Peer | Self::Dialled { .. })
    }
}

/// A connection that an actor wants to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// Returned with the answer.
    pub token: u64,
    /// `host:port`.
    pub to: String,
    /// How long it may take.
    pub within_us: u64,
}

/// Why a connection of [`Dial`] could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialError {
    /// Each of the host's addresses refused it: no process listens there.
    pub is_refused: bool,
    pub why: String,
}

/// Replies for one connection: from `start` to `end` (marks of `Effects::output`).
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub conn: ConnId,
    pub start: (usize, usize),
    pub end: (usize, usize),
    pub until: Until,
}

/// What a reply waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// That [`Effects::passed`] is at its gate.
    #[default]
    Passed,
    /// That [`Effects::logged`] is at its gate: the change that it reports needs the log only.
    Logged,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// After the replies written so far have been sent.
    AfterReplies,
    /// At once; waiting replies are dropped.
    Now,
}

/// How many reply bytes may wait for a connection, and what then happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backlog {
    /// It has not proved yet that it may use the node.
    Stranger,
    /// It is answered; reading stops while much waits.
    #[default]
    Client,
    /// It is sent what others do, however slowly it reads.
    Feed,
    /// Another node. It is read even if output waits for it: two nodes that each stop
    /// reading until the other has read would wait for ever.
    Node,
}

/// Something large, to be dropped by a thread that serves no requests.
pub struct Garbage {
    /// What dropping it frees, about.
    pub bytes: usize,
    pub what: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Garbage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Garbage({} bytes)", self.bytes)
    }
}

/// What an actor asks of the node rather than of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEffect {
    /// Stop the whole node, as a signal would.
    Shutdown,
    /// This worker has finished its pending work (answer to `Input::Stop`).
    Stopped,
    /// Pending work takes long and has progressed since the last time: wait for it.
    Progress,
    /// Block this worker for this many microseconds (test suites ask for it).
    Stall(u64),
    /// The most clients the node accepts from now on.
    MaxClients(usize),
}

/// What a step leaves to be done. The driver clears it between turns.
#[derive(Debug)]
pub struct Effects<M> {
    /// Reply bytes of this turn, for all connections.
    pub output: Output,
    /// Replies, with their connections. Use [`Effects::write`].
    pub writes: Vec<Write>,
    /// For connections to other nodes.
    pub at_once: Sends,
    /// To other workers of this node.
    pub messages: Vec<(WorkerId, M)>,
    pub closes: Vec<(ConnId, Close)>,
    /// Connections to be closed at the end of the turn if they are idle: no reply to them waits, and
    /// nothing that the peer has sent is unread. Others stay open, and the actor may ask again.
    pub idle_closes: Vec<ConnId>,
    /// Connections to stop reading from (`true`) or to read again (`false`).
    pub holds: Vec<(ConnId, bool)>,
    /// Connections for which `Drained` is wanted, also if little output waits: it
    /// arrives in a later turn, once almost all replies written so far have left.
    pub drains: Vec<ConnId>,
    /// A connection is [`Backlog::Client`] until another is asked for.
    pub backlogs: Vec<(ConnId, Backlog)>,
    /// Connections to be made.
    pub dials: Vec<Dial>,
    pub garbage: Vec<Garbage>,
    /// Requests to the disk. They do not wait for `gate`.
    pub disk: Vec<DiskRequest>,
    /// What the replies and closes of this turn wait for; set in `end_turn`.
    pub gate: Option<u64>,
    /// Gates up to this have been passed. Never goes down; the driver leaves it.
    pub passed: u64,
    /// Likewise by the log alone; never below `passed`.
    pub logged: u64,
    /// What waits until this, or for more, will never be answered. Use [`Effects::abandon`].
    pub abandon: Option<Until>,
    /// No connection is to be read until a later turn clears this:
    /// too much waits for the disk. Set in `end_turn`.
    pub congested: bool,
    pub node: Vec<NodeEffect>,
    /// When to step with `Input::Tick`, in `Now::mono_us`; the last value given holds.
    pub wake_at_us: Option<u64>,
    /// Step again with `Input::Resume` before anything else.
    pub more: bool,
}

impl<M> Default for Effects<M> {
    fn default() -> Self {
        Self {
            output: Output::default(),
            writes: Vec::new(),
            at_once: Sends::default(),
            messages: Vec::new(),
            closes: Vec::new(),
            idle_closes: Vec::new(),
            holds: Vec::new(),
            drains: Vec::new(),
            backlogs: Vec::new(),
            dials: Vec::new(),
            garbage: Vec::new(),
            disk: Vec::new(),
            gate: None,
            passed: 0,
            logged: 0,
            abandon: None,
            congested: false,
            node: Vec::new(),
            wake_at_us: None,
            more: false,
        }
    }
}

impl<M> Effects<M> {
    /// What waits until this, or for more, will never be answered.
    pub fn abandon(&mut self, until: Until) {
        if self.abandon != Some(Until::Logged) {
            self.abandon = Some(until);
        }
    }

    /// Marks everything written to `output` since `start` as replies to `conn`.
    #[inline]
    pub fn write(&mut self, conn: ConnId, start: (usize, usize)) {
        self.write_until(conn, start, Until::Passed);
    }

    /// Likewise of what may not have to wait for so much.
    #[inline]
    pub fn write_until(&mut self, conn: ConnId, start: (usize, usize), until: Until) {
        mark(&mut self.writes, conn, (start, self.output.mark()), until);
    }
}

/// Bytes and closes that wait for no gate: the sender has already waited for the changes they report.
#[derive(Debug, Default)]
pub struct Sends {
    pub output: Output,
    /// Use [`Sends::write`].
    pub writes: Vec<Write>,
    /// As [`Effects::drains`].
    pub drains: Vec<ConnId>,
    /// As [`Effects::closes`], after the bytes. What a gate waits for may need another
    /// connection in this one's place.
    pub closes: Vec<(ConnId, Close)>,
}

impl Sends {
    /// Marks everything written to `output` since `start` as for `conn`.
    pub fn write(&mut self, conn: ConnId, start: (usize, usize)) {
        let range = (start, self.output.mark());
        mark(&mut self.writes, conn, range, Until::Passed);
    }
}

/// From a mark of an output to another.
type Range = ((usize, usize), (usize, usize));

#[inline]
fn mark(writes: &mut Vec<Write>, conn: ConnId, (start, end): Range, until: Until) {
    if end == start {
        return;
    }
    if let Some(last) = writes.last_mut()
        && last.conn == conn
        && last.end == start
        && last.until == until
    {
        last.end = end;
        return;
    }
    writes.push(Write {
        conn,
        start,
        end,
        until,
    });
}
