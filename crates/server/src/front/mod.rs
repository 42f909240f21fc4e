//! The front of a worker: connections, sessions, the order of replies.
//!
//! One actor per worker thread. It parses what a turn received, looks ahead over many requests to
//! fetch their records into the cache, runs them through the kernel, and sorts late replies into
//! request order.
//!
//! Map, in reading order:
//! - [`connections`], [`connection`], [`held`], [`replies`]: clients, what they have sent, and their replies
//! - `farewell`, `stop`: the end of all clients before the node stops, and of the node
//! - `intake`, [`lookahead`], [`parse`]: bytes become requests; `http`: other protocols
//! - [`turn`], `refusals`: requests are executed, refused
//! - `outcomes`, `outbox`: what is sent to connections, to other workers
//! - `blocked`: clients that wait for data
//! - [`gather`], [`cron`], `phases`: questions to all workers of the node; work between requests
//! - [`catching_up`]: sessions that go on at other connections
//! - [`listing`]: which keys `KEYS`, `SCAN` and `DBSIZE` list
//! - `keyspaces`, `rules`: changes of their table, and what lattice keys change for requests
//! - [`transaction`]: `MULTI`, `EXEC` and `WATCH`; `BEGIN` and `COMMIT`
//! - [`session`], [`local`]: the interface for commands on connections and on the server
//! - [`slow`], [`latency`], [`monitor`], [`secret`]: slow commands, all commands, arguments never shown
//! - [`figures`], `measuring`: counters of each worker, for metrics and `INFO`
//! - [`durability`], [`persistence`], `slices`: replies wait for the log, requests for loading; state
//!   and speed of snapshots
//! - [`shared`], [`process`]: the state that all workers of a node share

pub(crate) mod blocked;
#[cfg(test)]
mod blocked_tests;
pub(crate) mod catching_up;
#[cfg(test)]
mod causal_tests;
pub mod connection;
mod connections;
pub mod cron;
mod durability;
mod durable_info;
mod farewell;
pub mod figures;
pub mod gather;
pub(crate) mod guesses;
pub mod held;
mod http;
mod intake;
mod keyspaces;
pub mod latency;
pub mod listing;
pub mod local;
pub mod lookahead;
#[cfg(test)]
mod maxmemory_tests;
mod measuring;
pub mod monitor;
pub mod orders;
mod outbox;
mod outcomes;
pub mod parse;
pub mod persistence;
mod phases;
pub mod process;
pub(crate) mod refusals;
pub mod replies;
pub mod request;
mod rules;
mod secret;
pub mod session;
pub mod shared;
mod slices;
pub mod slow;
#[cfg(test)]
mod sort_tests;
mod stop;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod transaction;
pub mod turn;

use crate::cluster::PeerMessage;
use crate::cluster::front::is_of_peers;
use crate::cluster::links::Links;
use crate::cluster::peers::Peers;
use crate::cluster::way::Locator;
use crate::command::CommandTable;
use crate::config::Config;
use catching_up::CatchingUp;
use connection::Connection;
use connections::{Awaited, Connections};
use gather::{Answer, Gathers, Question};
use http::HttpLog;
use intake::Intake;
use orders::SaveOrder;
use outbox::{Outbox, Place};
use rufous_base::{Actor, Close, ConnId, ConnInfo, Effects, Input, NodeEffect, Now, WorkerId};
use rufous_command::{DataCommands, Reply};
use rufous_kernel::placement::Placement;
use rufous_kernel::worker::WaitEnd;
use rufous_kernel::{Worker, worker};
use shared::Shared;
use slow::Timing;
use std::sync::Arc;
use stop::Stop;

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
    pub(crate) connections: Connections,
    intake: Intake,
    gathers: Gathers,
    catching_up: CatchingUp,
    pub(crate) transactions: transaction::Transactions,
    stop: Stop,
    farewell: farewell::Farewell,
    pub counters: shared::Counters,
    pub(crate) pause: session::Pause,
    pub(crate) timing: Timing,
    base: figures::Base,
    pub(crate) out: Outbox,
    http: HttpLog,
    pub(crate) cron: cron::Cron,
    pub(crate) durability: durability::Durability,
    declared: keyspaces::Declared,
    pub(crate) peers: Peers,
}

