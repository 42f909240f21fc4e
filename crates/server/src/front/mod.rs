//! The front of a worker: connections, sessions, the order of replies.
//!
//! One actor per worker thread. It parses what a turn received, looks ahead over many requests to
//! fetch their records into the cache, runs them through the kernel, and sorts late replies into
//! request order.
//!
//! Map, in reading order:
//! - [`connection`], [`bounds`], [`closing`], `farewell`: state of a client, its limits, its end, and that
//!   of all before the node stops
//! - [`parse`], [`turn`], `refusals`: requests are parsed, executed, refused
//! - `peers`, `replies`: what the kernel sends to other nodes and to connections
//! - `waiting`, `blocked`: requests and replies that wait; clients that wait for data
//! - [`gather`], [`cron`]: questions to all workers of the node; work between requests
//! - `keyspaces`: changes of their table, and commands that lattice keys refuse
//! - [`transaction`]: `MULTI`, `EXEC` and `WATCH`; `BEGIN` and `COMMIT`
//! - [`session`], [`local`]: the interface for commands on connections and on the server
//! - [`slow`], [`latency`], [`monitor`], [`secret`]: slow commands, all commands, arguments never shown
//! - [`figures`]: counters of each worker, for metrics and `INFO`
//! - [`durability`], [`persistence`], `slices`: replies wait for the log, requests for loading; state
//!   and speed of snapshots
//! - [`shared`], [`process`]: the state that all workers of a node share

pub(crate) mod blocked;
#[cfg(test)]
mod blocked_tests;
mod bounds;
#[cfg(test)]
mod causal_tests;
pub mod closing;
pub mod connection;
mod connections;
pub mod cron;
mod durability;
mod durable_info;
mod farewell;
pub mod figures;
pub mod gather;
pub(crate) mod guesses;
mod keyspaces;
pub mod latency;
pub mod local;
#[cfg(test)]
mod maxmemory_tests;
pub mod monitor;
pub mod parse;
mod peers;
pub mod persistence;
pub mod process;
mod refusals;
mod replies;
mod secret;
pub mod session;
pub mod shared;
mod slices;
pub mod slow;
#[cfg(test)]
mod sort_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod transaction;
pub mod turn;
mod waiting;

use crate::cluster::PeerMessage;
use crate::cluster::front::is_of_peers;
use crate::cluster::jobs::Jobs;
use crate::cluster::links::Links;
use crate::command::CommandTable;
use crate::config::Config;
use connection::{Connection, Lookahead, Suspended};
use connections::Connections;
use gather::{Answer, Gather, Question};
use rufous_base::{
    Actor, Close, ConnId, ConnInfo, Effects, Input, NodeEffect, Now, Read, WorkerId,
};
use rufous_cluster::forward::Forwarding;
use rufous_cluster::serving::Serving;
use rufous_cluster::splitting::Splitting;
use rufous_command::{DataCommands, Reply};
use rufous_kernel::placement::Placement;
use rufous_kernel::shard::Warm;
use rufous_kernel::{Worker, worker};
use shared::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Messages between the fronts of a node.
pub enum Message {
    Kernel(worker::Message),
    /// Answer a question about this worker.
    Ask {
        gather: u64,
        question: Question,
    },
    /// Run this; no answer is expected.
    Tell(gather::Order),
    /// Messages of other nodes.
    Peer(PeerMessage),
    /// The node stops soon: connections of clients are to be closed between two requests.
    Farewell,
    Answered {
        gather: u64,
        answer: Answer,
    },
}

impl From<PeerMessage> for Message {
    fn from(message: PeerMessage) -> Self {
        Self::Peer(message)
    }
}

