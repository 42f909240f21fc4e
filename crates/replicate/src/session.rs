//! The state that a session keeps so that its operations have the guarantees of its level at whichever replicas it
//! uses.
//!
//! - a *floor*: its next write is stamped above it;
//! - what it *knows*: keys that it has read or written at its current node, which has their states. When it moves to
//!   another node ([`Session::leave`]) it takes their states along. They are merged into the replicas that it uses
//!   there, unless these have received the changes of all replicas up to the states' newest stamps and so have them
//!   already.
//!
//! So a session that does not move only pays for names and stamps. If a session cannot take states along, as its
//! former worker has failed, only replicas that have received everything up to the newest stamp of what it has seen
//! can serve it.
//!
//! The files of the levels define which of the two a level keeps, and of what. What a session knows is bounded: of
//! states beyond the bound only the newest stamp is kept.
//!
//! Within one node a connection always uses the same replica of a key, and needs none of this.

use rufous_datatype::object::Tag;
use rufous_store::level::{
    Level, monotonic_reads, monotonic_writes, read_your_writes, writes_follow_reads,
};
use rufous_store::shard::KeyName;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of states that a session takes along.
const MOST_BYTES: usize = 1 << 20;
/// The most notes of a session at its current node, repeated keys included, and the most bytes of their names.
const MOST_NOTES: usize = 1 << 14;
const MOST_NAMES: usize = 1 << 18;

/// A key as a session saw it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub db: u8,
    pub key: &'a [u8],
    /// The highest time of its stamps.
    pub newest: u64,
}

/// A state that a session takes along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub newest: u64,
    pub tag: Tag,
    /// The whole state, as chunks of its type.
    pub chunks: Vec<Vec<u8>>,
}

impl State {
    fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len() + 64).sum()
    }
}

/// The replica has not received what the session depends on: use another one, or this one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// It must have received the changes of all others up to this time.
    pub needs: u64,
}

/// A key that was seen at the current node.
#[derive(Clone, Copy, Debug)]
struct Note {
    newest: u64,
    db: u8,
    key_len: u32,
}

/// The keys and states that a session has seen.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// In the order of time, and the names of their keys one after the other.
    notes: Vec<Note>,
    names: Vec<u8>,
    /// The newest stamp of notes that were dropped.
    forgotten: u64,
    /// States from other nodes that are not merged at the current node yet.
    states: BTreeMap<KeyName, State>,
    bytes: usize,
    /// The newest stamp of states that were dropped for lack of room.
    given_up: u64,
    /// All replicas have everything up to this time.
    horizon: u64,
}

impl Known {
    /// Notes a key that is at the replica that the session uses.
    fn note(&mut self, seen: Seen<'_>) {
        if seen.newest <= self.horizon {
            return;
        }
        let is_full = self.notes.len() >= MOST_NOTES || self.names.len() >= MOST_NAMES;
        // A name may have any length.
        if is_full || seen.key.len() > MOST_NAMES {
            let newest = self.notes.iter().map(|note| note.newest).max();
            self.forgotten = self.forgotten.max(newest.unwrap_or(0)).max(seen.newest);
            self.notes.clear();
            self.names.clear();
            return;
        }
        self.notes.push(Note {
            newest: seen.newest,
            db: seen.db,
            key_len: seen.key.len() as u32,
        });
        self.names.extend_from_slice(seen.key);
    }

    fn take_notes(&mut self) -> BTreeSet<KeyName> {
        let (mut all, mut rest) = (BTreeSet::new(), &self.names[..]);
        for note in self.notes.drain(..) {
            let (name, more) = rest.split_at(note.key_len as usize);
            all.insert((note.db, name.into()));
            rest = more;
        }
        self.names.clear();
        all
    }

    fn take_along(&mut self, name: KeyName, state: State) {
        self.bytes += name.1.len() + state.bytes();
        self.remove(&name);
        self.states.insert(name, state);
        while self.bytes > MOST_BYTES
            && let Some((name, state)) = self.states.pop_first()
        {
            self.bytes -= name.1.len() + state.bytes();
            self.given_up = self.given_up.max(state.newest);
        }
    }

    fn remove(&mut self, name: &KeyName) -> Option<State> {
        let state = self.states.remove(name)?;
        self.bytes -= name.1.len() + state.bytes();
        Some(state)
    }

