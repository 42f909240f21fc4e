//! Replicated keys: which they are, whether the running command may write to them, what its client has seen of them,
//! and their local changes, for other replicas. `writes` has the writes themselves.

use super::contexts::{Contexts, Session};
use super::types::Key;
use crate::changeset::Changeset;
use crate::effect::Effect;
use crate::keyspace::Resolve;
use crate::placement::Owners;
use crate::planted::{self, Planted};
use rufous_base::{Now, WorkerId};
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::siblings::Pick;
use rufous_datatype::replicated::{Refused, Writer};
use rufous_lattice::{Seen, Stamp};
use std::fmt::Debug;
use std::sync::Arc;

/// Which keys are replicated, and how.
pub trait Keying: Debug + Send + Sync {
    fn of(&self, key: &[u8]) -> Option<Keyed>;

    /// The workers of this node that have a replica of the key; `None` if it is strict.
    fn owners(&self, key: &[u8]) -> Option<Owners> {
        self.of(key).map(|_| Owners::ALONE)
    }

    /// This worker, and the number of workers.
    fn place(&self) -> (WorkerId, usize) {
        (WorkerId(0), 1)
    }

    /// What a plain read shows of a string with causal order that has several values.
    fn resolve(&self, key: &[u8]) -> Resolve {
        let _ = key;
        Resolve::Newest
    }

    /// Whether a replica with this number may have written.
    fn is_replica(&self, replica: u16) -> bool {
        let _ = replica;
        true
    }
}

/// How a key is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// The type of its strings.
    pub strings: Tag,
    /// Whether there are replicas elsewhere, to which changes have to be sent.
    pub is_shared: bool,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The stamp after those of its writes, to be passed to the clock.
    pub next: Stamp,
    /// The refusal that the reply has to report.
    pub refused: Option<Refused>,
    /// The key that the refusal is about.
    pub at: Box<[u8]>,
}

/// State of the running command.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) writer: Writer,
    refused: Option<Refused>,
    /// The key that the refusal is about.
    at: Box<[u8]>,
    /// Clocks lead too far: nothing is written.
    is_barred: bool,
}

/// The refusal of a write while clocks lead too far; the worker knows by how much.
pub const CLOCKS_LEAD: Refused = Refused {
    why: "clocks lead too far",
    instead: "put the wall clock right",
};

