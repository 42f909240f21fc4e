//! The body of a linear transaction: its commands, each for one slot, as bytes; and what a slot tells of them.
//!
//! A slot executes its commands in order when the transaction is applied there, on its own keys alone. Conditions are
//! looked at before, when the slot admits the transaction: where one fails, no slot executes anything.
//!
//! Commands whose keys are of several slots are executed together, with all others of the transaction, at its last slot:
//! each slot adds the values of its keys on the way there, and what it is told on the way back changes them.

use crate::effect::{byte, put_varint, slice, varint};
use rufous_base::Span;
use rufous_base::limits::SLOTS;
use std::collections::BTreeMap;

/// The first byte of a body.
const VERSION: u8 = 1;

/// What a slot does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Executes the command with the name that is the first word; the others are its arguments, and this one of them is
    /// its first key.
    Run { key: u8 },
    /// The key, the first word, is one of commands that are executed together; the second word is the name of one of them
    /// that writes it, or empty.
    Gather,
    /// Executes the command, at the slot that the transaction visits last, whichever it is given for, and on the keys that
    /// were gathered; words as for [`Deed::Run`].
    Join { key: u8 },
    /// The key, the only word, is missing; otherwise the client is told the second word.
    Missing,
    /// The key, the only word, was not touched since this watcher of the node that sends the transaction began to watch
    /// it; otherwise the client is told a null array. `since`: what [`Deed::Watch`] told; 0: the client's node recorded the
    /// watch itself.
    Untouched { watcher: u64, since: u64 },
    /// Records that this watcher of the sending node watches the key, the only word, and tells the epoch since which the
    /// slot's chain is unchanged. Watchers end with their watches: the next ones of a client have another number, so that
    /// an end which arrives late ends nothing else.
    Watch { watcher: u64 },
    /// Tells the value of the key, the only word, and records a watch as [`Deed::Watch`] does, unless the number is 0:
    /// [`Fetched`].
    Fetch { watcher: u64 },
    /// Ends all its watches here.
    Unwatch { watcher: u64 },
    /// Commands that are executed together change nothing if the reply of one is an error. The only word is a key of them.
    Undoes,
}

const RUN: u8 = 1;
const MISSING: u8 = 2;
const UNTOUCHED: u8 = 3;
const WATCH: u8 = 4;
const UNWATCH: u8 = 5;
const GATHER: u8 = 6;
const JOIN: u8 = 7;
const FETCH: u8 = 8;
const UNDOES: u8 = 9;

/// A command or condition for one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub slot: u16,
    pub db: u8,
    pub resp3: bool,
    /// The reply is not wanted: it is OK, or an error.
    pub quiet: bool,
    pub deed: Deed,
    /// Its words in the body.
    pub words: Vec<Span>,
}

/// Begins a body.
pub fn begin() -> Vec<u8> {
    vec![VERSION]
}

/// Where and how a command is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub db: u8,
    pub resp3: bool,
    pub quiet: bool,
}

/// Appends a command; `words` are bytes of its own.
pub fn put<'w>(
    body: &mut Vec<u8>,
    (slot, at): (u16, At),
    deed: Deed,
    words: impl ExactSizeIterator<Item = &'w [u8]>,
) {
    body.extend_from_slice(&slot.to_be_bytes());
    let flags = u8::from(at.resp3) | u8::from(at.quiet) << 1;
    body.extend_from_slice(&[at.db, flags]);
    match deed {
        Deed::Run { key } => body.extend_from_slice(&[RUN, key]),
        Deed::Join { key } => body.extend_from_slice(&[JOIN, key]),
        Deed::Gather => body.push(GATHER),
        Deed::Missing => body.push(MISSING),
        Deed::Undoes => body.push(UNDOES),
        Deed::Untouched { watcher, since } => {
            body.push(UNTOUCHED);
            put_varint(body, watcher);
            put_varint(body, since);
        }
        Deed::Watch { watcher } => {
            body.push(WATCH);
            put_varint(body, watcher);
        }
        Deed::Fetch { watcher } => {
            body.push(FETCH);
            put_varint(body, watcher);
        }
        Deed::Unwatch { watcher } => {
            body.push(UNWATCH);
            put_varint(body, watcher);
        }
    }
    put_varint(body, words.len() as u64);
    for word in words {
        put_varint(body, word.len() as u64);
        body.extend_from_slice(word);
    }
}