    fn prune(&mut self, horizon: u64) {
        self.horizon = self.horizon.max(horizon);
        let (mut from, mut to) = (0, 0);
        let names = &mut self.names;
        self.notes.retain(|note| {
            let end = from + note.key_len as usize;
            let is_kept = note.newest > horizon;
            if is_kept {
                names.copy_within(from..end, to);
                to += end - from;
            }
            from = end;
            is_kept
        });
        names.truncate(to);
        let bytes = &mut self.bytes;
        self.states.retain(|name, state| {
            let is_kept = state.newest > horizon;
            if !is_kept {
                *bytes -= name.1.len() + state.bytes();
            }
            is_kept
        });
        for newest in [&mut self.forgotten, &mut self.given_up] {
            if *newest <= horizon {
                *newest = 0;
            }
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

    /// To be called before an operation on a key at a replica that has received the changes of all others up to
    /// `least`. Returns the state that has to be merged there first, which the session then drops.
    pub fn before(&mut self, db: u8, key: &[u8], least: u64) -> Result<Option<State>, Behind> {
        let needs = self.known.given_up;
        if needs > least {
            return Err(Behind { needs });
        }
        if self.known.states.is_empty() {
            return Ok(None);
        }
        let Some(state) = self.known.remove(&(db, key.into())) else {
            return Ok(None);
        };
        let newest = state.newest;
        self.known.note(Seen { db, key, newest });
        Ok(Some(state).filter(|_| newest > least))
    }

    /// The session moves to another node: `show` returns the state of each key that it knows at the current one;
    /// `None` if there is none.
    pub fn leave(&mut self, mut show: impl FnMut(u8, &[u8]) -> Option<State>) {
        let known = &mut self.known;
        for name in known.take_notes() {
            if let Some(state) = show(name.0, &name.1) {
                known.take_along(name, state);
            }
        }
        known.given_up = known.given_up.max(known.forgotten);
        known.forgotten = 0;
    }

    /// The same if no node is left that has these states.
    pub fn leave_behind(&mut self) {
        let known = &mut self.known;
        let newest = known.notes.iter().map(|note| note.newest).max();
        let lost = newest.unwrap_or(0).max(known.forgotten);
        known.given_up = known.given_up.max(lost);
        known.forgotten = 0;
        known.notes.clear();
        known.names.clear();
    }

    /// A write must be stamped above this.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    pub fn after_read(&mut self, seen: Seen<'_>) {
        if self.level.has(&monotonic_reads::LEVEL) && monotonic_reads::notes_reads() {
            self.known.note(seen);
        }
        if self.level.has(&writes_follow_reads::LEVEL) {
            self.floor = writes_follow_reads::after_read(self.floor, seen.newest);
        }
    }

    /// `seen` is the key's state after the write, `written` the time of the write.
    pub fn after_write(&mut self, seen: Seen<'_>, written: u64) {
        if self.level.has(&read_your_writes::LEVEL) && read_your_writes::notes_writes() {
            self.known.note(seen);
        }
        if self.level.has(&monotonic_writes::LEVEL) {
            self.floor = monotonic_writes::after_write(self.floor, written);
        }
    }

    /// Drops what every replica has: everything up to the horizon.
    pub fn prune(&mut self, horizon: u64) {
        self.known.prune(horizon);
    }

    /// Number of states that it takes along, and of its notes.
    pub fn known(&self) -> usize {
        self.known.states.len() + self.known.notes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(key: &[u8], newest: u64) -> Seen<'_> {
        Seen { db: 0, key, newest }
    }

    fn session(level: &str) -> Session {
        Session::new(level.parse().unwrap())
    }

    fn state(newest: u64, chunk: &[u8]) -> State {
        State {
            newest,
            tag: Tag::Set,
            chunks: vec![chunk.to_vec()],
        }
    }

    #[test]
    fn each_guarantee_keeps_what_it_needs() {
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
            read.after_read(seen(b"k", 7));
            let mut write = session(level);
            write.after_write(seen(b"k", 8), 9);
            assert_eq!((read.known(), write.known()), known, "{level}");
            assert_eq!((read.floor(), write.floor()), floor, "{level}");
        }
    }

