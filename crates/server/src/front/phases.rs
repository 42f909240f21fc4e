//! The phases of a worker: its start, ticks, the end of each turn, and the end of the node.

use super::connection::Connection;
use super::durability::Loaded;
use super::local::Local;
use super::orders::SaveOrder;
use super::persistence::COORDINATOR;
use super::{Front, Message, blocked, cron, keyspaces};
use crate::cluster::jobs::is_job;
use rufous_base::disk::DiskDone;
use rufous_base::{Effects, NodeEffect, Now, Output, Until};
use rufous_command::Reply;
use rufous_kernel::Submitted;
use rufous_wire::message::How;

impl Front {
    /// The first step.
    #[cold]
    pub(super) fn begin(&mut self, now: Now) {
        self.declared.on_start(&self.config.keyspaces);
        let begun = self.durability.begin(now, &self.config, &mut self.kernel);
        if begun == Loaded::All {
            self.begin_declaring();
        }
    }

    /// For tests without a disk, whatever the settings say.
    #[cfg(test)]
    pub(super) fn begin_without_disk(&mut self) {
        self.durability.begin_without_disk();
        self.declared.on_start(&self.config.keyspaces);
        self.begin_declaring();
    }

    /// This worker has loaded its data. Worker 0 creates the keyspaces of the configuration file then.
    fn begin_declaring(&mut self) {
        if !self.declared.is_awaited() {
            return self.end_declaring();
        }
        if self.id() == COORDINATOR {
            self.declared.on_loaded(&self.config.keyspaces);
            self.declare_next();
        }
    }

    /// All keyspaces are created, which may be heard in the same turn as that the data is loaded.
    fn on_declared(&mut self) {
        self.declared.on_end();
        if !self.durability.is_loading() {
            self.end_declaring();
        }
    }

    /// This worker serves: once.
    fn end_declaring(&mut self) {
        self.declared.on_end();
        self.kernel.share_lattices();
        self.shared.loading.finish_worker();
    }

    fn declare_next(&mut self) {
        let Some(table) = self.declared.next(self.kernel.keyspaces()) else {
            self.out.tell_others(|front, _| front.on_declared());
            return self.end_declaring();
        };
        let header = keyspaces::request(self.table);
        let (mut done, mut out) = (Output::default(), Output::default());
        Reply::new(&mut done, false).ok();
        let submitted = self.kernel.submit_keyspaces(&header, table, done, &mut out);
        if submitted == Submitted::Done {
            self.declared.on_reply(out);
        }
    }

    #[inline]
    pub(super) fn go_on_declaring(&mut self, now: Now, fx: &mut Effects<Message>) {
        while self.declared.goes_on() {
            self.declare_next();
            self.settle_kernel(now, fx);
        }
    }

    pub(super) fn on_disk(&mut self, now: Now, done: DiskDone, fx: &mut Effects<Message>) {
        if self.stop.is_over() && self.durability.is_loading() {
            // The worker ends as it is: to go on loading would keep it from that.
            return;
        }
        self.kernel.on_disk(now, done);
        self.deliver_outcomes(fx);
    }

    pub(super) fn end_turn_durably(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.take_orders(now);
        fx.gate = self.kernel.end_turn(now);
        let released = self.deliver_outcomes(fx);
        self.farewell.on_turn_end(now, &mut self.connections);
        let stops = self.stop.has_begun();
        self.durability.on_turn_end(now, stops, &mut self.kernel);
        fx.passed = self.kernel.passed();
        fx.logged = self.kernel.logged();
        fx.congested = self.kernel.is_congested() || self.peers.are_full();
        self.kernel.take_disk_requests(&mut fx.disk);
        self.take_events(now, fx);
        self.connections.take_closes(fx);
        self.kernel
            .take_messages(|to, message| fx.messages.push((to, Message::Kernel(message))));
        self.deliver_save_answers(fx);
        self.out.take_messages(fx);
        let wake = self.durability.wake_us(now, stops, &self.kernel);
        self.cron.wake_by(wake.unwrap_or(u64::MAX), fx);
        if released {
            // What waited for these replies goes on in the next turn.
            self.cron.set_wake_us(now.mono_us);
            fx.wake_at_us = Some(now.mono_us);
        }
    }

    fn take_events(&mut self, now: Now, fx: &mut Effects<Message>) {
        for event in self.kernel.take_durable_events() {
            let kernel = &mut self.kernel;
            match self.durability.on_event(now, event, kernel, &self.shared) {
                Loaded::Nothing => {}
                Loaded::All => self.begin_declaring(),
                Loaded::Never => fx.node.push(NodeEffect::Shutdown),
                Loaded::Lost(until) => {
                    fx.abandon(until);
                    self.lose_late_replies(until);
                    // They may not be in the log.
                    self.peers.serving.on_replies_lost();
                    self.carry_out_serving(now, fx);
                }
            }
        }
    }

