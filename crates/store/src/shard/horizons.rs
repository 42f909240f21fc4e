//! Times of stamps up to which all replicas have received everything, up to which this shard has forgotten, and up to
//! which its worker has reported to other nodes that it has sent everything.

use super::journal::Journal;
use crate::effect::Effect;
use crate::planted::{self, Planted};
use rufous_base::limits::REPORT_RESERVE_US;
use rufous_datatype::replicated::Known;
use rufous_lattice::stamp::COUNTER_BITS;

/// See [`REPORT_RESERVE_US`].
const AHEAD: u64 = REPORT_RESERVE_US << COUNTER_BITS;

#[derive(Debug)]
pub struct Horizons {
    here: u64,
    sender_knows: u64,
    forgotten: u64,
    reported: u64,
    /// The values of `forgotten` and `reported` that the journal has.
    journaled: (u64, u64),
}

impl Default for Horizons {
    fn default() -> Self {
        Self {
            here: 0,
            sender_knows: u64::MAX,
            forgotten: 0,
            reported: 0,
            journaled: (0, 0),
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

    /// Other nodes are told that this worker has sent everything up to this time of a stamp. The report waits for the
    /// log, so that a start never uses stamps that others believe to have received.
    pub fn report(&mut self, time: u64) {
        if time > self.reported && !planted::is(Planted::ReportNotLogged) {
            self.reported = time.saturating_add(AHEAD);
        }
    }

    /// The files have this.
    pub fn had_reported(&mut self, time: u64) {
        self.reported = self.reported.max(time);
        self.journaled.1 = self.reported;
    }

    /// Writes to the journal up to which time this shard has forgotten and reported, if that has changed.
    #[inline]
    pub(super) fn tell(&mut self, journal: &mut Journal) {
        if self.forgotten > self.journaled.0 && journal.is_on() {
            self.journaled.0 = self.forgotten;
            journal.write_aside(&Effect::Horizon {
                time: self.forgotten,
            });
        }
        if self.reported > self.journaled.1 && journal.is_on() {
            self.journaled.1 = self.reported;
            journal.write(&Effect::Reported {
                time: self.reported,
            });
        }
    }

    /// Appends what was forgotten and reported, for the start of a snapshot.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.forgotten > 0 {
            let time = self.forgotten;
            Effect::Horizon { time }.encode(out);
        }
        if self.reported > 0 {
            let time = self.reported;
            Effect::Reported { time }.encode(out);
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
    fn a_report_is_journaled_and_messages_wait_for_that() {
        let (mut horizons, mut journal) = (Horizons::default(), Journal::default());
        journal.turn(true);
        horizons.report(5);
        horizons.tell(&mut journal);
        horizons.report(4 + AHEAD);
        horizons.tell(&mut journal);
        let mut once = Vec::new();
        Effect::Reported { time: 5 + AHEAD }.encode(&mut once);
        assert_eq!(journal.bytes().clone(), once);
        assert!(journal.tells(), "the report waits for it");
        let mut saved = Vec::new();
        horizons.encode(&mut saved);
        assert_eq!(saved, once, "a snapshot has it too");

        let mut again = Horizons::default();
        again.had_reported(5 + AHEAD);
        let mut saved = Vec::new();
        again.encode(&mut saved);
        assert_eq!(saved, once, "and so has one after a start");
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
