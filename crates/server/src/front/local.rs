//! The interface of one worker for commands on connections or on the server.
//!
//! Such commands access neither the kernel nor the fields of the front: what they need is a method
//! here, and a question to all workers gets the same type at each of them.

use super::Front;
use super::blocked::end_of;
use super::connection::Connection;
use super::figures::Base;
use super::guesses;
use super::latency::LatencyLog;
use super::listing::Table;
use super::orders::SaveOrder;
use super::session::Pause;
use super::shared::{Counters, Shared};
use super::slow::SlowLog;
use super::transaction::listed::{self, Listed};
use crate::cluster::figures::Figures as PeerFigures;
use crate::cluster::links::Links;
use crate::command::CommandTable;
use crate::config::Config;
use rufous_base::{ConnId, NodeEffect, Now, WorkerId};
use rufous_command::Failure;
use rufous_kernel::keyspace::Keyspaces;
use rufous_kernel::shard::{Item, ListStep, Listing};
use rufous_kernel::stats::CommandStats;
use rufous_wire::message::How;

/// Keys of a slot that one step visits.
const SLOT_STEP: usize = 1024;

/// One worker, as commands see it.
pub struct Local<'a> {
    pub(super) front: &'a mut Front,
}

/// The worker's identity and its shared knowledge.
impl Local<'_> {
    pub fn id(&self) -> WorkerId {
        self.front.id()
    }

    pub fn workers(&self) -> usize {
        self.front.kernel.placement().workers()
    }

    /// The worker that runs commands of this worker's connections on a key, and lists it to them.
    pub fn owner(&self, key: &[u8]) -> WorkerId {
        self.front.kernel.placement().owner(key)
    }

    /// Whether there are lattice keys.
    pub fn has_lattice(&self) -> bool {
        self.front.kernel.placement().has_lattice()
    }

    /// The table of keyspaces by which keys are listed.
    pub fn table_of_lists(&self) -> Table {
        let kernel = &self.front.kernel;
        if kernel.is_converting() {
            Table::Converting
        } else if kernel.placement().has_lattice() {
            Table::Lattice(kernel.keyspaces().version())
        } else {
            Table::Strict
        }
    }

    /// Whether replicas at other workers serve connections of this one.
    pub fn is_served_by_others(&self) -> bool {
        let placement = self.front.kernel.placement();
        let workers = placement.workers();
        placement.any_lattice(|keyspace| keyspace.spread(workers) < workers)
    }

    pub fn table(&self) -> &'static CommandTable {
        self.front.table
    }

    pub fn shared(&self) -> &Shared {
        &self.front.shared
    }

    pub fn config(&self) -> &Config {
        &self.front.config
    }

    pub fn keyspaces(&self) -> &Keyspaces {
        self.front.kernel.keyspaces()
    }

    /// Why a table of keyspaces cannot be changed here: other nodes would keep theirs.
    /// `is_lattice`: the old or the new one has lattice keys.
    pub fn refused_tables(&self, is_lattice: bool) -> Option<Failure> {
        (is_lattice && self.front.kernel.shares_lattices()).then(|| {
            "ERR keyspaces are not changed where nodes share some of regime lattice: in a \
             cluster they are those of the configuration files, the same at each node"
                .into()
        })
    }

    /// The gossip period, common to all keyspaces.
    pub fn gossip_us(&self) -> u64 {
        self.front.kernel.placement().gossip_us()
    }

    /// Sessions with other nodes, in a cluster.
    pub fn links(&self) -> Option<&Links> {
        self.front.links()
    }

    pub fn peer_figures(&self) -> PeerFigures {
        self.front.peer_figures().unwrap_or_default()
    }
}