/// The front of one worker.
pub struct Front {
    pub kernel: Worker<DataCommands>,
    pub table: &'static CommandTable,
    pub shared: Arc<Shared>,
    /// Replaced as a whole by `CONFIG SET`; see [`Front::configure`].
    pub config: Arc<Config>,
    limits: shared::RequestLimits,
    batch_limit: usize,
    /// Whether active expiry is on (`DEBUG SET-ACTIVE-EXPIRE`).
    pub(crate) expire: bool,
    pub(crate) connections: Connections,
    reads: Vec<Read>,
    next_read: usize,
    /// How much of the current read has been parsed.
    read_at: Option<usize>,
    resumed: Vec<ConnId>,
    lookahead: Lookahead,
    gathers: BTreeMap<u64, Gather>,
    pub(crate) transactions: transaction::Transactions,
    next_gather: u64,
    batch_started_us: u64,
    stopping: bool,
    stop_us: u64,
    /// When the stopping node was seen to have left the coordinator.
    left_us: Option<u64>,
    /// It stops, and waits for no other node any more.
    parted: bool,
    stopped: bool,
    farewell: farewell::Farewell,
    pub counters: shared::Counters,
    pub(crate) pause: session::Pause,
    pub(crate) slow: slow::SlowLog,
    pub(crate) latency: latency::LatencyLog,
    /// How long the running command asked the driver to block this worker.
    pub(crate) stall_us: u64,
    /// The shard's counters when statistics were last reset.
    pub(crate) shard_base: rufous_kernel::shard::Counters,
    /// The same for evictions.
    pub(crate) evict_base: rufous_kernel::evict::Counters,
    warm: Vec<Warm>,
    /// Effects of session commands, applied at the end of the step.
    pub(crate) node: Vec<NodeEffect>,
    pub(crate) holds: Vec<(ConnId, bool)>,
    pub(crate) outgoing: Vec<(WorkerId, Message)>,
    /// Bytes for connections other than that of the running request.
    pub(crate) pushes: Vec<(ConnId, Vec<u8>)>,
    /// When a rejected HTTP request was last logged.
    http_logged_us: Option<u64>,
    pub(crate) cron: cron::Cron,
    pub persistence: persistence::Persistence,
    durability: durability::Durability,
    declared: keyspaces::Declared,
    /// Sessions with other nodes, if the node is in a cluster: requests sent to them and received
    /// from them.
    pub(crate) links: Option<Box<Links>>,
    pub(crate) forwarding: Forwarding,
    pub(crate) serving: Serving,
    pub(crate) jobs: Jobs,
    pub(crate) splitting: Splitting,
    /// Some replies wait for the log alone.
    splits: bool,
}

impl Front {
    pub fn new(id: WorkerId, shared: Arc<Shared>, config: Arc<Config>) -> Self {
        let table = crate::command::table();
        let placement = Placement::new(shared.workers);
        let mut front = Self {
            limits: shared::RequestLimits::new(&config),
            batch_limit: 0,
            expire: true,
            config: Arc::clone(&config),
            kernel: Worker::new(id, placement, table.len(), shared.hash_seed),
            table,
            shared,
            connections: Connections::default(),
            reads: Vec::new(),
            next_read: 0,
            read_at: None,
            resumed: Vec::new(),
            lookahead: Lookahead::default(),
            gathers: BTreeMap::new(),
            transactions: transaction::Transactions::default(),
            next_gather: 0,
            batch_started_us: 0,
            stopping: false,
            stop_us: 0,
            left_us: None,
            parted: false,
            stopped: false,
            farewell: farewell::Farewell::default(),
            counters: shared::Counters::default(),
            pause: session::Pause::default(),
            slow: slow::SlowLog::default(),
            latency: latency::LatencyLog::default(),
            stall_us: 0,
            shard_base: rufous_kernel::shard::Counters::default(),
            evict_base: rufous_kernel::evict::Counters::default(),
            warm: Vec::new(),
            node: Vec::new(),
            holds: Vec::new(),
            outgoing: Vec::new(),
            pushes: Vec::new(),
            http_logged_us: None,
            cron: cron::Cron::default(),
            persistence: persistence::Persistence::default(),
            durability: durability::Durability::default(),
            declared: keyspaces::Declared::default(),
            links: None,
            forwarding: Forwarding::default(),
            serving: Serving::default(),
            jobs: Jobs::default(),
            splitting: Splitting::default(),
            splits: false,
        };
        let (cluster, workers) = (front.shared.cluster.clone(), front.shared.workers);
        if let Some(cluster) = &cluster {
            front.kernel.join_chains(cluster.chains());
        }
        let links = |common: &_| Box::new(Links::new(Arc::clone(common), id, workers));
        front.links = cluster.map(|cluster| links(&cluster.common));
        front.kernel.set_ledger(Arc::clone(&front.shared.ledger));
        front.configure(config);
        front
    }

