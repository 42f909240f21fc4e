//! The node starts, and comes to its ends.

use super::{Power, What, World};
use crate::history::{Epoch, Kept};
use crate::node::lattice::Space;
use crate::node::plan::{BOUND_BYTES, BOUND_MS, Crash, Ending};
use crate::node::seat::{Arrival, Seat};
use crate::node::settings;
use crate::oracle::promise::{Slowness, Unsynced};
use rufous_base::disk::DiskOp;
use rufous_base::{ConnInfo, Origin, WorkerId};
use rufous_kernel::worker::LogState;
use rufous_server::front::Front;
use rufous_server::front::shared::Shared;
use std::sync::Arc;

/// Virtual time that stopping in good order may take while the disk fails.
const STOP_LIMIT_US: u64 = 120_000_000;

impl World {
    pub(super) fn start(&mut self, workers: usize) {
        self.life += 1;
        self.power = Power::Up;
        self.disk.new_life();
        self.modes.new_life(self.engine.now_us);
        self.engine.note(
            "node",
            format_args!("starts with {workers} workers, life {}", self.life),
        );
        let mut config = settings::config(&self.plan, workers);
        if self.lattice.declared {
            let spaces = self.lattice.spaces.iter();
            config.keyspaces = spaces.map(Space::keyspace).collect();
        }
        let config = Arc::new(config);
        let shared = Arc::new(Shared::new(
            workers,
            self.plan.seed ^ u64::from(self.life),
            "0123456789".repeat(4),
            self.now().unix_us,
            config.port,
        ));
        let front = |w| Front::new(WorkerId(w as u16), Arc::clone(&shared), Arc::clone(&config));
        self.shared = Some(Arc::clone(&shared));
        self.seats = (0..workers).map(|w| Seat::new(front(w))).collect();
        self.places.clear();
        self.last_message_us.clear();
        for worker in 0..workers {
            self.seats[worker].ignore_gate = self.fault == crate::engine::Fault::ReplyBeforeSync;
            self.first_steps(worker);
        }
    }

    /// As a real node does: each worker sees a connection from inside that
    /// goes away at once.
    fn first_steps(&mut self, worker: usize) {
        let info = ConnInfo {
            peer: "inside".into(),
            local: "inside".into(),
            is_local: true,
            origin: Origin::Internal,
            certificate: None,
        };
        let conn = self.seats[worker].new_connection();
        self.arrive(worker, Arrival::Opened(conn, info));
        self.arrive(worker, Arrival::Closed(conn));
    }

    pub(super) fn on_crash(&mut self, crash: &Crash) {
        if self.power != Power::Up {
            return;
        }
        if crash.ending == Ending::Clean {
            // Clients must not notice how long it takes.
            self.stop();
            let limit = self.engine.now_us + STOP_LIMIT_US;
            self.until("the node has stopped", limit, |w| {
                w.power == Power::Stopping(0)
            });
        }
        self.end_life(crash.ending, crash.flips);
        if crash.workers != self.plan.workers {
            self.engine.reach("workers changed");
        }
        let at = self.engine.now_us + crash.down_us;
        let workers = crash.workers;
        self.push(at, None, What::Start { workers });
        if let Some(us) = crash.during_load_us {
            let again = Crash {
                ending: Ending::Kill,
                during_load_us: None,
                flips: 0,
                ..crash.clone()
            };
            self.push(at + us, Some(self.life + 1), What::Crash(Box::new(again)));
        }
    }

    /// The log is to be switched on: the next end may come meanwhile, or soon after.
    pub(super) fn end_while_it_switches(&mut self) {
        let is_soon = self.power == Power::Up && self.chance.chance(0.9);
        if let Some(crash) = self.crashes.pop_front_if(|_| is_soon) {
            let at = self.engine.now_us + self.chance.skewed(1_000, 100_000);
            self.push(at, Some(self.life), What::Crash(Box::new(crash)));
        }
    }

    pub(super) fn stop(&mut self) {
        self.power = Power::Stopping(self.seats.len());
        self.stop_keeps = matches!(self.log_state(), LogState::On | LogState::Starting);
        for worker in 0..self.seats.len() {
            self.arrive(worker, Arrival::Stop);
        }
    }