/// The keys of the worker.
impl Local<'_> {
    /// False only if the worker has no listed key; costs nothing.
    pub fn may_list(&self, db: usize, listing: Listing) -> bool {
        self.front.kernel.shard.may_list(db, listing)
    }

    /// Number of listed keys, including expired ones that are not removed yet.
    pub fn len(&self, db: usize, listing: Listing) -> usize {
        self.front.kernel.shard.listed_len(db, listing)
    }

    /// Keys at this worker, including replicas of lattice keys.
    pub fn len_with_replicas(&self, db: usize) -> usize {
        self.front.kernel.shard.len(db)
    }

    /// Strict keys of a slot.
    pub fn slot_len(&self, db: usize, slot: u16) -> usize {
        self.front.kernel.shard.own_slot_len(db, slot)
    }

    /// Visits some listed keys, with their hashes; returns the next cursor.
    pub fn scan(
        &mut self,
        step: ListStep,
        now: Now,
        each: &mut dyn FnMut(u32, Item<'_>),
    ) -> Option<u32> {
        self.front.kernel.shard.scan_listed(step, now, each)
    }

    /// Visits some strict keys of a slot from a cursor; returns the next cursor.
    pub fn scan_slot(
        &mut self,
        (db, slot): (usize, u16),
        from: u32,
        now: Now,
        each: &mut dyn FnMut(&[u8]),
    ) -> Option<u32> {
        let placement = self.front.kernel.placement().clone();
        let shard = &mut self.front.kernel.shard;
        shard.scan_slot((db, slot), from, SLOT_STEP, now, &mut |item| {
            if placement.lattice(item.key).is_none() {
                each(item.key);
            }
        })
    }

    /// Whether the worker has the key, and it is listed.
    pub fn lists(&mut self, of: (usize, Listing), name: &[u8], now: Now) -> bool {
        let key = self.front.kernel.shard.key(name);
        self.front.kernel.shard.lists(of, key, now)
    }

    /// A random listed key, and the number of keys that it was drawn from.
    pub fn random_key(&mut self, db: usize, listing: Listing, now: Now) -> (Option<Vec<u8>>, u64) {
        // In this order: the draw removes expired keys that it meets.
        let key = self.front.kernel.random_key(db, listing, now);
        (key, self.len(db, listing) as u64)
    }

    /// A random number below `limit`; 0 if that is 0.
    pub fn draw(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        self.front.kernel.rng().below(limit)
    }

    /// Whether active expiry is on (`DEBUG SET-ACTIVE-EXPIRE`).
    pub fn expire_by_itself(&mut self, expire: bool) {
        self.front.cron.expire(expire);
    }
}

/// The connections of the worker.
impl Local<'_> {
    pub fn clients(&self) -> impl Iterator<Item = &Connection> {
        self.front.connections.clients()
    }

    pub fn close_now(&mut self, conn: ConnId) {
        self.front.connections.close_now(conn);
    }

    pub fn close_after_reply(&mut self, conn: ConnId) {
        self.front.connections.close_after_reply(conn);
    }

    /// Pauses clients. Those that wait for data get none meanwhile, as all blocking commands write.
    pub fn start_pause(&mut self, now: Now, timeout_us: u64, writes_only: bool) {
        self.front.pause.begin(now, timeout_us, writes_only);
        self.front.kernel.hold_waiters(true);
    }

    /// Ends the pause. Clients that wait for data are served at the end of the step.
    pub fn end_pause(&mut self) {
        self.front.pause = Pause::default();
        self.front.kernel.hold_waiters(false);
    }

    /// Ends a client's wait for data; returns whether it waited.
    pub fn end_wait_of(&mut self, now: Now, client: u64, with_error: bool) -> bool {
        let front = &mut *self.front;
        let mut all = front.connections.iter();
        let found = all.find(|c| c.client_id == client && c.is_blocked());
        let Some(conn) = found.map(|c| c.id) else {
            return false;
        };
        let how = if with_error {
            How::Unblocked
        } else {
            How::TimedOut
        };
        front.kernel.end_wait(conn, end_of(how)) || front.peers.forwarding.on_end(now, conn, how)
    }

    pub fn end_transaction(&mut self, conn: ConnId) {
        self.front.end_transaction(conn);
    }

    /// The transactions of this worker's clients.
    pub(crate) fn transactions(&self, now: Now) -> Vec<Listed> {
        listed::list(self.front, now)
    }

    /// Aborts what a client has begun; returns whether there was something.
    pub fn kill_transaction(&mut self, now: Now, client: u64) -> bool {
        listed::kill(self.front, now, client)
    }

    /// Stops sending `MONITOR` lines to the connection.
    pub fn end_monitor(&mut self, conn: ConnId) {
        self.front.shared.monitors_changed(-1);
        self.front.out.unpush(conn);
    }

    /// A client at this address, `ip:port`, has sent a wrong password.
    pub fn note_auth_failure(&mut self, now: Now, peer: &str) {
        self.front.counters.auth_failures += 1;
        let Some(address) = guesses::address_of(peer) else {
            return;
        };
        if self.front.shared.guesses().on_wrong(now.mono_us, address) {
            tracing::warn!(%address, "many wrong passwords from this address: further ones are checked slowly");
        }
    }

    /// A session goes on here; whether it had to wait for that.
    pub(crate) fn note_session_resumed(&mut self, waited: bool) {
        let counters = &mut self.front.counters;
        counters.sessions_resumed += 1;
        counters.sessions_waited += u64::from(waited);
    }

    /// A session does not go on here, as this node lacks what it has seen.
    pub(crate) fn note_session_behind(&mut self) {
        self.front.counters.sessions_behind += 1;
    }

    /// A password was not checked: too many of its address wait.
    pub fn note_auth_refusal(&mut self) {
        self.front.counters.auth_refused += 1;
    }
}