    #[test]
    fn a_replica_is_given_what_it_lacks_and_no_more() {
        let mut session = session("monotonic-reads");
        for newest in [5, 7] {
            session.after_read(seen(b"k", newest));
            session.after_read(seen(b"far", newest));
        }
        assert_eq!(session.before(0, b"k", 0), Ok(None), "it is there");
        let mut asked = Vec::new();
        session.leave(|db, key| {
            asked.push((db, key.to_vec()));
            Some(state(7, key))
        });
        assert_eq!(asked, [(0, b"far".to_vec()), (0, b"k".to_vec())]);
        assert_eq!(session.before(0, b"other", 0), Ok(None));
        assert_eq!(session.before(1, b"k", 0), Ok(None));
        assert_eq!(session.before(0, b"k", 6), Ok(Some(state(7, b"k"))));
        assert_eq!(session.before(0, b"k", 6), Ok(None), "it is there by now");
        assert_eq!(session.before(0, b"far", 7), Ok(None), "it was there");
        // States that it took to one node it takes on to the next.
        session.leave(|_, key| Some(state(if key == b"k" { 8 } else { 7 }, key)));
        assert_eq!(session.before(0, b"k", 6), Ok(Some(state(8, b"k"))));
        assert_eq!(session.known(), 2);
        session.prune(7);
        assert_eq!(session.known(), 1, "a note of 8 is not forgotten");
        session.prune(8);
        assert_eq!(session.known(), 0);
        session.after_read(seen(b"k", 8));
        assert_eq!(session.known(), 0, "all have it");
    }

    #[test]
    fn what_does_not_fit_binds_the_session_to_replicas_that_have_it() {
        let mut session = session("monotonic-reads");
        for n in 1..=9u8 {
            session.after_read(seen(&[n], u64::from(n)));
        }
        let chunk = vec![0; MOST_BYTES / 4];
        session.leave(|_, key| Some(state(u64::from(key[0]), &chunk)));
        assert!((1..=4).contains(&session.known()));
        let given_up = 9 - session.known() as u64;
        assert_eq!(
            session.before(0, &[9], given_up - 1),
            Err(Behind { needs: given_up })
        );
        assert!(session.before(0, &[9], given_up).unwrap().is_some());
        session.prune(given_up);
        assert!(session.before(0, &[8], 0).unwrap().is_some());
        session.prune(9);
        assert_eq!((session.known(), session.known.bytes), (0, 0));
    }

    #[test]
    fn what_cannot_be_taken_along_binds_it_too() {
        let mut lost = session("monotonic-reads");
        lost.after_read(seen(b"k", 5));
        assert_eq!(lost.before(0, b"k", 0), Ok(None));
        lost.leave_behind();
        assert_eq!(lost.before(0, b"j", 4), Err(Behind { needs: 5 }));
        assert_eq!(lost.before(0, b"j", 5), Ok(None));
        // So are notes beyond the bound, but not at the node where they were made.
        let long = vec![b'x'; MOST_NAMES + 1];
        let mut full = session("monotonic-reads");
        for n in 0..=MOST_NOTES as u64 {
            full.after_read(seen(b"k", n + 1));
        }
        assert_eq!(full.known(), 0);
        full.after_read(seen(&long, 7));
        full.after_read(seen(b"k", 3));
        assert_eq!((full.known(), full.before(0, b"k", 0)), (1, Ok(None)));
        full.leave(|_, _| None);
        let needs = MOST_NOTES as u64 + 1;
        assert_eq!(full.before(0, b"k", 0), Err(Behind { needs }));
        full.prune(needs);
        assert_eq!(full.before(0, b"k", 0), Ok(None));
    }

    #[test]
    fn names_stay_with_their_notes() {
        let mut session = session("monotonic-reads");
        let names: [&[u8]; 5] = [b"a", b"", b"long name", b"bc", b"d"];
        for (newest, key) in [4, 9, 2, 8, 3].into_iter().zip(names) {
            session.after_read(seen(key, newest));
        }
        session.prune(3);
        let mut asked = Vec::new();
        session.leave(|_, key| {
            asked.push(key.to_vec());
            None
        });
        assert_eq!(asked, [&b""[..], b"a", b"bc"]);
    }
}
