//! One node: its workers, its disk and its clock, over all its lives.

use super::coordinator::control;
use super::plan::{PREFIX, Plan};
use super::strangers;
use crate::engine::disk::Disk;
use crate::engine::random::Random;
use crate::node::plan::Mode;
use crate::node::seat::Seat;
use rufous_base::disk::DiskOp;
use rufous_base::limits::LEFT_PATIENCE_US;
use rufous_base::limits::MAX_STAMP_LEAD_US;
use rufous_base::{Now, WorkerId};
use rufous_cluster::control::{Control, Kept};
use rufous_kernel::keyspace::{Keyspace, Regime};
use rufous_kernel::worker::Past;
use rufous_mapping::{Folder, Member, NodeId};
use rufous_server::cluster::{Cluster, Settings};
use rufous_server::config::{AppendFsync, Config};
use rufous_server::front::Front;
use rufous_server::front::shared::Shared;
use rufous_wire::version::{LETTERS, NEWEST, OLDEST};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Wall clocks are closer than what refuses changes of lattice keys.
const MAX_AHEAD_US: u64 = MAX_STAMP_LEAD_US - 2_000_000;

/// What the wall clock shows at time zero.
const START_US: u64 = 1_700_000_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    /// It has not started yet.
    New,
    Up,
    /// This many workers have not stopped yet.
    Stopping(usize),
    Down,
    /// It has drained, and does not come back.
    Gone,
}

pub(super) struct Node {
    pub(super) index: usize,
    pub(super) id: NodeId,
    pub(super) incarnation: u64,
    pub(super) workers: usize,
    /// Counts starts; what is of an earlier one does not happen any more.
    pub(super) life: u32,
    pub(super) power: Power,
    /// When it was asked to stop.
    pub(super) stop_us: u64,
    pub(super) drains: bool,
    /// The newest wire version that it speaks in this life.
    pub(super) newest: u16,
    pub(super) seats: Vec<Seat>,
    pub(super) shared: Option<Arc<Shared>>,
    pub(super) disk: Disk,
    /// What its folder records: the log has everything, as no power was lost since it served.
    is_whole: bool,
    pub(super) paused_until_us: u64,
    /// Until when a worker of it was last paused.
    pub(super) stalled_until_us: u64,
    /// Until when it, or a worker of it, was last paused or slow.
    pub(super) troubled_us: u64,
    /// Its turns take this many times as long until then.
    pub(super) slow: (u64, u64),
    /// Whether the coordinator and the node reach each other from then on.
    pub(super) alone_until_us: u64,
    /// Which mapping it acts by, and which of its workers know.
    pub(super) control: Control,
    /// The last mapping that it acted by, which its folder keeps: where the coordinator may lose that.
    pub(super) kept: Kept,
    /// When the last message between two workers arrives.
    pub(super) last_message_us: BTreeMap<(usize, usize), u64>,
    offset_us: u64,
    drift: i64,
    /// How far ahead its wall clock is, where nodes share lattice keys; else it is as far off as its own clock.
    ahead_us: Option<u64>,
}

impl Node {
    pub(super) fn new(index: usize, plan: &Plan, random: &mut Random) -> Self {
        let drift = random.between(0, 2 * plan.drift) as i64 - plan.drift as i64;
        let offset_us = 1_000_000 + random.below(1_000_000_000);
        Self {
            index,
            id: NodeId([index as u8; 20]),
            incarnation: 0,
            workers: plan.workers[index],
            life: 0,
            power: Power::New,
            stop_us: u64::MAX,
            drains: false,
            newest: NEWEST,
            seats: Vec::new(),
            shared: None,
            disk: Disk::new(plan.seed ^ index as u64, plan.disk.clone()),
            is_whole: false,
            paused_until_us: 0,
            stalled_until_us: 0,
            troubled_us: 0,
            slow: (1, 0),
            alone_until_us: 0,
            control: control(
                NodeId([index as u8; 20]),
                plan.copies,
                (0, None),
                Kept::default(),
            ),
            kept: Kept::default(),
            last_message_us: BTreeMap::new(),
            offset_us,
            drift,
            ahead_us: plan.loose.as_ref().map(|_| offset_us % MAX_AHEAD_US),
        }
    }

    /// Its own clock.
    pub(super) fn clock(&self, us: u64) -> u64 {
        let drifted = us as i64 * self.drift / 1_000;
        (self.offset_us as i64 + us as i64 + drifted) as u64
    }

    pub(super) fn now(&self, us: u64) -> Now {
        Now {
            mono_us: self.clock(us),
            unix_us: START_US + self.ahead_us.map_or(self.clock(us), |ahead| us + ahead),
        }
    }

    /// When its clock shows at least this.
    pub(super) fn when(&self, local_us: u64) -> u64 {
        let passed = local_us.saturating_sub(self.offset_us) as i64;
        let mut at = (passed * 1_000 / (1_000 + self.drift)).max(0) as u64;
        while self.clock(at) < local_us {
            at += 1;
        }
        at
    }

