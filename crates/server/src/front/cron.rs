//! Periodic work between requests: expiry, eviction, compaction, closing idle clients.

use super::local::Local;
use super::{Front, Message};
use rufous_base::{Effects, Now};

/// Period of a worker's maintenance, in microseconds.
const PERIOD_US: u64 = 100_000;

/// Delay before the next compaction step if one did not suffice.
const TIDY_PERIOD_US: u64 = 1_000;
/// While slots wait for the leader, which waits for what workers report.
const WAITING_PERIOD_US: u64 = 10_000;

/// Keys that expire in one step: few enough not to delay requests. While more are due there is a
/// step in every turn, so that requests and expiry alternate and a million keys are removed within
/// about a second.
const EXPIRE_BUDGET: usize = 128;

/// Budget of one step, about in microseconds, for work that commands on large collections have
/// left.
const SWEEP_BUDGET: usize = 128;

/// Records that one step of compaction may move.
const MAINTAIN_BUDGET: usize = 128;

/// Times of the last maintenance steps.
#[derive(Debug, Default)]
pub(crate) struct Cron {
    /// The time of the next tick, as the driver was told.
    wake_us: u64,
    idle_checked_us: u64,
    /// Writes of lattice keys are refused, as clocks lead too far.
    clocks_lead: bool,
    /// Active expiry is off (`DEBUG SET-ACTIVE-EXPIRE`).
    keeps_expired: bool,
    sample: Sample,
}

/// Operations per second, over about the last second.
#[derive(Debug, Default)]
struct Sample {
    at_us: u64,
    commands: u64,
    per_second: u64,
}

impl Cron {
    /// The time of the next tick.
    pub(crate) fn wake_us(&self) -> u64 {
        self.wake_us
    }

    pub(crate) fn set_wake_us(&mut self, at: u64) {
        self.wake_us = at;
    }

    /// Has the driver wake the worker earlier, if this is earlier.
    pub(super) fn wake_by<M>(&mut self, at: u64, fx: &mut Effects<M>) {
        if at < self.wake_us {
            self.wake_us = at;
            fx.wake_at_us = Some(at);
        }
    }

    /// Switches active expiry on or off.
    pub(super) fn expire(&mut self, expires: bool) {
        self.keeps_expired = !expires;
    }
}

impl Front {
    pub(super) fn on_tick(&mut self, now: Now, fx: &mut Effects<Message>) {
        if self.pause.is_active() && now.mono_us >= self.pause.until_us {
            Local { front: self }.end_pause();
        }
        // Nothing may change before the log has begun.
        let may_change = !self.durability.is_loading();
        self.kernel.end_due_waits(now);
        let expiring = may_change
            && !self.cron.keeps_expired
            && self.kernel.shard.expire_step(now, EXPIRE_BUDGET);
        let evicting = may_change && self.kernel.evict_step(now);
        // Expiry and eviction make the holes that compaction fills: so compaction runs after them.
        let tidying = !expiring && !evicting && self.kernel.maintain_step(MAINTAIN_BUDGET);
        let sweeping = self.kernel.shard.sweep_step(SWEEP_BUDGET);
        self.drop_idle_clients(now);
        self.end_long_transactions(now);
        self.look_at_clocks(now);
        self.sample(now);
        let period = match (expiring || evicting, tidying || sweeping) {
            (true, _) => 0,
            (false, true) => TIDY_PERIOD_US,
            (false, false) => PERIOD_US,
        };
        self.publish_memory();
        self.durability.on_tick(now, &mut self.kernel);
        self.deliver_outcomes(fx);
        let stops = self.stop.has_begun();
        fx.node
            .extend(self.durability.on_ticked(stops, &self.kernel));
        self.tick_peers(now, fx);
        self.give_up_others(now, fx);
        let waits = self.kernel.waits_to_act();
        let period = period.min(if waits { WAITING_PERIOD_US } else { period });
        self.answer_board();
        self.cron.wake_us = now.mono_us + period;
        fx.wake_at_us = Some(self.cron.wake_us);
    }

    /// Schedules the next tick, early enough to end a pause or a wait for data in time.
    pub(super) fn wake_in_time(&mut self, now: Now, fx: &mut Effects<Message>) {
        let mut wake = match self.cron.wake_us {
            0 => now.mono_us + PERIOD_US,
            wake => wake,
        };
        if self.pause.is_active() {
            wake = wake.min(self.pause.until_us.max(now.mono_us));
        }
        if let Some(at) = self.kernel.waiting_clients().next_deadline_us() {
            wake = wake.min(at.max(now.mono_us));
        }
        if let Some(at) = self.farewell.wake_us(now, &self.connections) {
            wake = wake.min(at);
        }
        if let Some(at) = self.peers.forwarding.wake_us() {
            wake = wake.min(at.max(now.mono_us));
        }
        if wake != self.cron.wake_us {
            self.cron.wake_us = wake;
            fx.wake_at_us = Some(wake);
        }
    }

    /// Closes connections that have been idle for longer than `timeout`.
    fn drop_idle_clients(&mut self, now: Now) {
        let timeout_us = self.config.timeout_s * 1_000_000;
        if timeout_us == 0 || now.mono_us < self.cron.idle_checked_us + 1_000_000 {
            return;
        }
        self.cron.idle_checked_us = now.mono_us;
        let idle = self.connections.iter().filter(|c| {
            !c.info.is_internal()
                && !c.monitor
                && !c.is_blocked()
                && now.mono_us.saturating_sub(c.last_active_us) > timeout_us
        });
        let idle: Vec<_> = idle.map(|c| c.id).collect();
        idle.into_iter()
            .for_each(|id| self.connections.close_now(id));
    }

    /// Logs when clocks begin to lead too far for writes of lattice keys, and when they no longer do.
    fn look_at_clocks(&mut self, now: Now) {
        let excess = self.kernel.clocks_lead(now);
        if excess.is_some() == self.cron.clocks_lead {
            return;
        }
        self.cron.clocks_lead = excess.is_some();
        let worker = self.id().0;
        match excess {
            Some(why) => tracing::error!(worker, "{why}"),
            None => tracing::info!(worker, "clocks agree again: lattice keys are written"),
        }
    }

    fn sample(&mut self, now: Now) {
        let sample = &mut self.cron.sample;
        let elapsed = now.mono_us.saturating_sub(sample.at_us);
        if elapsed < 1_000_000 {
            return;
        }
        let commands = self.kernel.stats().iter().map(|s| s.calls).sum::<u64>();
        sample.per_second = (commands - sample.commands.min(commands)) * 1_000_000 / elapsed;
        sample.commands = commands;
        sample.at_us = now.mono_us;
    }

    /// Commands per second, over about the last second.
    pub fn commands_per_second(&self) -> u64 {
        self.cron.sample.per_second
    }

    /// Publishes this worker's memory usage to the other workers.
    pub(crate) fn publish_memory(&self) -> usize {
        let bytes = self.kernel.memory().total();
        self.shared.memory_changed(self.id().index(), bytes);
        bytes
    }
}