    /// Closes connections with replies that are ready but wait for earlier ones: what they report
    /// may not be committed, and their turn is over.
    fn lose_late_replies(&mut self, until: Until) {
        let late = |c: &&Connection| c.replies.has_late(until);
        let all: Vec<_> = self.connections().filter(late).map(|c| c.id).collect();
        all.into_iter()
            .for_each(|id| self.connections.close_now(id));
    }

    fn take_orders(&mut self, now: Now) {
        if self.durability.orders.switch_log()
            && let Some(config) = self.shared.settings()
        {
            self.configure(config);
        }
        self.durability.take_orders(now, &mut self.kernel);
    }

    /// Sends an order to the worker that coordinates saves.
    pub(super) fn order_save(&mut self, order: SaveOrder, gather: Option<u64>) {
        if let Some(asked) = self.durability.orders.route(order, gather) {
            self.out.tell(COORDINATOR, move |front, _| {
                front.durability.orders.on_order(asked);
            });
        }
    }

    /// Delivers answers to orders.
    pub(super) fn deliver_save_answers(&mut self, fx: &mut Effects<Message>) {
        let own = self.id();
        for ((worker, gather), answer) in self.durability.orders.take_answers() {
            let answer = Box::new(answer);
            if worker == own {
                self.on_answered(gather, COORDINATOR, answer, fx);
            } else {
                self.out.answer(worker, gather, answer);
            }
        }
    }

    /// Makes everything durable before the node stops. True when that is done.
    pub(super) fn close_durably(&mut self, now: Now, fx: &mut Effects<Message>) -> bool {
        if self.durability.is_loading() && self.kernel.is_serving() {
            // Loading has ended in this turn: the other workers close their logs when this one says so, no more each by
            // itself. The event that tells of it is taken when the turn ends.
            return false;
        }
        let all_quiet = self.durability.all_quiet(now, &mut self.kernel);
        self.deliver_outcomes(fx);
        if !all_quiet {
            return false;
        }
        let (kernel, shared) = (&mut self.kernel, &self.shared);
        let closes = self.durability.close_logs(now, kernel, shared);
        self.deliver_outcomes(fx);
        closes
            && self
                .durability
                .close_log(now, &mut self.kernel, &self.shared)
    }

    /// Whether the node stops, and has waited as long as it may for other nodes.
    pub(crate) fn has_waited_to_stop(&self, now: Now) -> bool {
        self.stop.has_waited(now, self.peers.is_alone())
    }

    /// A stopping node has waited long enough for other nodes: gives up what waits for them.
    pub(crate) fn give_up_others(&mut self, now: Now, fx: &mut Effects<Message>) {
        let cluster = self.shared.cluster.as_ref();
        if self.stop.has_begun() && cluster.is_some_and(|cluster| cluster.has_left()) {
            self.stop.on_left(now);
        }
        if !self.has_waited_to_stop(now) {
            return;
        }
        let replies = self.give_up_forwarding(now, fx);
        let acknowledgements = self.kernel.give_up_others(now);
        self.settle_kernel(now, fx);
        if replies > 0 || acknowledgements > 0 {
            let worker = self.id().0;
            tracing::warn!(
                worker,
                replies,
                acknowledgements,
                "stopping without what other nodes owe: the outcome of these requests is unknown"
            );
        }
    }

    /// Ends sessions with other nodes before the node stops: after all requests that wait for other
    /// nodes are answered, and before the log is closed, which would miss their changes. True when
    /// that is done. A session of one worker has the acknowledgements for all: none ends before no
    /// worker waits.
    pub(super) fn leaves_peers(&mut self, now: Now, fx: &mut Effects<Message>) -> bool {
        let has_waited = self.has_waited_to_stop(now);
        if !self.peers.are_there() {
            return true;
        }
        if self.kernel.awaits_chains() {
            if !has_waited {
                return false;
            }
            // The result of these is unknown.
            fx.abandon(Until::Passed);
        }
        if self.stop.on_parted() {
            self.shared.part_from_peers();
            // Others may wait for this one alone.
            let others = self.out.place().others();
            let wakes = others.map(|worker| (worker, Message::Tell(Box::new(|_, _| {}))));
            fx.messages.extend(wakes);
        }
        if !self.shared.all_parted() && !has_waited {
            return false;
        }
        self.peers.stop(fx);
        true
    }