/// All commands of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    pub all: Vec<Command>,
    /// Each slot executes its own by itself: none needs values of other slots.
    pub are_apart: bool,
}

impl Commands {
    /// `None`: it is not a body.
    pub fn read(body: &[u8]) -> Option<Self> {
        let all = commands(body)?;
        let is_apart = |of: &Command| !matches!(of.deed, Deed::Gather | Deed::Join { .. });
        let are_apart = all.iter().all(is_apart);
        Some(Self { all, are_apart })
    }
}

/// The commands of a body; `None`: it is not one.
pub fn commands(body: &[u8]) -> Option<Vec<Command>> {
    let mut rest = body.strip_prefix(&[VERSION])?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        all.push(command(body, &mut rest)?);
    }
    Some(all)
}

fn command(body: &[u8], rest: &mut &[u8]) -> Option<Command> {
    let slot = slot(rest)?;
    let (db, flags) = (byte(rest).ok()?, byte(rest).ok()?);
    let is_db = usize::from(db) < rufous_base::limits::DATABASES;
    if usize::from(slot) >= SLOTS || !is_db || flags > 3 {
        return None;
    }
    let deed = match byte(rest).ok()? {
        RUN => Deed::Run {
            key: byte(rest).ok()?,
        },
        JOIN => Deed::Join {
            key: byte(rest).ok()?,
        },
        GATHER => Deed::Gather,
        MISSING => Deed::Missing,
        UNDOES => Deed::Undoes,
        UNTOUCHED => Deed::Untouched {
            watcher: varint(rest).ok()?,
            since: varint(rest).ok()?,
        },
        WATCH => Deed::Watch {
            watcher: varint(rest).ok()?,
        },
        FETCH => Deed::Fetch {
            watcher: varint(rest).ok()?,
        },
        UNWATCH => Deed::Unwatch {
            watcher: varint(rest).ok()?,
        },
        _ => return None,
    };
    let count = varint(rest).ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        let len = varint(rest).ok()?;
        let start = body.len() - rest.len();
        let word = slice(rest, len).ok()?;
        words.push((u32::try_from(start).ok()?, word.len() as u32));
    }
    let least = match deed {
        Deed::Run { key } | Deed::Join { key } => usize::from(key) + 2,
        Deed::Missing | Deed::Gather => 2,
        Deed::Untouched { .. }
        | Deed::Watch { .. }
        | Deed::Fetch { .. }
        | Deed::Unwatch { .. }
        | Deed::Undoes => 1,
    };
    (words.len() >= least).then_some(Command {
        slot,
        db,
        resp3: flags & 1 > 0,
        quiet: flags & 2 > 0,
        deed,
        words,
    })
}

/// What a slot tells: the replies to its commands, in order, and the changes, as effects, that commands which it has
/// executed make at other slots.
pub fn tell<B: AsRef<[u8]>>(slot: u16, replies: &[B], changes: &BTreeMap<u16, Vec<u8>>) -> Vec<u8> {
    let mut told = slot.to_be_bytes().to_vec();
    put_varint(&mut told, replies.len() as u64);
    for reply in replies {
        put_bytes(&mut told, reply.as_ref());
    }
    put_varint(&mut told, changes.len() as u64);
    for (of, effects) in changes {
        told.extend_from_slice(&of.to_be_bytes());
        put_bytes(&mut told, effects);
    }
    told
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What a slot has told.
#[derive(Debug, PartialEq, Eq)]
pub struct Told<'t> {
    pub slot: u16,
    pub replies: Vec<&'t [u8]>,
    /// By slot.
    pub changes: Vec<(u16, &'t [u8])>,
}

/// In place of a slot with changes: no slot has changed anything, and the last reply says why.
pub const UNDONE: u16 = u16::MAX;

impl Told<'_> {
    pub fn is_undone(&self) -> bool {
        self.changes.iter().any(|(slot, _)| *slot == UNDONE)
    }
}