/// Statistics.
impl Local<'_> {
    pub fn slow(&mut self) -> &mut SlowLog {
        &mut self.front.timing.slow
    }

    pub fn latency(&mut self) -> &mut LatencyLog {
        &mut self.front.timing.latency
    }

    pub fn command_stats(&self) -> Vec<CommandStats> {
        self.front.kernel.stats().to_vec()
    }

    pub fn publish_memory(&self) {
        self.front.shared.publish_memory(&self.front.kernel);
    }

    /// `CONFIG RESETSTAT`.
    pub fn reset_statistics(&mut self) {
        let front = &mut *self.front;
        let stats = front.kernel.stats_mut().iter_mut();
        stats.for_each(|stats| *stats = CommandStats::default());
        front.counters = Counters::default();
        front.base = Base::of(&front.kernel);
    }
}

/// The node, accessed through this worker.
impl Local<'_> {
    /// Changes the settings of the node, all or nothing; workers have yet to apply them.
    pub fn change_settings<E>(
        &self,
        change: impl FnOnce(&mut Config) -> Result<(), E>,
    ) -> Result<(), E> {
        self.front
            .shared
            .change_settings(&self.front.config, change)
    }

    /// Applies the settings of the node.
    pub fn take_settings(&mut self) {
        if let Some(config) = self.front.shared.settings() {
            self.front.configure(config);
        }
    }

    /// Tells the driver of a changed `maxclients`.
    pub fn announce_maxclients(&mut self) {
        let most = self.front.config.maxclients;
        self.front.out.ask_driver(NodeEffect::MaxClients(most));
    }

    /// Blocks the worker after the request (`DEBUG SLEEP`).
    pub fn stall(&mut self, us: u64) {
        self.front.timing.on_stall(us);
        self.front.out.ask_driver(NodeEffect::Stall(us));
    }

    pub fn shut_down(&mut self) {
        self.front.out.ask_driver(NodeEffect::Shutdown);
    }

    /// Keeps files for a backup as long as the connection lives.
    pub fn keep_pin(&mut self, conn: ConnId, pin: u64) {
        if self.front.connection(conn).is_some() {
            self.front.durability.orders.keep_pin(conn, pin);
        } else {
            self.front.order_save(SaveOrder::Unpin(pin), None);
        }
    }

    pub fn forget_pin(&mut self, pin: u64) {
        self.front.durability.orders.forget_pin(pin);
    }

    /// When the last snapshot was installed, or the node started.
    pub fn last_save_time_s(&self) -> u64 {
        match self.front.durability.info.node.last_save_time_s {
            0 => self.front.shared.started_unix_us / 1_000_000,
            seconds => seconds,
        }
    }
}
