//! What a session keeps so that its operations mean what its level says,
//! whichever replicas it talks to.
//!
//! - a *floor*: its next write is stamped above;
//! - what it *knows*: states of keys that it has read or written, merged into
//!   the replica that it asks next, unless that has heard of all replicas up
//!   to their newest stamps: then it has them.
//!
//! Which of the two it keeps of what, the files of the levels say. What it
//! knows is bounded: of states that did not fit only the newest stamp is kept,
//! and replicas that have not heard up to it cannot serve the session.
//!
//! Within one node a connection always talks to the same replica of a key, and
//! what it keeps is not needed.

use super::level::{
    Level, monotonic_reads, monotonic_writes, read_your_writes, writes_follow_reads,
};
use crate::lock::KeyName;
use rufous_datatype::object::Tag;
use std::collections::BTreeMap;

/// Bytes of states that a session keeps.
const MOST_BYTES: usize = 1 << 20;

/// A key as a session saw it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub db: u8,
    pub key: &'a [u8],
    /// The highest time of a stamp in it.
    pub newest: u64,
    pub tag: Tag,
    /// Its whole state, as chunks of its type.
    pub chunks: &'a [Vec<u8>],
}

/// A state that a session keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub newest: u64,
    pub tag: Tag,
    pub chunks: Vec<Vec<u8>>,
}

impl State {
    fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len() + 64).sum()
    }
}

/// The replica has not heard what the session depends on: ask another, or
/// this one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// It must have heard of all others up to here.
    pub needs: u64,
}

/// The states that a session keeps.
#[derive(Clone, Debug, Default)]
pub struct Known {
    states: BTreeMap<KeyName, State>,
    bytes: usize,
    /// The newest stamp in states that were given up for lack of room.
    given_up: u64,
}

impl Known {
    /// Keeps it in the place of what is known of the key: the replica that it
    /// comes from was given that before.
    pub(super) fn keep(&mut self, seen: Seen<'_>) {
        let name = (seen.db, seen.key.into());
        let state = State {
            newest: seen.newest,
            tag: seen.tag,
            chunks: seen.chunks.to_vec(),
        };
        self.bytes += seen.key.len() + state.bytes();
        if let Some(old) = self.states.insert(name, state) {
            self.bytes -= seen.key.len() + old.bytes();
        }
        while self.bytes > MOST_BYTES
            && let Some((name, state)) = self.states.pop_first()
        {
            self.bytes -= name.1.len() + state.bytes();
            self.given_up = self.given_up.max(state.newest);
        }
    }
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Session {
    level: Level,
    floor: u64,
    known: Known,
}

impl Session {
    pub fn new(level: Level) -> Self {
        Self {
            level,
            floor: 0,
            known: Known::default(),
        }
    }

    /// Before an operation on a key at a replica that has heard of all others
    /// up to `least`: what is to be merged there first.
    pub fn before(&mut self, db: u8, key: &[u8], least: u64) -> Result<Option<&State>, Behind> {
        let needs = self.known.given_up;
        if needs > least {
            return Err(Behind { needs });
        }
        let known = self.known.states.get(&(db, key.into()));
        Ok(known.filter(|state| state.newest > least))
    }

    /// What a write must be stamped above.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    pub fn after_read(&mut self, seen: Seen<'_>) {
        if self.level.has(&monotonic_reads::LEVEL) {
            monotonic_reads::after_read(&mut self.known, seen);
        }
        if self.level.has(&writes_follow_reads::LEVEL) {
            self.floor = writes_follow_reads::after_read(self.floor, seen.newest);
        }
    }

    /// `seen` is what the write made of the key, `written` the write's time.
    pub fn after_write(&mut self, seen: Seen<'_>, written: u64) {
        if self.level.has(&read_your_writes::LEVEL) {
            read_your_writes::after_write(&mut self.known, seen);
        }
        if self.level.has(&monotonic_writes::LEVEL) {
            self.floor = monotonic_writes::after_write(self.floor, written);
        }
    }

    /// Forgets what every replica has: what is not above the horizon.
    pub fn prune(&mut self, horizon: u64) {
        let bytes = &mut self.known.bytes;
        self.known.states.retain(|name, state| {
            let kept = state.newest > horizon;
            if !kept {
                *bytes -= name.1.len() + state.bytes();
            }
            kept
        });
        if self.known.given_up <= horizon {
            self.known.given_up = 0;
        }
    }

    /// Keys it knows of.
    pub fn known(&self) -> usize {
        self.known.states.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(key: &'a [u8], newest: u64, chunks: &'a [Vec<u8>]) -> Seen<'a> {
        Seen {
            db: 0,
            key,
            newest,
            tag: Tag::Set,
            chunks,
        }
    }

    fn session(level: &str) -> Session {
        Session::new(level.parse().unwrap())
    }

    #[test]
    fn each_guarantee_keeps_what_it_needs() {
        let chunks = [b"state".to_vec()];
        // Known after a read and after a write, floor after either.
        let table = [
            ("eventual", (0, 0), (0, 0)),
            ("monotonic-reads", (1, 0), (0, 0)),
            ("read-your-writes", (0, 1), (0, 0)),
            ("monotonic-writes", (0, 0), (0, 9)),
            ("writes-follow-reads", (0, 0), (7, 0)),
            ("pram", (1, 1), (0, 9)),
            ("causal", (1, 1), (7, 9)),
        ];
        for (level, known, floor) in table {
            let mut read = session(level);
            read.after_read(seen(b"k", 7, &chunks));
            let mut write = session(level);
            write.after_write(seen(b"k", 8, &chunks), 9);
            assert_eq!((read.known(), write.known()), known, "{level}");
            assert_eq!((read.floor(), write.floor()), floor, "{level}");
        }
    }

    #[test]
    fn a_replica_is_given_what_it_lacks_and_no_more() {
        let mut session = session("monotonic-reads");
        session.after_read(seen(b"k", 7, &[b"state".to_vec()]));
        let state = session.before(0, b"k", 6).unwrap().unwrap();
        assert_eq!(state.chunks, [b"state".to_vec()]);
        assert_eq!(session.before(0, b"k", 7), Ok(None));
        assert_eq!(session.before(0, b"other", 0), Ok(None));
        assert_eq!(session.before(1, b"k", 0), Ok(None));
        session.prune(6);
        assert_eq!(session.known(), 1);
        session.prune(7);
        assert_eq!(session.known(), 0);
    }

    #[test]
    fn what_does_not_fit_binds_the_session_to_replicas_that_have_it() {
        let mut session = session("monotonic-reads");
        let chunks = [vec![0; MOST_BYTES / 4]];
        for n in 1..=9u8 {
            session.after_read(seen(&[n], u64::from(n), &chunks));
        }
        assert!((1..=4).contains(&session.known()));
        let given_up = 9 - session.known() as u64;
        assert_eq!(
            session.before(0, &[9], given_up - 1),
            Err(Behind { needs: given_up })
        );
        assert!(session.before(0, &[9], given_up).unwrap().is_some());
        session.prune(given_up);
        assert!(session.before(0, &[9], 0).unwrap().is_some());
        session.prune(9);
        assert_eq!((session.known(), session.known.bytes), (0, 0));
    }
}
