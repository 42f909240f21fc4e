//! Transactions over slots: from the commands of a client to the body that slots execute, and from what they tell to the
//! client's reply.
//!
//! A command whose keys are of one slot is executed there. One that treats each of its keys by itself is taken apart, a
//! command for each slot. Where there are others, all commands are executed together, at one slot, with the values of all
//! keys: see [`rufous_kernel::body`].

#[cfg(test)]
mod tests;

use crate::splitting::elements;
use rufous_base::slot::slot_of;
use rufous_base::{Args, Output};
use rufous_kernel::body::{self, At, Deed, Told};
use rufous_resp::encode;
use std::collections::{BTreeMap, BTreeSet};

/// The limit of slots that one transaction visits: each of them keeps it until it is over.
pub const MOST_SLOTS: usize = 256;

/// The limit of a body's size: each slot keeps it until the transaction is over.
pub const MOST_BYTES: usize = 4 << 20;

/// The limit of a body's size times the slots of the transaction: what they keep of it together, at each copy.
pub const MOST_KEPT: usize = 64 << 20;

/// How a command may be taken apart, and its replies joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Not at all.
    Whole,
    /// All its arguments are keys, and its reply is a number: their sum.
    Sum,
    /// All its arguments are keys, and its reply has an element for each.
    Elements,
    /// Its arguments are keys with their values, and its reply is OK.
    Pairs,
    /// The same, if none of the keys exists: then its reply is 1, otherwise 0.
    PairsIfMissing,
}

/// What is known of a command.
#[derive(Clone, Copy, Debug)]
pub struct What<'n> {
    /// In the table of commands, which may have it as a part of another one's.
    pub name: &'n str,
    pub shape: Shape,
    /// It may change its keys.
    pub writes: bool,
    /// It may take more memory.
    pub grows: bool,
}

/// Why commands cannot be a transaction over slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A command has no key, or its first one is too far behind.
    Keys,
    TooManySlots,
    TooLarge,
    /// For so many slots.
    TooLargeEach,
}

/// Where the reply to a command comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// It is known.
    Known(Vec<u8>),
    Of(u16),
    /// The next one of the slot that is visited last.
    Last,
    Sum(BTreeSet<u16>),
    /// The slot of each element.
    Elements(Vec<u16>),
    /// One of these replies, all the same unless one is an error.
    Same(BTreeSet<u16>),
    /// The same, as the number one.
    One(BTreeSet<u16>),
}

/// How the client's reply is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pieces: Vec<Piece>,
    /// It is an array of the pieces; otherwise there is one piece.
    is_list: bool,
}

/// A transaction while its commands are added.
#[derive(Debug)]
pub struct Composer {
    body: Vec<u8>,
    /// Whether any command writes the key.
    keys: BTreeMap<Box<[u8]>, bool>,
    plan: Plan,
    /// Where commands are executed together.
    together: Option<Together>,
}

/// Commands that are executed together.
#[derive(Debug, Default)]
struct Together {
    /// Names of commands, in the body behind what is gathered.
    commands: Vec<u8>,
    /// By database and key: the name of a command that writes it, of one that may take more memory if there is one, or empty.
    gathered: BTreeMap<(u8, Box<[u8]>), &'static str>,
}

/// Whether the commands of a transaction have to be executed together, if one is this and has keys of so many slots.
pub fn is_together(shape: Shape, slots: usize, is_list: bool) -> bool {
    let decides = shape == Shape::PairsIfMissing && is_list;
    slots > 1 && (shape == Shape::Whole || decides)
}

impl Composer {
    /// `is_list`: the client's reply is an array. `is_together`: of a command ([`is_together`]).
    pub fn new(is_list: bool, is_together: bool) -> Self {
        Self {
            body: body::begin(),
            keys: BTreeMap::new(),
            plan: Plan {
                pieces: Vec::new(),
                is_list,
            },
            together: is_together.then(Together::default),
        }
    }

    /// Adds a command that has its reply already.
    pub fn add_known(&mut self, reply: &[u8]) {
        self.plan.pieces.push(Piece::Known(reply.into()));
    }