    /// The node is gone. What has left it still arrives.
    pub(super) fn end_life(&mut self, ending: Ending, flips: u32) {
        self.engine.note("node", format_args!("ends: {ending:?}"));
        self.engine.reach(match ending {
            Ending::Clean => "clean stop",
            Ending::Kill => "process killed",
            Ending::PowerLoss => "power lost",
        });
        let mut slow = Slowness {
            sync_us: self.disk.slowest_sync_us,
            failing_since_us: self.disk.failing_since_us,
        };
        self.note_shapes();
        for seat in &self.seats {
            if seat.front.kernel.is_snapshotting() {
                self.engine.reach("crash during snapshot");
            }
            if seat.front.kernel.shard.counters().expired > 0 {
                self.engine.reach("key expired");
            }
            if seat.front.kernel.evictions().evicted > 0 {
                self.engine.reach("evicted");
            }
            if seat.front.kernel.evictions().retired > 0 {
                self.engine.reach("lattice key evicted");
            }
            for queue in &seat.lanes {
                if let (Some(begun), Some(request)) = (queue.begun, queue.requests.front()) {
                    slow.sync_us = slow.sync_us.max(self.engine.now_us - begun.at_us);
                    self.disk.interrupt(&request.op);
                    if matches!(&request.op, DiskOp::Read { .. }) {
                        self.engine.reach("crash during load");
                    }
                }
            }
        }
        let mut kept = self.kept(ending, slow);
        if ending == Ending::PowerLoss {
            self.disk.lose_power(&mut self.engine.probes);
        }
        super::saves::check(self);
        if flips > 0 && kept != Kept::Nothing {
            // Where a frame is whole but for a bit, the node does not take it for one that power cut short.
            if !self.plan.flips_last_frames() {
                kept = Kept::ANY;
            }
            self.flip(flips);
        }
        self.engine
            .note("node", format_args!("has to keep {kept:?}"));
        self.history.end_epoch(Epoch {
            end_us: self.engine.now_us,
            kept,
            trouble_us: self.disk.failing_since_us,
        });
        self.seats.clear();
        self.queues.order.clear();
        self.power = Power::Down;
        for link in 0..self.links.len() {
            if std::mem::take(&mut self.links[link].open) {
                let at = self.arrival_at_client(link);
                self.push(at, None, What::ClientLost { link });
            }
        }
    }

    /// Whether the log is on, as the node shows it.
    fn log_state(&self) -> LogState {
        let first = self.seats.first();
        first.map_or(LogState::Off, |seat| {
            seat.front.kernel.durable_figures().log_state
        })
    }

    /// What has to survive the end of this life.
    fn kept(&mut self, ending: Ending, slow: Slowness) -> Kept {
        let mut kept = self.modes.kept(ending, self.engine.now_us, slow);
        if self.plan.switches_log() {
            let promised = match ending {
                Ending::Clean => self.stop_keeps,
                Ending::Kill | Ending::PowerLoss => self.log_state() == LogState::On,
            };
            self.engine.reach(if promised {
                "log switched on"
            } else {
                "ended without a log"
            });
            return if promised { kept } else { Kept::ANY };
        }
        if self.plan.has_long_syncs()
            && let Kept::Prefix { up_to_us, .. } = &mut kept
        {
            let unsynced = Unsynced::of(&self.history, self.life as usize - 1);
            let least = if self.plan.bounds_bytes() {
                unsynced.within_bytes(BOUND_BYTES)
            } else {
                unsynced.within_us(BOUND_MS * 1_000)
            };
            *up_to_us = least.max(*up_to_us);
        }
        kept
    }

    fn flip(&mut self, flips: u32) {
        let last = self.plan.flips_last_frames();
        for _ in 0..flips {
            if let Some(place) = self.disk.flip(last, &mut self.engine.probes) {
                self.flipped = true;
                self.engine
                    .note("disk", format_args!("a bit changes in {place}"));
            }
        }
    }

    /// The node asks to be stopped: it refuses to start.
    pub(super) fn on_shutdown(&mut self) {
        if self.flipped {
            self.engine.reach("start refused");
            self.power = Power::Refused;
        } else if self.disk.failing_since_us.is_some() && self.power == Power::Up {
            // The operator makes room, or waits, and tries again.
            self.plan.disk.full.clear();
            self.disk.full = false;
            let workers = self.seats.len();
            self.end_life(Ending::Kill, 0);
            self.push(
                self.engine.now_us + 1_000_000,
                None,
                What::Start { workers },
            );
        } else {
            let why = self.shared.as_ref().and_then(|s| s.start_error());
            self.fail(format!("the node stopped by itself: {why:?}"));
        }
    }
}
