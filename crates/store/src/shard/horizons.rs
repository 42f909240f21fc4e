//! Times of stamps up to which all replicas have received everything, and up to which this shard has forgotten.

use super::journal::Journal;
use crate::effect::Effect;
use rufous_datatype::replicated::Known;

#[derive(Debug)]
pub struct Horizons {
    here: u64,
    sender_knows: u64,
    forgotten: u64,
    /// The value of `forgotten` that the journal has.
    journaled: u64,
}

impl Default for Horizons {
    fn default() -> Self {
        Self {
            here: 0,
            sender_knows: u64::MAX,
            forgotten: 0,
            journaled: 0,
        }
    }
}

impl Horizons {
    /// Every state that is still to be received here was made by a replica that had received everything up to this
    /// time of a stamp.
    pub fn raise(&mut self, horizon: u64) {
        self.here = self.here.max(horizon);
    }

    pub(super) fn here(&self) -> u64 {
        self.here
    }

    /// Sets the horizon, and returns the former one.
    pub(super) fn replace(&mut self, horizon: u64) -> u64 {
        std::mem::replace(&mut self.here, horizon)
    }

    /// The senders of the states merged from now on had received everything up to this time. A horizon taken over
    /// from one sender does not hold for what another one sent before it had received as much.
    pub fn merge_from(&mut self, knows: u64) {
        self.sender_knows = knows;
    }

    /// The sender of the next state merged has received everything that this worker has.
    pub fn merge_own(&mut self) {
        self.sender_knows = u64::MAX;
    }

    pub(super) fn known(&self) -> Known {
        Known {
            here: self.here,
            there: self.here.min(self.sender_knows),
        }
    }

    /// Everything here with a stamp up to this time was known here, and is forgotten if nothing is known of it any
    /// more.
    pub fn forget(&mut self, horizon: u64) {
        self.forgotten = self.forgotten.max(horizon);
    }

    /// The time up to which something was forgotten here.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Writes to the journal up to which time this shard has forgotten, if that has changed.
    #[inline]
    pub(super) fn tell(&mut self, journal: &mut Journal) {
        if self.forgotten > self.journaled && journal.is_on() {
            self.journaled = self.forgotten;
            journal.write_aside(&Effect::Horizon {
                time: self.forgotten,
            });
        }
    }

    /// Appends what was forgotten, for the start of a snapshot.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.forgotten > 0 {
            let time = self.forgotten;
            Effect::Horizon { time }.encode(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_is_journaled_once() {
        let (mut horizons, mut journal) = (Horizons::default(), Journal::default());
        horizons.forget(5);
        horizons.tell(&mut journal);
        assert!(journal.bytes().is_empty(), "there is no journal");
        journal.turn(true);
        horizons.tell(&mut journal);
        horizons.forget(3);
        horizons.tell(&mut journal);
        let mut once = Vec::new();
        horizons.encode(&mut once);
        assert_eq!((journal.bytes().clone(), horizons.forgotten()), (once, 5));
        assert!(!journal.tells(), "no reply waits for it");
    }

    #[test]
    fn a_sender_may_know_less_than_the_horizon() {
        let mut horizons = Horizons::default();
        horizons.raise(9);
        horizons.raise(4);
        horizons.merge_from(6);
        assert_eq!((horizons.known().here, horizons.known().there), (9, 6));
        horizons.merge_own();
        assert_eq!((horizons.known().here, horizons.known().there), (9, 9));
    }
}