    /// Adds a condition, or what is to be done about watches, for the slot of a key.
    pub fn add_deed(&mut self, at: At, deed: Deed, key: &[u8]) {
        let at = (slot_of(key), at);
        body::put(&mut self.body, at, deed, [key].into_iter());
        self.keys.entry(key.into()).or_default();
    }

    /// Adds a command; `keys`: its arguments that are keys, with their databases; `writes`: it may change them.
    pub fn add(
        &mut self,
        at: At,
        what: &What<'static>,
        args: &Args<'_>,
        keys: &[(u8, u32)],
    ) -> Result<(), Refusal> {
        let slot = |(_, at): &(u8, u32)| slot_of(args.get(*at as usize));
        let slots: BTreeSet<u16> = keys.iter().map(slot).collect();
        for (_, at) in keys {
            let of = self.keys.entry(args.get(*at as usize).into()).or_default();
            *of |= what.writes;
        }
        let first = keys.first().ok_or(Refusal::Keys)?;
        let key = u8::try_from(first.1).map_err(|_| Refusal::Keys)?;
        let name = [what.name.as_bytes()].into_iter();
        let words = || name.clone().chain(args.iter_from(0)).collect::<Vec<_>>();
        if let Some(together) = &mut self.together {
            let deed = Deed::Join { key };
            body::put(&mut together.commands, (0, at), deed, words().into_iter());
            for (db, at) in keys {
                let gathered = &mut together.gathered;
                let name = gathered.entry((*db, args.get(*at as usize).into()));
                let name = name.or_default();
                if what.writes && (what.grows || name.is_empty()) {
                    *name = what.name;
                }
            }
            self.plan.pieces.push(Piece::Last);
        } else if slots.len() == 1 {
            let (of, deed) = (slot(first), Deed::Run { key });
            body::put(&mut self.body, (of, at), deed, words().into_iter());
            self.plan.pieces.push(Piece::Of(of));
        } else {
            self.add_apart(at, what, args, keys)?;
        }
        let together = self.together.as_ref().map_or(0, |t| t.commands.len());
        if self.body.len() + together > MOST_BYTES {
            return Err(Refusal::TooLarge);
        }
        Ok(())
    }

    /// Adds a command for each slot of the keys.
    fn add_apart(
        &mut self,
        at: At,
        what: &What<'_>,
        args: &Args<'_>,
        keys: &[(u8, u32)],
    ) -> Result<(), Refusal> {
        let shape = what.shape;
        let has_values = matches!(shape, Shape::Pairs | Shape::PairsIfMissing);
        let mut words = BTreeMap::<u16, Vec<&[u8]>>::new();
        for (_, arg) in keys {
            let key = args.get(*arg as usize);
            let of = words.entry(slot_of(key));
            let of = of.or_insert_with(|| vec![what.name.as_bytes(), args.get(0)]);
            of.push(key);
            if has_values {
                of.push(args.get(*arg as usize + 1));
            }
            if shape == Shape::PairsIfMissing {
                let found: [&[u8]; 2] = [key, if at.quiet { b"+OK\r\n" } else { b":0\r\n" }];
                let to = (slot_of(key), at);
                body::put(&mut self.body, to, Deed::Missing, found.into_iter());
            }
        }
        let slots: BTreeSet<u16> = words.keys().copied().collect();
        for (slot, words) in words {
            let deed = Deed::Run { key: 1 };
            body::put(&mut self.body, (slot, at), deed, words.into_iter());
        }
        let each = keys.iter().map(|(_, at)| slot_of(args.get(*at as usize)));
        self.plan.pieces.push(match shape {
            Shape::Whole => return Err(Refusal::Keys),
            _ if at.quiet => Piece::Same(slots),
            Shape::Sum => Piece::Sum(slots),
            Shape::Elements => Piece::Elements(each.collect()),
            Shape::Pairs => Piece::Same(slots),
            Shape::PairsIfMissing => Piece::One(slots),
        });
        Ok(())
    }