    /// Applies settings.
    pub fn configure(&mut self, config: Arc<Config>) {
        self.limits = shared::RequestLimits::new(&config);
        self.batch_limit = slow::batch_limit(config.slowlog_log_slower_than);
        self.slow.configure(
            config.slowlog_log_slower_than,
            config.slowlog_max_len,
            config.latency_monitor_threshold_ms,
        );
        self.kernel.shard.set_policy(config.access_policy());
        self.kernel.shard.set_tuning(config.collections.tuning());
        self.kernel.set_limit(config.memory_limit());
        if config.requirepass.is_empty() {
            self.connections.authenticate_all();
        }
        self.configure_durability(&config);
        self.config = config;
    }

    pub fn id(&self) -> WorkerId {
        self.kernel.id()
    }

    /// The connection, unless it is closed or its slot was reused.
    pub fn connection(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.connections.get(id)
    }

    /// All connections of this worker.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter()
    }

    fn on_opened(&mut self, now: Now, id: ConnId, info: ConnInfo, fx: &mut Effects<Message>) {
        let config = Arc::clone(&self.config);
        let refused = config.protected_mode_refuses(&info);
        if refused {
            let start = fx.output.mark();
            Reply::new(&mut fx.output, false).error(&shared::PROTECTED_MODE.into());
            fx.write(id, start);
            fx.closes.push((id, Close::AfterReplies));
            self.counters.rejected_connections += 1;
        }
        let place = (self.kernel.id(), self.kernel.placement().workers());
        let connection = self.connections.on_opened(now, id, info, place);
        connection.closing = refused;
        connection.authenticated = config.requirepass.is_empty() || connection.info.is_internal();
        self.counters.connections += u64::from(!connection.info.is_internal());
        self.connections.renew_backlog(id);
    }

    fn on_closed(&mut self, id: ConnId) {
        self.release_pins(id);
        self.end_wait_of_gone(id);
        if let Some(mut connection) = self.connections.on_closed(id) {
            self.counters.suspended -= usize::from(connection.suspended.is_some());
            self.end_transaction_of(&mut connection);
            if connection.monitor {
                self.shared.monitors_changed(-1);
            }
        }
    }

    fn on_message(
        &mut self,
        now: Now,
        from: WorkerId,
        message: Message,
        fx: &mut Effects<Message>,
    ) {
        match message {
            // Nothing may change while data is loaded; a later tick makes room.
            Message::Kernel(worker::Message::MakeRoom) if self.durability.loading => {}
            Message::Kernel(mut message) => {
                if let worker::Message::Requests(batch) = &mut message {
                    self.prepare_forwarded(batch);
                }
                self.kernel.on_message(now, from, message);
                self.deliver_outcomes(fx);
            }
            Message::Ask { gather, question } => {
                let answer = question(self, now);
                self.outgoing
                    .push((from, Message::Answered { gather, answer }));
            }
            Message::Tell(order) => order(self, now),
            Message::Peer(message) => self.on_peer_message(now, from, message, fx),
            Message::Farewell => self.begin_farewell(now),
            Message::Answered { gather, answer } => self.on_answered(gather, from, answer, fx),
        }
    }

    /// Applies what the step has left.
    fn finish_step(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.note_splits();
        self.settle_peers(now, fx);
        self.settle_kernel(now, fx);
        self.end_waits_to_stop(now, fx);
        self.deliver_save_answers(fx);
        self.run_transactions(now, fx);
        self.go_on_declaring(now, fx);
        self.take_jobs(fx);
        self.resume_connections(now, fx);
        self.wake_in_time(now, fx);
        self.kernel.publish_charge();
        self.kernel
            .take_messages(|to, message| fx.messages.push((to, Message::Kernel(message))));
        fx.messages.append(&mut self.outgoing);
        fx.holds.append(&mut self.holds);
        self.connections.take_notes(fx);
        fx.node.append(&mut self.node);
        for (conn, bytes) in self.pushes.drain(..) {
            let start = fx.output.mark();
            fx.output.bytes.extend_from_slice(&bytes);
            fx.write(conn, start);
        }
        fx.garbage.append(&mut self.kernel.shard.take_garbage());
        let more = self.lookahead.next < self.lookahead.parsed.len()
            || self.read_at.is_some()
            || self.next_read < self.reads.len()
            || !self.resumed.is_empty()
            || self.kernel.has_unaccounted();
        if !more {
            self.connections.close_ended();
        }
        self.connections.take_closes(fx);
        fx.more = more;
        if self.stopping
            && !self.stopped
            && !fx.more
            && self.is_quiet()
            && self.leaves_peers(now, fx)
            && self.close_durably(now, fx)
        {
            self.stopped = true;
            self.shared.finish_worker();
            fx.node.push(NodeEffect::Stopped);
        }
    }

    /// Runs the kernel's requests that are no longer blocked.
    fn settle_kernel(&mut self, now: Now, fx: &mut Effects<Message>) {
        while self.kernel.settle(now) {
            self.deliver_outcomes(fx);
        }
        self.deliver_outcomes(fx);
    }

    /// Resumes connections whose reason to wait is gone.
    fn resume_connections(&mut self, now: Now, fx: &mut Effects<Message>) {
        if self.counters.suspended == 0 {
            return;
        }
        let paused = self.pause.is_active();
        for connection in self.connections.iter_mut() {
            let ready = match connection.suspended {
                None => false,
                Some(Suspended::Barrier) => connection.slots.is_empty(),
                Some(Suspended::TooManyInFlight) => {
                    connection.slots.len() < connection.last_window().div_ceil(2)
                }
                Some(Suspended::Paused) => !paused,
                Some(Suspended::Unsent) => connection.unsent == 0,
                Some(Suspended::Crowded(no)) => self.forwarding.has_room(no),
                Some(Suspended::NoWay { news, until_us }) => {
                    news != self.forwarding.news() || now.mono_us >= until_us
                }
                Some(Suspended::Guess { until_us }) => now.mono_us >= until_us,
            };
            if ready && !connection.has_too_much_unsent(fx) {
                connection.suspended = None;
                self.counters.suspended -= 1;
                fx.holds.push((connection.id, false));
                self.resumed.push(connection.id);
            }
        }
    }
}