/// Why no slot has changed anything, if the commands that were executed together would change too much, or one has failed that
/// undoes all.
pub fn undone<'t>(all: &[Told<'t>]) -> Option<&'t [u8]> {
    let told = all.iter().find(|told| told.is_undone())?;
    told.replies.last().copied()
}

/// What a slot tells of a key that was fetched.
#[derive(Debug, PartialEq, Eq)]
pub struct Fetched<'t> {
    /// The epoch since which the slot's chain is unchanged, if a watch was recorded; otherwise 0.
    pub since: u64,
    /// The value, as effects; empty: there is no such key.
    pub effects: &'t [u8],
}

/// Replies begin with letters of ASCII.
const FETCHED: u8 = 0x80;

impl<'t> Fetched<'t> {
    pub fn tell(&self) -> Vec<u8> {
        let mut told = vec![FETCHED];
        put_varint(&mut told, self.since);
        told.extend_from_slice(self.effects);
        told
    }

    /// `None`: it is an error.
    pub fn read(told: &'t [u8]) -> Option<Self> {
        let mut rest = told.strip_prefix(&[FETCHED])?;
        let since = varint(&mut rest).ok()?;
        let effects = rest;
        Some(Self { since, effects })
    }
}

/// What slots have told, one after the other; `None`: it is not that.
pub fn told(mut all: &[u8]) -> Option<Vec<Told<'_>>> {
    let rest = &mut all;
    let mut slots = Vec::new();
    while !rest.is_empty() {
        slots.push(one_told(rest)?);
    }
    Some(slots)
}

fn one_told<'t>(rest: &mut &'t [u8]) -> Option<Told<'t>> {
    let slot = slot(rest)?;
    let mut replies = Vec::new();
    for _ in 0..varint(rest).ok()? {
        let len = varint(rest).ok()?;
        replies.push(slice(rest, len).ok()?);
    }
    let mut changes = Vec::new();
    for _ in 0..varint(rest).ok()? {
        let (of, len) = (self::slot(rest)?, varint(rest).ok()?);
        changes.push((of, slice(rest, len).ok()?));
    }
    Some(Told {
        slot,
        replies,
        changes,
    })
}

fn slot(from: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes([byte(from).ok()?, byte(from).ok()?]))
}