impl Front {
    pub fn new(id: WorkerId, shared: Arc<Shared>, config: Arc<Config>) -> Self {
        let table = crate::command::table();
        let placement = Placement::new(shared.workers);
        let place = Place {
            own: id,
            workers: shared.workers,
        };
        let mut front = Self {
            config: Arc::clone(&config),
            kernel: Worker::new(id, placement, table.len(), shared.hash_seed),
            table,
            shared,
            connections: Connections::default(),
            intake: Intake::new(table, &config),
            gathers: Gathers::default(),
            catching_up: CatchingUp::default(),
            transactions: transaction::Transactions::default(),
            stop: Stop::default(),
            farewell: farewell::Farewell::default(),
            counters: shared::Counters::default(),
            pause: session::Pause::default(),
            timing: Timing::default(),
            base: figures::Base::default(),
            out: Outbox::new(place),
            http: HttpLog::default(),
            cron: cron::Cron::default(),
            durability: durability::Durability::new(id),
            declared: keyspaces::Declared::default(),
            peers: Peers::default(),
        };
        let (cluster, workers) = (front.shared.cluster.clone(), front.shared.workers);
        if let Some(cluster) = &cluster {
            front.kernel.join_chains(cluster.chains());
        }
        let links = |common: &_| Box::new(Links::new(Arc::clone(common), id, workers));
        front.peers.links = cluster.map(|cluster| links(&cluster.common));
        front.kernel.set_ledger(Arc::clone(&front.shared.ledger));
        front.configure(config);
        front
    }

    /// Applies settings.
    pub fn configure(&mut self, config: Arc<Config>) {
        self.intake.configure(&config);
        self.timing.configure(&config);
        self.kernel.shard.set_policy(config.access_policy());
        self.kernel.shard.set_tuning(config.collections.tuning());
        self.kernel.set_limit(config.memory_limit());
        if config.requirepass.is_empty() {
            self.connections.authenticate_all();
        }
        self.durability.configure(&config, &mut self.kernel);
        self.config = config;
    }

    pub fn id(&self) -> WorkerId {
        self.kernel.id()
    }