    /// A stopping node ends all waits for data.
    pub(super) fn end_waits_to_stop(&mut self, now: Now, fx: &mut Effects<Message>) {
        let stops = self.stop.has_begun() || self.farewell.has_begun();
        if stops {
            self.peers.forwarding.on_stops_soon();
        }
        while stops && !self.kernel.waiting_clients().is_empty() {
            let conns: Vec<_> = self.kernel.waiting_clients().conns().collect();
            for conn in conns {
                let how = if is_job(conn) {
                    blocked::stopping()
                } else {
                    blocked::end_of(How::Stops)
                };
                self.kernel.end_wait(conn, how);
            }
            self.settle_kernel(now, fx);
        }
    }

    /// The node stops soon.
    pub(crate) fn begin_farewell(&mut self, now: Now) {
        self.farewell.on_begin(now, &self.connections);
    }

    /// Whether no request is pending.
    pub(super) fn is_quiet(&self) -> bool {
        self.kernel.waiting() == 0
            && self.gathers.is_empty()
            && self.connections().all(|c| c.replies.is_empty())
    }
}

/// Ticks.
impl Front {
    pub(super) fn on_tick(&mut self, now: Now, fx: &mut Effects<Message>) {
        if self.pause.is_active() && now.mono_us >= self.pause.until_us {
            Local { front: self }.end_pause();
        }
        // Nothing may change before the log has begun.
        let may_change = !self.durability.is_loading();
        self.kernel.end_due_waits(now);
        let expiring = may_change
            && self.cron.expires()
            && self.kernel.shard.expire_step(now, cron::EXPIRE_BUDGET);
        let evicting = may_change && self.kernel.evict_step(now);
        // Expiry and eviction make the holes that compaction fills: so compaction runs after them.
        let tidying = !expiring && !evicting && self.kernel.maintain_step(cron::MAINTAIN_BUDGET);
        let sweeping = self.kernel.shard.sweep_step(cron::SWEEP_BUDGET);
        let timeout_s = self.config.timeout_s;
        for conn in self.cron.idle(now, timeout_s, &self.connections) {
            self.connections.close_now(conn);
        }
        self.end_long_transactions(now);
        self.cron
            .on_clocks(self.kernel.id(), self.kernel.clocks_lead(now));
        let calls = || self.kernel.stats().iter().map(|s| s.calls).sum::<u64>();
        self.cron.on_commands(now, calls);
        self.shared.publish_memory(&self.kernel);
        self.durability.on_tick(now, &mut self.kernel);
        self.deliver_outcomes(fx);
        let stops = self.stop.has_begun();
        fx.node
            .extend(self.durability.on_ticked(stops, &self.kernel));
        self.tick_peers(now, fx);
        self.give_up_others(now, fx);
        let local = Local { front: self };
        let board = &local.front.shared.board;
        board.answer(local.id(), || local.figures());
        let waits = self.kernel.waits_to_act();
        let period_us = cron::period_us(expiring || evicting, tidying || sweeping, waits);
        self.cron.on_tick(now, period_us, fx);
    }

    /// Schedules the next tick, early enough to end a pause or a wait for data in time.
    pub(super) fn wake_in_time(&mut self, now: Now, fx: &mut Effects<Message>) {
        let soon = |at: u64| at.max(now.mono_us);
        let pause = self.pause.is_active().then_some(self.pause.until_us);
        let blocked = self.kernel.waiting_clients().next_deadline_us();
        let farewell = self.farewell.wake_us(now, &self.connections);
        let forwarding = self.peers.forwarding.wake_us();
        let times = pause.map(soon).into_iter().chain(blocked.map(soon));
        let times = times.chain(farewell).chain(forwarding.map(soon));
        let times = times.chain(self.catching_up.wake_us().map(soon));
        self.cron.on_step(now, times, fx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::front::testing::Rig;
    use rufous_kernel::durable::Event;
    use rufous_kernel::keyspace::Keyspace;
    use std::sync::Arc;

    /// Twice counted, it would stand for a worker that does not serve yet.
    #[test]
    fn a_worker_serves_once_its_data_is_loaded_and_all_keyspaces_are_created() {
        let config = Config {
            keyspaces: vec![Keyspace::new("strict", b"s:")],
            ..Config::in_memory()
        };
        let mut rig = Rig::with_config(3, config.clone());
        let (now, shared) = (rig.now, Arc::clone(&rig.fronts[1].shared));
        shared.loading.begin(2);
        let front = &mut rig.fronts[1];
        let folder = Config {
            folder: true,
            ..config
        };
        let begun = front.durability.begin(now, &folder, &mut front.kernel);
        assert!(begun == Loaded::Nothing);
        front.on_declared();
        let kernel = &mut front.kernel;
        let event = Event::Serving;
        let loaded = front.durability.on_event(now, event, kernel, &shared);
        assert!(loaded == Loaded::All);
        front.begin_declaring();
        assert!(shared.loading.is_loading(), "it counts once");
        rig.fronts[2].on_declared();
        assert!(!shared.loading.is_loading());
    }
}
