//! The end of a round: all nodes serve, all show the same, and no node keeps
//! graves, tombstones or changes for other nodes.

use super::{Event, MOST_EVENTS, World};
use crate::engine::scenario::drain;
use crate::gossip::seat::Seat;
use crate::gossip::side;

impl World {
    /// Rare states that streams to other nodes count themselves.
    pub(in crate::gossip) fn reach_of_streams(&mut self) {
        let mut figures = self.past;
        let seats = self.nodes.iter().flat_map(|node| &node.seats);
        seats.for_each(|seat| figures.add(&seat.gossip.figures()));
        let probes = &mut self.engine.probes;
        probes.add("resent", figures.resent_pieces);
        probes.add("overflow", figures.overflows);
        probes.add("repaired", figures.repaired_slots);
    }

    /// All nodes start again, and nothing is written any more: all of them serve what they had.
    pub(super) fn start_all_again(&mut self) -> Result<(), String> {
        if !self.plan.ends_with_starts() {
            return Ok(());
        }
        if self.plan.saves > 0.0 {
            // Then the files have nothing left to forget.
            (0..self.nodes.len()).for_each(|at| self.begin_save(at));
            drain(self, MOST_EVENTS, |_| false)?;
        }
        for at in 0..self.nodes.len() {
            self.after(1, Event::Crash(at));
        }
        drain(self, MOST_EVENTS, |_| false)?;
        self.engine.reach("all started again");
        self.settle()
    }

    /// When no message is in transit.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        self.engine.note("all", format_args!("quiet"));
        if let Some(node) = self.nodes.iter().find(|node| !node.serves) {
            return Err(format!("node {} does not serve", node.number));
        }
        let us = self.engine.now_us;
        let seats = self.nodes.iter_mut().flat_map(|node| &mut node.seats);
        let mut seats: Vec<&mut Seat> = seats.collect();
        match &mut self.texts {
            Some(texts) => texts.judge_round(&mut seats, us)?,
            None => self.deeds.judge(&mut seats, us)?,
        }
        if self.side.is_some() {
            side::judge(&mut seats, us)?;
        }
        let mut forgotten = 0;
        for seat in seats {
            seat.shard.check();
            forgotten += u64::from(seat.shard.horizons().forgotten() > 0);
            let (left, to_do) = (seat.shard.graves_len(), seat.shard.has_to_forget());
            if left > 0 || to_do {
                let at = seat.replicas.replica();
                return Err(format!(
                    "replica {at} remembers what is gone: {left} keys, more to forget: {to_do}"
                ));
            }
            let kept = seat.gossip.figures();
            if kept.kept_bytes > 0 || kept.behind > 0 {
                return Err(format!("something is kept for nodes: {kept:?}"));
            }
        }
        if forgotten > 0 {
            self.engine.reach("forgotten");
        }
        Ok(())
    }
}