    /// What this worker knows of the places of keys.
    #[inline]
    pub(crate) fn locator(&self) -> Locator<'_> {
        Locator::new(&self.kernel, self.table, self.peers.links())
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
        let place = self.out.place();
        let connection = self.connections.on_opened(now, id, info, place);
        connection.closing = refused;
        connection.authenticated = config.requirepass.is_empty() || connection.info.is_internal();
        self.counters.connections += u64::from(!connection.info.is_internal());
        self.connections.renew_backlog(id);
    }

    fn on_closed(&mut self, id: ConnId) {
        for pin in self.durability.orders.on_closed(id) {
            self.order_save(SaveOrder::Unpin(pin), None);
        }
        self.on_gone(id);
        if let Some(mut connection) = self.connections.on_closed(id) {
            self.end_transaction_of(&mut connection);
            if connection.monitor {
                self.shared.monitors_changed(-1);
            }
        }
    }

    /// A client has stopped sending. A waiting client is then taken to be closed.
    fn on_ended(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        connection.ended = true;
        if connection.is_blocked() {
            self.on_gone(conn);
            self.connections.close_now(conn);
        } else {
            self.connections.on_ended(conn);
        }
    }

    /// A client waits for data no more.
    fn on_gone(&mut self, conn: ConnId) {
        self.kernel.end_wait(conn, WaitEnd::Gone);
        self.peers.forwarding.on_gone(conn);
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
            Message::Kernel(worker::Message::MakeRoom) if self.durability.is_loading() => {}
            Message::Kernel(mut message) => {
                if let worker::Message::Requests(batch) = &mut message {
                    self.timing.prepare_forwarded(self.table, batch);
                }
                self.kernel.on_message(now, from, message);
                self.deliver_outcomes(fx);
            }
            Message::Ask { gather, question } => {
                let answer = question(self, now);
                self.out.answer(from, gather, answer);
            }
            Message::Tell(order) => order(self, now),
            Message::Peer(message) => self.on_peer_message(now, from, message, fx),
            Message::Farewell => self.begin_farewell(now),
            Message::Answered { gather, answer } => self.on_answered(gather, from, answer, fx),
        }
    }

    /// Applies what the step has left.
    fn finish_step(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.connections.on_splits(self.kernel.splits());
        self.settle_peers(now, fx);
        self.settle_kernel(now, fx);
        self.end_waits_to_stop(now, fx);
        self.deliver_save_answers(fx);
        if !self.catching_up.is_idle() {
            let stops = self.stop.has_begun();
            catching_up::on_step(self, now, stops, fx);
        }
        self.run_transactions(now, fx);
        self.go_on_declaring(now, fx);
        for (header, whole) in self.peers.take_done() {
            self.deliver(header.conn, header.seq, &whole, fx);
        }
        self.resume_connections(now, fx);
        self.wake_in_time(now, fx);
        self.kernel.publish_charge();
        self.kernel
            .take_messages(|to, message| fx.messages.push((to, Message::Kernel(message))));
        self.connections.take_notes(fx);
        self.out.take(fx);
        fx.garbage.append(&mut self.kernel.shard.take_garbage());
        let more = self.intake.has_more() || self.kernel.has_unaccounted();
        if !more {
            self.connections.close_ended();
        }
        self.connections.take_closes(fx);
        fx.more = more;
        if self.stop.is_under_way()
            && !fx.more
            && self.is_quiet()
            && self.leaves_peers(now, fx)
            && self.close_durably(now, fx)
        {
            self.stop.on_done();
            self.shared.finish_worker();
            fx.node.push(NodeEffect::Stopped);
        }
    }

    /// Runs the kernel's requests that are no longer blocked.
    pub(crate) fn settle_kernel(&mut self, now: Now, fx: &mut Effects<Message>) {
        while self.kernel.settle(now) {
            self.deliver_outcomes(fx);
        }
        self.deliver_outcomes(fx);
    }

    /// Resumes connections whose reason to wait is gone.
    fn resume_connections(&mut self, now: Now, fx: &mut Effects<Message>) {
        let awaited = Awaited {
            now,
            is_paused: self.pause.is_active(),
            forwarding: &self.peers.forwarding,
        };
        let resumed = self.intake.resumed();
        self.connections.resume(&awaited, resumed, fx);
    }
}

impl Actor for Front {
    type Message = Message;

    fn step(&mut self, now: Now, input: Input<'_, Message>, fx: &mut Effects<Message>) {
        let elapsed_us = self.timing.on_step(now);
        let ran = self.kernel.has_unaccounted();
        self.kernel.account(elapsed_us);
        self.timing
            .on_elapsed(now, elapsed_us, ran, self.out.place());
        self.kernel.look_at_limit();
        self.kernel.look_at_clock(now);
        if !self.durability.has_begun() {
            self.begin(now);
        }
        match input {
            Input::Opened { conn, info } if is_of_peers(&info) => {
                self.peers.on_opened(now, conn, info, fx);
            }
            Input::Opened { conn, info } => self.on_opened(now, conn, info, fx),
            // A closed log must not be needed again.
            Input::Received { bytes, reads } if self.stop.has_begun() => {
                self.on_peers_received(now, bytes, reads, fx);
            }
            Input::Received { bytes, reads } => {
                self.on_peers_received(now, bytes, reads, fx);
                self.intake.on_received(reads);
                self.advance(now, bytes, fx);
            }
            Input::Resume { bytes } => self.advance(now, bytes, fx),
            Input::Message { from, message } => self.on_message(now, from, message, fx),
            Input::Told { message } => self.on_told(now, message, fx),
            Input::Drained { conn } => match self.peers.of(conn) {
                Some(links) => links.on_drained(conn, fx),
                None => self.connections.on_drained(conn),
            },
            Input::Ended { conn } => match self.peers.of(conn) {
                Some(_) => fx.at_once.closes.push((conn, Close::AfterReplies)),
                None => self.on_ended(conn),
            },
            Input::Closed { conn } => match self.peers.of(conn) {
                Some(links) => links.on_closed(now, conn, fx),
                None => self.on_closed(conn),
            },
            Input::Undialled { token, error } => self.on_undialled(now, token, &error),
            Input::Tick => self.on_tick(now, fx),
            Input::Disk(done) => self.on_disk(now, done, fx),
            Input::Stop => {
                self.stop.on_stop(now);
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