impl Writing {
    #[cold]
    pub(super) fn refuse(&mut self, key: Key<'_>, refused: Refused) {
        if self.refused.is_none() {
            (self.refused, self.at) = (Some(refused), key.bytes.into());
        }
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Lattice {
    keying: Option<Arc<dyn Keying>>,
    /// State of the running command, if it may write to replicated keys.
    writing: Option<Writing>,
    /// State of its client, if keys have causal order.
    session: Option<Box<Session>>,
    changes: Changeset,
    /// The last time of a stamp that was issued or observed, in Unix milliseconds.
    reached_ms: u64,
    /// By how many milliseconds the wall clock has jumped ahead, as long as it is not followed.
    pub(super) ahead_ms: u64,
    /// The shard has copies of an item cut: for these, time stands still.
    stands: bool,
}

impl Lattice {
    /// Sets which keys are replicated. Values in the store are not changed by that.
    pub fn set_keying(&mut self, keying: Option<Arc<dyn Keying>>) {
        self.keying = keying;
    }

    pub(super) fn keying(&self) -> Option<&Arc<dyn Keying>> {
        self.keying.as_ref()
    }

    pub(super) fn keyed(&self, key: Key<'_>) -> Option<Keyed> {
        self.keying.as_ref()?.of(key.bytes)
    }

    /// Whether the key has replicas elsewhere.
    pub(super) fn is_shared(&self, key: Key<'_>) -> bool {
        self.keyed(key).is_some_and(|keyed| keyed.is_shared)
    }

    /// Whether strings at this key have causal order.
    pub fn orders_causally(&self, key: Key<'_>) -> bool {
        let keyed = self.keyed(key);
        keyed.is_some_and(|keyed| keyed.strings == Tag::Siblings)
    }

    /// Which of several concurrent values is shown.
    pub(super) fn pick(&self, key: Key<'_>) -> Pick {
        let keying = self.keying.as_ref();
        keying.map_or(Pick::Newest, |keying| keying.resolve(key.bytes).pick())
    }

    /// The command that runs next may write to replicated keys.
    #[inline]
    pub(super) fn begin(&mut self, writer: Writer) {
        self.writing = Some(Writing {
            writer,
            refused: None,
            at: Box::default(),
            is_barred: false,
        });
    }

    /// The running command may not write to replicated keys, as clocks lead too far.
    pub(super) fn bar(&mut self) {
        if let Some(writing) = &mut self.writing {
            writing.is_barred = true;
        }
    }

    #[inline]
    pub(super) fn is_barred(&self) -> bool {
        let writing = self.writing.as_ref();
        writing.is_some_and(|writing| writing.is_barred)
    }

    /// No stamp issued or observed here has a later time than this, in microseconds.
    #[inline]
    pub(super) fn reach(&mut self, stamp_us: u64) {
        if !self.stands {
            self.reached_ms = self.reached_ms.max(stamp_us / 1000);
        }
    }

    /// The wall clock is ahead by so much, and is not followed.
    #[inline]
    pub(super) fn set_ahead(&mut self, ms: u64) {
        if !self.stands {
            self.ahead_ms = ms;
        }
    }

    /// From now on deadlines count from this time, in Unix milliseconds, by whatever stamps and clocks are read later:
    /// commands are told `now` as the time.
    pub(super) fn stand(&mut self, now: Now, time_ms: u64) {
        self.stands = true;
        self.reached_ms = time_ms;
        self.ahead_ms = now.unix_ms().saturating_sub(time_ms);
    }

    /// Time goes on.
    pub(super) fn go(&mut self) {
        self.stands = false;
        self.ahead_ms = 0;
    }

    /// The time in Unix milliseconds from which the deadlines of replicated keys count: the later of the wall clock,
    /// without a jump ahead that is not followed, and the clock of the stamps. At time zero, of walks that are to see everything, nothing has expired.
    #[inline]
    pub(super) fn time_ms(&self, now: Now) -> u64 {
        match now.unix_ms() {
            0 => 0,
            wall if planted::is(Planted::DeadlineByWall) => wall,
            wall => wall.saturating_sub(self.ahead_ms).max(self.reached_ms),
        }
    }

    #[inline]
    pub(super) fn end(&mut self) -> Option<Ended> {
        let writing = self.writing.take()?;
        Some(Ended {
            next: writing.writer.stamp,
            refused: writing.refused,
            at: writing.at,
        })
    }

    /// How the key is replicated, if the running command may write to it as a replica.
    #[inline]
    pub(super) fn replicated(&self, key: Key<'_>) -> Option<Keyed> {
        self.writing.as_ref()?;
        self.keyed(key)
    }

    /// Whether the running command writes to this key as a replica.
    #[inline]
    pub fn writes(&self, key: Key<'_>) -> bool {
        self.replicated(key).is_some()
    }

    /// Whether the running command was refused: it must change nothing more.
    pub fn has_refused(&self) -> bool {
        let writing = self.writing.as_ref();
        writing.is_some_and(|writing| writing.refused.is_some())
    }

    pub(super) fn writer(&self) -> Option<Writer> {
        Some(self.writing.as_ref()?.writer)
    }

    /// Lends the state of the running command, to be passed to [`Lattice::go_on`].
    pub(super) fn take_writing(&mut self) -> Option<Writing> {
        self.writing.take()
    }

    pub(super) fn go_on(&mut self, writing: Writing) {
        self.writing = Some(writing);
    }

    /// The stamp of the command's next write, above `newest`, which may come from another clock.
    pub(super) fn rise_above(&mut self, newest: Stamp) -> Option<Stamp> {
        let writer = &mut self.writing.as_mut()?.writer;
        if writer.stamp.time <= newest.time && writer.stamp <= newest {
            writer.stamp.time = newest.time.saturating_add(1);
            writer.stamp.step = 0;
        }
        Some(writer.stamp)
    }

    /// The running command has written.
    pub(super) fn step(&mut self) {
        if let Some(writing) = &mut self.writing {
            writing.writer.stamp = writing.writer.stamp.next();
        }
    }

    #[cold]
    pub(super) fn refuse(&mut self, key: Key<'_>, refused: Refused) {
        if let Some(writing) = &mut self.writing {
            writing.refuse(key, refused);
        }
    }

    /// The next command is this client's, which has these contexts.
    pub fn begin_session(&mut self, client: u64, contexts: Contexts) {
        self.session = Some(Box::new(Session::new(client, contexts)));
    }

    /// Ends the command. Also returns the number of values of a key that it tried to read as one, if the keyspace
    /// picks none.
    pub fn end_session(&mut self) -> (Contexts, Option<usize>) {
        let session = self.session.take();
        session.map_or_else(Default::default, |session| session.end())
    }

    #[inline]
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the running command asked for one of several values and the keyspace picks none: then it changes
    /// nothing.
    pub(super) fn is_undecided(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.is_undecided())
    }

    /// What the running command's client has seen of a key; `None` if the shard has no contexts.
    pub(super) fn context_of(&mut self, db: u8, key: Key<'_>) -> Option<Seen> {
        Some(self.session.as_mut()?.context_of(db, key))
    }

    /// Notes what the running command's client has seen of a key.
    pub(super) fn note_seen(&mut self, db: u8, key: Key<'_>, seen: &Seen) {
        if let Some(session) = &mut self.session {
            session.note(db, key, seen);
        }
    }

    /// Notes that the client reads one of `count` concurrent values as the value of a key: it has seen them all, as
    /// the keyspace picks the one that is returned. If the keyspace picks none, nothing was seen.
    pub(super) fn note_read(&mut self, db: u8, key: Key<'_>, count: usize, seen: &Seen) {
        let keying = self.keying.as_ref();
        let is_picked = keying.is_none_or(|keying| keying.resolve(key.bytes).picks());
        match &mut self.session {
            Some(session) if count > 1 && !is_picked => session.set_undecided(count),
            _ => self.note_seen(db, key, seen),
        }
    }

    /// Local changes since this was last cleared, for other replicas.
    #[inline]
    pub(super) fn changes(&mut self) -> &mut Changeset {
        &mut self.changes
    }

    pub(super) fn note_change(
        &mut self,
        (db, key): (u8, Key<'_>),
        tag: Tag,
        ops: &[u8],
        tuning: &Tuning,
    ) {
        if is_small(tag) {
            self.changes.touch(db, key);
            return;
        }
        let done = self.changes.add(db, key, tag, ops, tuning);
        debug_assert!(done.is_ok(), "operations are as their type encodes them");
    }

    /// Records a local change that was applied to a copy of the value first.
    pub(super) fn note_carried(&mut self, effect: &Effect<'_>, key: Key<'_>, tuning: &Tuning) {
        if let Effect::Update { db, tag, ops, .. } = *effect
            && tag.is_replicated()
            && self.is_shared(key)
        {
            self.note_change((db, key), tag, ops, tuning);
        }
    }
}

/// Of small types replicas send whole states; of collections, operations.
pub(super) fn is_small(tag: Tag) -> bool {
    !matches!(tag, Tag::SharedSet | Tag::SharedHash | Tag::SharedSortedSet)
}