/// The same without the changes, which the client does not need. `None`: there are none.
pub fn without_changes(all: &[u8]) -> Option<Vec<u8>> {
    let all = told(all)?;
    if all
        .iter()
        .all(|told| told.changes.is_empty() || told.is_undone())
    {
        return None;
    }
    let none = BTreeMap::new();
    let each = all.iter().map(|told| tell(told.slot, &told.replies, &none));
    Some(each.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Vec<u8> {
        let mut body = begin();
        let at = |db, resp3| At {
            db,
            resp3,
            quiet: !resp3,
        };
        let set: [&[u8]; 4] = [b"set", b"SET", b"k", b"v"];
        let run = Deed::Run { key: 1 };
        put(&mut body, (7, at(3, true)), run, set.into_iter());
        let missing: [&[u8]; 2] = [b"k", b":0\r\n"];
        let to = (16_383, at(0, false));
        put(&mut body, to, Deed::Missing, missing.into_iter());
        let watched: [&[u8]; 1] = [b""];
        let (watcher, since) = (1 << 40, 300);
        let deed = Deed::Untouched { watcher, since };
        put(&mut body, (0, at(15, false)), deed, watched.into_iter());
        body
    }

    #[test]
    fn a_body_is_read_as_it_was_written() {
        let body = body();
        let all = commands(&body).expect("a body");
        let words = |at: usize| -> Vec<&[u8]> {
            let words = all[at].words.iter();
            words
                .map(|(at, len)| &body[*at as usize..][..*len as usize])
                .collect()
        };
        assert_eq!(words(0), [&b"set"[..], b"SET", b"k", b"v"]);
        assert_eq!(words(1), [&b"k"[..], b":0\r\n"]);
        assert_eq!(words(2), [&b""[..]]);
        let first = &all[0];
        assert_eq!((first.slot, first.db), (7, 3));
        assert_eq!((first.resp3, first.quiet), (true, false));
        assert_eq!((all[1].resp3, all[1].quiet), (false, true));
        assert_eq!(first.deed, Deed::Run { key: 1 });
        let (watcher, since) = (1 << 40, 300);
        assert_eq!(all[2].deed, Deed::Untouched { watcher, since });
    }

    #[test]
    fn what_is_cut_or_out_of_range_is_no_body() {
        let body = body();
        let ends = [1, 20, 33];
        for len in 0..body.len() {
            let is_whole = commands(&body[..len]).is_some();
            assert!(!is_whole || ends.contains(&len), "{len}");
        }
        let wrong = |at: usize, to: u8| {
            let mut body = body.clone();
            body[at] = to;
            commands(&body)
        };
        assert_eq!(wrong(0, 2), None);
        assert_eq!(wrong(1, 0x40), None, "a slot");
        assert_eq!(wrong(3, 16), None, "a database");
        assert_eq!(wrong(4, 4), None, "a flag");
        assert_eq!(wrong(5, 99), None, "a deed");
        assert_eq!(wrong(6, 3), None, "a key behind the words");
        assert!(wrong(6, 2).is_some());
    }

    #[test]
    fn what_is_told_of_a_fetched_key_is_no_reply() {
        for since in [0, 300] {
            let effects = b"-effects";
            let fetched = Fetched { since, effects };
            let told = fetched.tell();
            assert_eq!(Fetched::read(&told), Some(fetched));
        }
        assert_eq!(Fetched::read(b"-ERR\r\n"), None);
    }

    #[test]
    fn what_slots_tell_follows_one_another() {
        let changes = BTreeMap::from([(3, b"effects".to_vec())]);
        let mut all = tell(3, &[b"+OK\r\n".to_vec(), Vec::new()], &BTreeMap::new());
        assert_eq!(without_changes(&all), None);
        all.extend(tell::<&[u8]>(9, &[], &changes));
        let read = told(&all).expect("what was told");
        let replies: Vec<_> = read
            .iter()
            .map(|one| (one.slot, &one.replies[..]))
            .collect();
        assert_eq!(replies, [(3, &[b"+OK\r\n".as_slice(), b""][..]), (9, &[])]);
        assert_eq!(read[1].changes, [(3, b"effects".as_slice())]);
        let less = without_changes(&all).expect("it has changes");
        let less = told(&less).expect("what was told");
        assert_eq!(undone(&read), None);
        assert_eq!(less[0], read[0]);
        assert!(less[1].changes.is_empty());
        for len in [1, 4, all.len() - 1] {
            assert_eq!(told(&all[..len]), None, "{len}");
        }
        assert_eq!(told(&[]), Some(Vec::new()));
        // That nothing was done is told on.
        let none = BTreeMap::from([(UNDONE, Vec::new())]);
        let all = tell(9, &[b"-ERR much\r\n"], &none);
        assert_eq!(without_changes(&all), None);
        let read = told(&all).expect("what was told");
        assert_eq!(undone(&read), Some(&b"-ERR much\r\n"[..]));
    }
}