impl Actor for Front {
    type Message = Message;

    fn step(&mut self, now: Now, input: Input<'_, Message>, fx: &mut Effects<Message>) {
        self.account(now);
        self.kernel.look_at_limit();
        self.kernel.look_at_clock(now);
        self.begin_durability(now);
        match input {
            Input::Opened { conn, info } if is_of_peers(&info) => {
                self.on_peer_opened(now, conn, info, fx);
            }
            Input::Opened { conn, info } => self.on_opened(now, conn, info, fx),
            // A closed log must not be needed again.
            Input::Received { bytes, reads } if self.stopping => {
                self.on_peers_received(now, bytes, reads, fx);
            }
            Input::Received { bytes, reads } => {
                self.on_peers_received(now, bytes, reads, fx);
                self.reads.clear();
                self.reads.extend_from_slice(reads);
                self.next_read = 0;
                self.read_at = None;
                self.advance(now, bytes, fx);
            }
            Input::Resume { bytes } => self.advance(now, bytes, fx),
            Input::Message { from, message } => self.on_message(now, from, message, fx),
            Input::Told { message } => self.on_told(now, message, fx),
            Input::Drained { conn } => match self.links_of(conn) {
                Some(links) => links.on_drained(conn, fx),
                None => self.connections.on_drained(conn),
            },
            Input::Ended { conn } => match self.links_of(conn) {
                Some(_) => fx.at_once.closes.push((conn, Close::AfterReplies)),
                None => self.on_ended(conn),
            },
            Input::Closed { conn } => match self.links_of(conn) {
                Some(links) => links.on_closed(now, conn, fx),
                None => self.on_closed(conn),
            },
            Input::Undialled { token, error } => self.on_undialled(now, token, &error),
            Input::Tick => self.on_tick(now, fx),
            Input::Disk(done) => self.on_disk(now, done, fx),
            Input::Stop => {
                self.stopping = true;
                self.stop_us = now.mono_us;
                self.end_forwarding(now, fx);
            }
        }
        self.finish_step(now, fx);
    }

    fn end_turn(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.end_turn_durably(now, fx);
        self.send_to_peers(now, fx);
    }
}