    /// The body, the keys and whether they are written, and how the reply is made.
    #[expect(clippy::type_complexity, reason = "three things, each once")]
    pub fn finish(mut self) -> Result<(Vec<u8>, BTreeMap<Box<[u8]>, bool>, Plan), Refusal> {
        let slots: BTreeSet<u16> = self.keys.keys().map(|key| slot_of(key)).collect();
        if slots.len() > MOST_SLOTS {
            return Err(Refusal::TooManySlots);
        }
        if self.body.len() > MOST_BYTES {
            return Err(Refusal::TooLarge);
        }
        if let Some(together) = self.together {
            together.write(&mut self.body);
        }
        if self.body.len().saturating_mul(slots.len()) > MOST_KEPT {
            return Err(Refusal::TooLargeEach);
        }
        Ok((self.body, self.keys, self.plan))
    }
}

impl Together {
    fn write(self, body: &mut Vec<u8>) {
        for ((db, key), name) in &self.gathered {
            let at = At {
                db: *db,
                resp3: false,
                quiet: false,
            };
            let words: [&[u8]; 2] = [key, name.as_bytes()];
            body::put(body, (slot_of(key), at), Deed::Gather, words.into_iter());
        }
        body.extend_from_slice(&self.commands);
    }
}

impl Plan {
    /// The client's reply, from what the slots have told. `None`: they have told something else.
    pub fn reply(&self, told: Vec<Told<'_>>) -> Option<Output> {
        let last = told.last().map(|told| told.slot);
        let slots = told.into_iter();
        let slots = slots.map(|told| (told.slot, told.replies.into_iter()));
        let mut slots: BTreeMap<u16, _> = slots.collect();
        let mut out = Output::default();
        if self.is_list {
            encode::array(&mut out.bytes, self.pieces.len());
        }
        for piece in &self.pieces {
            let mut next = |slot: &u16| slots.get_mut(slot)?.next();
            match piece {
                Piece::Last => put(next(&last?)?, &mut out),
                piece => piece.write(&mut next, &mut out)?,
            }
        }
        Some(out)
    }
}

impl Piece {
    fn write<'t>(
        &self,
        next: &mut impl FnMut(&u16) -> Option<&'t [u8]>,
        out: &mut Output,
    ) -> Option<()> {
        match self {
            Self::Known(reply) => put(reply, out),
            Self::Of(slot) => put(next(slot)?, out),
            // The plan knows which slot that is.
            Self::Last => return None,
            Self::Sum(slots) => {
                let replies = all(slots, next)?;
                match error(&replies) {
                    Some(error) => put(error, out),
                    None => {
                        let numbers: Option<Vec<i64>> = replies.into_iter().map(number).collect();
                        encode::integer(&mut out.bytes, numbers?.into_iter().sum());
                    }
                }
            }
            Self::Elements(places) => {
                let slots: BTreeSet<u16> = places.iter().copied().collect();
                let replies = all(&slots, next)?;
                if let Some(error) = error(&replies) {
                    put(error, out);
                    return Some(());
                }
                let mut of = BTreeMap::new();
                for (slot, reply) in slots.into_iter().zip(replies) {
                    let each = elements(reply)?.into_iter();
                    of.insert(slot, each.filter_map(|range| reply.get(range)));
                }
                encode::array(&mut out.bytes, places.len());
                for slot in places {
                    out.bytes.extend_from_slice(of.get_mut(slot)?.next()?);
                }
            }
            Self::Same(slots) => {
                let replies = all(slots, next)?;
                let one = error(&replies).or(replies.first().copied());
                put(one?, out);
            }
            Self::One(slots) => {
                let replies = all(slots, next)?;
                match error(&replies) {
                    Some(error) => put(error, out),
                    None => encode::integer(&mut out.bytes, 1),
                }
            }
        }
        Some(())
    }
}

/// Appends a reply; one that is an error counts as one.
fn put(reply: &[u8], out: &mut Output) {
    if reply.starts_with(b"-") {
        out.begin_error();
    }
    out.bytes.extend_from_slice(reply);
}

fn all<'t>(
    slots: &BTreeSet<u16>,
    next: &mut impl FnMut(&u16) -> Option<&'t [u8]>,
) -> Option<Vec<&'t [u8]>> {
    slots.iter().map(next).collect()
}

fn error<'t>(replies: &[&'t [u8]]) -> Option<&'t [u8]> {
    let mut replies = replies.iter().copied();
    replies.find(|reply| reply.starts_with(b"-"))
}

fn number(reply: &[u8]) -> Option<i64> {
    let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