    /// Whether it may refuse what waits: it was asked to stop long enough ago. Its clock may run faster.
    /// What it has said arrives when it may have ended.
    pub(super) fn may_give_up(&self, now_us: u64) -> bool {
        now_us >= self.stop_us.saturating_add(LEFT_PATIENCE_US / 10 * 9)
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.power, Power::Up | Power::Stopping(_))
    }

    pub(super) fn member(&self) -> Member {
        Member {
            id: self.id,
            incarnation: self.incarnation,
            peer: format!("node-{}:7379", self.index),
            plain: String::new(),
            cluster: format!("node-{}:6379", self.index),
            zone: String::new(),
            weight: 100,
            workers: self.workers as u16,
            drains: self.drains,
            folder: Folder::After(self.incarnation - 1),
        }
    }

    pub(super) fn start(&mut self, plan: &Plan, us: u64, start: u64) {
        self.life += 1;
        self.power = Power::Up;
        (self.paused_until_us, self.stalled_until_us) = (0, 0);
        self.stop_us = u64::MAX;
        self.disk.new_life();
        if plan.mode == Mode::Off {
            // Nothing is left of it: it is another node now.
            self.incarnation = 1;
            let mut id = [self.index as u8; 20];
            id[1] = self.life as u8;
            self.id = NodeId(id);
        } else {
            self.incarnation += 1;
        }
        // Upgraded by a start, and taken back by another.
        // Of the first two versions: saved seeds mean these.
        self.newest = OLDEST + (start % 2) as u16;
        if plan.has_spread() {
            // Nodes of earlier versions have no part in transactions over slots.
            self.newest = self.newest.max(LETTERS);
        }
        if plan.is_new() {
            self.newest = NEWEST - u16::from(start % 4 == 3);
        }
        let local = rufous_wire::Local {
            cluster: "world".into(),
            id: self.id.0,
            incarnation: self.incarnation,
            start,
            oldest: OLDEST,
            newest: self.newest,
            program: String::new(),
        };
        let auth = plan.has_secret().then(|| strangers::auth(start)).flatten();
        let mut cluster = Cluster::guarded(Settings::new("world"), local, auth);
        cluster.past = self.past();
        let cluster = Arc::new(cluster);
        let config = Arc::new(config(plan, self.index, self.workers));
        let mut shared = Shared::new(
            self.workers,
            plan.seed ^ u64::from(self.life) ^ (self.index as u64) << 32,
            "0123456789".repeat(4),
            self.now(us).unix_us,
            config.port,
        );
        shared.cluster = Some(cluster);
        let shared = Arc::new(shared);
        let front = |w| Front::new(WorkerId(w as u16), Arc::clone(&shared), Arc::clone(&config));
        self.seats = (0..self.workers).map(|w| Seat::new(front(w))).collect();
        self.shared = Some(shared);
        self.control = control(
            self.id,
            plan.copies,
            (self.workers, None),
            self.kept.clone(),
        );
        self.last_message_us.clear();
    }

    fn past(&mut self) -> Past {
        let is_new = self.incarnation == 1;
        self.is_whole |= is_new;
        match (is_new, self.is_whole) {
            (true, _) => Past::New,
            (false, true) => Past::Whole,
            (false, false) => Past::Unknown,
        }
    }

    /// Ends at once. What was written stays, but for what the power takes.
    pub(super) fn end(&mut self, power_lost: bool) {
        let mut probes = crate::engine::probes::Probes::default();
        for seat in &self.seats {
            for queue in &seat.lanes {
                if let (Some(_), Some(request)) = (queue.begun, queue.requests.front()) {
                    let op: &DiskOp = &request.op;
                    self.disk.interrupt(op);
                }
            }
        }
        let cluster = self.shared.as_ref().and_then(|of| of.cluster.as_ref());
        self.is_whole |= cluster.is_some_and(|of| of.common.health.known().serves);
        if power_lost {
            self.disk.lose_power(&mut probes);
            self.is_whole = false;
        }
        self.seats.clear();
        self.life += 1;
        self.power = Power::Down;
    }
}

fn config(plan: &Plan, node: usize, workers: usize) -> Config {
    let appendfsync = match plan.mode {
        Mode::Off | Mode::No => AppendFsync::No,
        Mode::Everysec => AppendFsync::Everysec,
        Mode::Always => AppendFsync::Always,
    };
    Config {
        workers,
        folder: plan.mode != Mode::Off,
        appendonly: plan.mode != Mode::Off,
        appendfsync,
        log_segment_size: 64 << 10,
        protected_mode: false,
        keyspaces: keyspaces(plan, node),
        ..Config::in_memory()
    }
}

fn keyspaces(plan: &Plan, node: usize) -> Vec<Keyspace> {
    let keyspace = plan.loose.as_ref().map(|loose| Keyspace {
        regime: Regime::Lattice,
        threads: loose.threads[node],
        cut: loose.cut,
        gossip_ms: loose.gossip_ms[node],
        ..Keyspace::new("loose", PREFIX.as_bytes())
    });
    keyspace.into_iter().collect()
}
