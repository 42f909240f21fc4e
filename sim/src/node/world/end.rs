//! The end of a run: faults stop, all requests have to finish, and all keys are
//! audited, before and after a last restart.

use super::{CALM_LIMIT_US, Power, World};
use crate::model;
use crate::node::client::Client;
use crate::node::plan::Ending;
use crate::oracle::linear;

impl World {
    /// Faults stop, and pending requests finish.
    pub(super) fn come_to_rest(&mut self) {
        self.calm = true;
        self.disk.faulty = false;
        self.disk.full = false;
        self.engine.note("world", format_args!("faults stop"));
        self.rest();
    }

    pub(super) fn rest(&mut self) {
        if self.failed() {
            return;
        }
        // Time for a sync of `everysec`, for tries after a failed write, and
        // for a snapshot that repairs what a failed sync may have lost.
        self.pass_us(4_000_000);
        let limit = self.engine.now_us + CALM_LIMIT_US;
        self.until("nothing is under way", limit, |w| {
            w.clients.iter().all(Client::is_done)
                && w.queues.rest()
                && w.lattice.rest()
                && w.seats.iter().all(|s| s.is_idle())
        });
    }

    pub(super) fn failed(&self) -> bool {
        self.engine.has_failed() || self.power == Power::Refused
    }

    /// Reads all keys, and checks what workers know of themselves.
    pub(super) fn look_at_everything(&mut self, when: &str) {
        if self.failed() {
            return;
        }
        self.engine
            .note("world", format_args!("looks at everything {when}"));
        self.audit = (0..self.history.units.len()).collect();
        let operator = self.operator();
        self.act_in(operator, 1);
        let limit = self.engine.now_us + CALM_LIMIT_US;
        self.until("everything is read", limit, |w| w.audit.is_empty());
        self.rest();
        self.look_at_queues();
        self.look_at_lattice();
        for seat in &self.seats {
            seat.front.kernel.shard.check();
        }
    }

    pub(super) fn end_and_start_again(&mut self) {
        if self.failed() {
            return;
        }
        if self.plan.last == Ending::Clean {
            self.stop();
            let limit = self.engine.now_us + CALM_LIMIT_US;
            self.until("the node has stopped", limit, |w| {
                w.power == Power::Stopping(0)
            });
        }
        if self.failed() {
            return;
        }
        self.end_life(self.plan.last, 0);
        self.pass_us(100_000);
        if self.plan.last_workers != self.plan.workers {
            self.engine.reach("workers changed");
        }
        self.start(self.plan.last_workers);
        self.look_at_everything("after a restart");
    }

    /// Asks the oracles.
    pub(super) fn judge(&mut self) {
        let world = model::World {
            clock: &self.clock,
            evicts: self.plan.evicts(),
        };
        for unit in 0..self.history.units.len() {
            let verdict = linear::check(&self.history, unit, &world, self.engine.now_us);
            self.history.unsure += u64::from(verdict.unsure);
            if verdict.lost {
                self.engine.reach("loss allowed and seen");
            }
            if let Some(failure) = verdict.failure {
                self.engine.fail(failure);
            }
        }
    }
}
