//! A node's process is stopped in the middle of a worker's turn and goes on later, as with `SIGSTOP`
//! or a suspended machine. Some seeds have it, with choices of their own, so that the plans of seeds
//! that are kept stay what they were.

use super::clients::PATIENCE_US;
use super::node::Power;
use super::plan::Plan;
use super::world::World;
use crate::engine::random::Random;
use crate::node::plan::Mode;
use crate::node::seat::Left;
use rufous_base::limits::LEFT_PATIENCE_US;

/// From the first microsecond on in which nodes may be stopped.
const BEGINS_US: u64 = 4_000_000;
/// For so long a stopping node waits for others at most: workers look now and then.
const STOP_US: u64 = LEFT_PATIENCE_US + 500_000;

/// When a node is stopped next, by its index.
pub(super) struct Stops {
    random: Random,
    next_us: Vec<u64>,
}

/// Where in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the worker has read from its sockets.
    Reading,
    /// Before what it does leaves.
    Leaving,
}

impl Plan {
    /// Whether nodes are stopped in the middle of turns: in every eighth seed. Without logs, a node
    /// that is taken for dead would be one too many.
    pub(super) fn has_stops(&self) -> bool {
        self.seed % 8 == 6 && self.mode != Mode::Off
    }

    /// How long a client waits for an answer. Where nodes are stopped it is short: then some ask again
    /// at a node that is stopped while others write elsewhere.
    pub(super) fn patience_us(&self) -> u64 {
        if self.has_stops() {
            PATIENCE_US / 8
        } else {
            PATIENCE_US
        }
    }
}

impl Stops {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut random = Random::new(plan.seed, "stops");
        let first = |_| {
            if plan.has_stops() {
                BEGINS_US + random.skewed(10_000, 4_000_000)
            } else {
                u64::MAX
            }
        };
        let next_us = (0..plan.workers.len()).map(first).collect();
        Self { random, next_us }
    }
}

impl World {
    /// Where a node is stopped in the turn that begins now, and for how long.
    fn stop_in(&mut self, node: usize) -> Option<(At, u64)> {
        let now = self.engine.now_us;
        if self.calm || now < self.stops.next_us[node] {
            return None;
        }
        let Stops { random, next_us } = &mut self.stops;
        let us = if random.chance(0.5) {
            random.skewed(10_000, 1_000_000)
        } else {
            // Long enough for the others to replace it.
            random.between(2_000_000, 7_000_000)
        };
        let at = if random.chance(0.7) {
            At::Reading
        } else {
            At::Leaving
        };
        next_us[node] = now + us + random.skewed(200_000, 8_000_000);
        Some((at, us))
    }

    /// Takes a worker's turn, unless the node is stopped before: then the rest follows when the
    /// node goes on. What has left is returned with the time at which it does.
    pub(super) fn take_turn(&mut self, node: usize, worker: usize) -> Option<(Left, u64)> {
        let now_us = self.engine.now_us;
        let stop = self.stop_in(node);
        let found = &mut self.nodes[node];
        let now = found.now(now_us);
        let seat = &mut found.seats[worker];
        let until_us = now_us + stop.map_or(0, |(_, us)| us);
        match stop {
            Some((At::Reading, _)) => {
                seat.begin_turn(now);
                found.paused_until_us = until_us;
                self.note_stop(node, worker, until_us);
                return None;
            }
            Some((At::Leaving, _)) => found.paused_until_us = until_us,
            None => {}
        }
        let seat = &mut self.nodes[node].seats[worker];
        let left = seat.turn(now, &mut self.turns);
        self.look_at_stop(node, worker);
        if stop.is_some() {
            self.note_stop(node, worker, until_us);
        }
        Some((left, until_us))
    }

    /// A node that stops does not wait for long for nodes that replace it.
    fn look_at_stop(&mut self, node: usize, worker: usize) {
        let found = &self.nodes[node];
        // A process or thread that is stopped does not see that it has left the coordinator.
        let paused_us = found.paused_until_us.max(found.stalled_until_us);
        let since_us = found.stop_us.max(paused_us);
        let us = self.engine.now_us.saturating_sub(since_us);
        let awaits = found.seats[worker].front.kernel.awaits_chains();
        if matches!(found.power, Power::Stopping(_)) && awaits && us > STOP_US {
            let front = &found.seats[worker].front;
            let replies = front.connections().map(|one| one.replies.len());
            let (commands, replies) = (front.kernel.waiting(), replies.sum::<usize>());
            self.fail(format!(
                "n{node}w{worker} stops and waits since {us} us for others, with {commands} commands, {replies} replies"
            ));
        }
    }

    fn note_stop(&mut self, node: usize, worker: usize, until_us: u64) {
        self.reach("a node was stopped within a turn");
        let who = format!("n{node}w{worker}");
        self.note(
            &who,
            format_args!("is stopped in its turn until {until_us}"),
        );
    }
}
