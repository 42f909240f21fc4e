//! When periodic work is due between requests: expiry, eviction, compaction, closing idle clients.

use super::connections::Connections;
use rufous_base::{ConnId, Effects, Now, WorkerId};
use std::fmt::Display;

/// Period of a worker's maintenance, in microseconds.
const PERIOD_US: u64 = 100_000;

/// Delay before the next compaction step if one did not suffice.
const TIDY_PERIOD_US: u64 = 1_000;
/// While slots wait for the leader, which waits for what workers report.
const WAITING_PERIOD_US: u64 = 10_000;

/// Keys that expire in one step: few enough not to delay requests. While more are due there is a
/// step in every turn, so that requests and expiry alternate and a million keys are removed within
/// about a second.
pub(super) const EXPIRE_BUDGET: usize = 128;

/// Budget of one step, about in microseconds, for work that commands on large collections have
/// left.
pub(super) const SWEEP_BUDGET: usize = 128;

/// Records that one step of compaction may move.
pub(super) const MAINTAIN_BUDGET: usize = 128;

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

    /// Whether keys that are due are removed between requests.
    pub(super) fn expires(&self) -> bool {
        !self.keeps_expired
    }

    /// A tick ends; the next one is in so many microseconds.
    pub(super) fn on_tick<M>(&mut self, now: Now, period_us: u64, fx: &mut Effects<M>) {
        self.wake_us = now.mono_us + period_us;
        fx.wake_at_us = Some(self.wake_us);
    }

    /// A step ends, and the next tick may be needed earlier, at one of these times.
    pub(super) fn on_step<M>(
        &mut self,
        now: Now,
        times: impl IntoIterator<Item = u64>,
        fx: &mut Effects<M>,
    ) {
        let next = match self.wake_us {
            0 => now.mono_us + PERIOD_US,
            wake => wake,
        };
        let wake = times.into_iter().fold(next, u64::min);
        if wake != self.wake_us {
            self.wake_us = wake;
            fx.wake_at_us = Some(wake);
        }
    }

    /// Clients that have been idle for longer than `timeout_s`, once a second.
    pub(super) fn idle(&mut self, now: Now, timeout_s: u64, all: &Connections) -> Vec<ConnId> {
        let timeout_us = timeout_s * 1_000_000;
        if timeout_us == 0 || now.mono_us < self.idle_checked_us + 1_000_000 {
            return Vec::new();
        }
        self.idle_checked_us = now.mono_us;
        let idle = all.clients().filter(|c| {
            let idle_us = now.mono_us.saturating_sub(c.last_active_us);
            !c.monitor && !c.is_blocked() && idle_us > timeout_us
        });
        idle.map(|c| c.id).collect()
    }

    /// Logs when clocks begin to lead too far for writes of lattice keys, and when they no longer do.
    pub(super) fn on_clocks(&mut self, worker: WorkerId, excess: Option<impl Display>) {
        if excess.is_some() == self.clocks_lead {
            return;
        }
        self.clocks_lead = excess.is_some();
        let worker = worker.0;
        match excess {
            Some(why) => tracing::error!(worker, "{why}"),
            None => tracing::info!(worker, "clocks agree again: lattice keys are written"),
        }
    }

    /// So many commands have run since the start, or since statistics were reset.
    pub(super) fn on_commands(&mut self, now: Now, commands: impl FnOnce() -> u64) {
        let sample = &mut self.sample;
        let elapsed = now.mono_us.saturating_sub(sample.at_us);
        if elapsed < 1_000_000 {
            return;
        }
        let commands = commands();
        sample.per_second = (commands - sample.commands.min(commands)) * 1_000_000 / elapsed;
        sample.commands = commands;
        sample.at_us = now.mono_us;
    }

    /// Commands per second, over about the last second.
    pub(super) fn per_second(&self) -> u64 {
        self.sample.per_second
    }
}

/// The time until the next tick, where work is left that must not delay requests.
pub(super) fn period_us(removes: bool, tidies: bool, waits: bool) -> u64 {
    let period_us = match (removes, tidies) {
        (true, _) => 0,
        (false, true) => TIDY_PERIOD_US,
        (false, false) => PERIOD_US,
    };
    period_us.min(if waits { WAITING_PERIOD_US } else { period_us })
}

#[cfg(test)]
mod tests {
    use super::super::outbox::Place;
    use super::super::testing::{id, info};
    use super::*;

    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            ..Now::default()
        }
    }

    #[test]
    fn the_driver_hears_of_an_earlier_tick_once() {
        let (mut cron, mut fx) = (Cron::default(), Effects::<()>::default());
        cron.on_step(at(5), [], &mut fx);
        assert_eq!(fx.wake_at_us.take(), Some(5 + PERIOD_US));
        cron.on_step(at(6), [900], &mut fx);
        assert_eq!((cron.wake_us(), fx.wake_at_us.take()), (900, Some(900)));
        cron.on_step(at(7), [950], &mut fx);
        assert_eq!(fx.wake_at_us.take(), None);
        cron.on_tick(at(900), period_us(false, true, false), &mut fx);
        assert_eq!(fx.wake_at_us.take(), Some(900 + TIDY_PERIOD_US));
        cron.wake_by(2000, &mut fx);
        assert_eq!(fx.wake_at_us, None);
    }

    #[test]
    fn clients_that_do_nothing_are_idle_and_others_are_not() {
        let (mut cron, mut all) = (Cron::default(), Connections::default());
        let place = Place {
            own: WorkerId(0),
            workers: 1,
        };
        for slot in 0..3 {
            all.on_opened(at(1_000_000), id(slot, 1), info(), place);
        }
        all.get(id(1, 1)).expect("open").monitor = true;
        all.get(id(2, 1)).expect("open").last_active_us = 3_000_000;
        assert_eq!(cron.idle(at(4_000_001), 0, &all), []);
        assert_eq!(cron.idle(at(4_000_001), 3, &all), [id(0, 1)]);
        assert_eq!(cron.idle(at(4_900_000), 1, &all), [], "once a second");
    }

    #[test]
    fn the_rate_of_commands_is_that_of_the_last_second() {
        let mut cron = Cron::default();
        cron.on_commands(at(1_000_000), || 50);
        cron.on_commands(at(1_500_000), || panic!("too early"));
        cron.on_commands(at(3_000_000), || 250);
        assert_eq!(cron.per_second(), 100);
        // Statistics were reset.
        cron.on_commands(at(4_000_000), || 30);
        assert_eq!(cron.per_second(), 0);
    }
}
