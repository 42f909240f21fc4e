//! The accesses of an operation that is held, or that asks to be.

use super::access::{Access, Mode, Place, Presence, What};
use super::{Op, Type};
use crate::expire::ExpireCondition;
use foldhash::quality::FixedState;
use std::hash::BuildHasher;

/// An operation that is held, or that asks to be, with what was observed of it or promised.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    pub op: Op<'a>,
    /// Whether the reply is read at all.
    pub wanted: bool,
    /// The reply was computed and shown: nothing may come before that changes it.
    pub shown: bool,
    pub condition: Condition,
}

/// What was checked and has to stay true until the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    None,
    /// That of the operation itself, such as `NX`.
    Own,
    /// The version of the key.
    Version,
}

impl<'a> Held<'a> {
    /// Whose reply is wanted, and with nothing observed or promised.
    pub fn new(op: Op<'a>) -> Self {
        Self {
            op,
            wanted: true,
            shown: false,
            condition: Condition::None,
        }
    }

    pub fn quiet(op: Op<'a>) -> Self {
        Self {
            wanted: false,
            ..Self::new(op)
        }
    }

    pub fn footprint(&self) -> Footprint {
        let own = self.condition == Condition::Own;
        let mut touch = Touch::new(self.wanted || self.shown || own);
        match &self.op {
            Op::Typed(typed) => {
                typed.touch(&mut touch);
                touch.condition();
            }
            op => of_key(op, &mut touch),
        }
        touch.end(self)
    }
}

/// All accesses of operations that are done together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Footprint {
    pub(super) accesses: Vec<Access>,
    /// Elements that they remove at most.
    pub(super) removed: u64,
}

impl Footprint {
    /// With those of another operation of the same transaction.
    pub fn join(&mut self, other: Footprint) {
        self.removed = self.removed.saturating_add(other.removed);
        self.accesses.extend(other.accesses);
    }

    /// It depends on the key's version.
    pub fn expect_version(&mut self) {
        self.accesses.push(Access {
            what: What::At(Place::Version, Mode::Read),
            fixed: true,
        });
    }

    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    pub fn writes(&self) -> bool {
        self.accesses.iter().any(Access::writes)
    }
}

/// Takes the accesses of one operation.
#[derive(Debug)]
pub struct Touch {
    of: Option<Type>,
    wanted: bool,
    whats: Vec<What>,
    removed: u64,
    /// The number of accesses that a condition of the operation's own depends on: the first ones.
    conditions: usize,
}

impl Touch {
    fn new(wanted: bool) -> Self {
        Self {
            of: None,
            wanted,
            whats: Vec::new(),
            removed: 0,
            conditions: 0,
        }
    }

    /// Of an operation of this type.
    pub(super) fn of_type(&mut self, of: Type) -> &mut Self {
        self.of = Some(of);
        self
    }

    fn end(mut self, held: &Held<'_>) -> Footprint {
        let writes = |what: &What| match what {
            What::At(_, mode) => mode.writes(),
            What::Presence(presence) => presence.writes(),
        };
        // What changes nothing and whose reply is not wanted does nothing.
        if !self.wanted && !self.whats.iter().any(writes) {
            self.whats.clear();
        }
        if self.whats.iter().any(writes) {
            self.at(Place::Version, Mode::Shift);
        }
        let own = held.condition == Condition::Own;
        let accesses = self.whats.into_iter().enumerate();
        let accesses = accesses.map(|(at, what)| Access {
            what,
            fixed: held.shown || own && at < self.conditions,
        });
        let mut footprint = Footprint {
            accesses: accesses.collect(),
            removed: self.removed,
        };
        if held.condition == Condition::Version {
            footprint.expect_version();
        }
        footprint
    }

    fn at(&mut self, place: Place, mode: Mode) -> &mut Self {
        self.whats.push(What::At(place, mode));
        self
    }

    fn presence(&mut self, make: fn(Type) -> Presence) -> &mut Self {
        if let Some(of) = self.of {
            self.whats.push(What::Presence(make(of)));
        }
        self
    }

    /// It may create the key.
    pub fn makes(&mut self) -> &mut Self {
        self.presence(Presence::Makes)
    }

    /// It leaves the key's existence as it is.
    pub fn sees(&mut self) -> &mut Self {
        self.presence(Presence::Sees)
    }

    /// It removes up to so many elements, perhaps the last ones.
    pub fn ends(&mut self, most: u64) -> &mut Self {
        self.removed = self.removed.saturating_add(most);
        self.presence(Presence::Ends)
    }

    /// Likewise, whichever elements there are.
    pub fn takes(&mut self, most: u64) -> &mut Self {
        self.removed = self.removed.saturating_add(most);
        self.presence(Presence::Takes)
    }

    pub fn whole(&mut self, mode: Mode) -> &mut Self {
        self.at(Place::Whole, mode)
    }

    pub fn size(&mut self, mode: Mode) -> &mut Self {
        self.at(Place::Size, mode)
    }

    pub fn front(&mut self, mode: Mode) -> &mut Self {
        self.at(Place::Front, mode)
    }

    pub fn back(&mut self, mode: Mode) -> &mut Self {
        self.at(Place::Back, mode)
    }

    pub fn element(&mut self, name: &[u8], mode: Mode) -> &mut Self {
        // No client gains by names of one hash: its own operations wait for one another.
        let hash = FixedState::with_seed(0).hash_one(name);
        self.at(Place::Element(hash), mode)
    }

    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The mode of an update whose reply depends on the state before, or is not wanted: then it is the other mode.
    pub fn update_or(&self, quiet: Mode) -> Mode {
        if self.wanted { Mode::Update } else { quiet }
    }

    /// Reads the whole value.
    pub fn reads_all(&mut self) -> &mut Self {
        self.sees().whole(Mode::Read)
    }

    /// The most that an operation of a type may do.
    pub fn changes_all(&mut self) -> &mut Self {
        let mode = self.update_or(Mode::Write);
        self.makes().takes(u64::MAX).whole(mode)
    }

    fn asks(&mut self) -> &mut Self {
        self.whats.push(What::Presence(Presence::Asks));
        self
    }

    fn key(&mut self, presence: Presence, mode: Mode, deadline: Option<Mode>) -> &mut Self {
        self.whats.push(What::Presence(presence));
        self.whole(mode);
        if let Some(mode) = deadline {
            self.at(Place::Deadline, mode);
        }
        self
    }

    fn if_wanted(&mut self, what: impl FnOnce(&mut Self)) -> &mut Self {
        if self.wanted {
            what(self);
        }
        self
    }

    /// What was touched so far decides whether the operation takes place.
    fn condition(&mut self) -> &mut Self {
        self.conditions = self.whats.len();
        self
    }
}

/// Accesses of the operations on keys of any type.
fn of_key(op: &Op<'_>, touch: &mut Touch) {
    let update = touch.update_or(Mode::Discard);
    let asks = |touch: &mut Touch| {
        touch.asks();
    };
    match op {
        Op::Typed(_) => {}
        Op::Exists | Op::Type => {
            touch.asks();
        }
        Op::Ttl => {
            touch.asks().at(Place::Deadline, Mode::Read);
        }
        Op::Dump => {
            touch.asks().whole(Mode::Read);
            touch.at(Place::Deadline, Mode::Read);
        }
        Op::Delete => {
            touch.if_wanted(asks);
            touch.key(Presence::Deletes, Mode::Discard, Some(Mode::Discard));
        }
        Op::Take => {
            touch.if_wanted(asks);
            touch.key(Presence::Deletes, update, Some(update));
        }
        Op::Expired { .. } => {
            touch.asks().at(Place::Deadline, Mode::Read).condition();
            touch.key(Presence::Deletes, Mode::Discard, Some(Mode::Update));
        }
        Op::Expire { only, .. } if *only == ExpireCondition::default() => {
            touch.asks().at(Place::Deadline, Mode::Write);
        }
        Op::Expire { .. } => {
            touch.asks().at(Place::Deadline, Mode::Update).condition();
        }
        Op::Persist => {
            touch.asks().at(Place::Deadline, update);
        }
        Op::Set(set) => {
            if set.only.is_some() {
                touch.asks().condition();
            }
            let gets = set.get && touch.wanted;
            let mode = if gets { Mode::Update } else { Mode::Write };
            // It depends on the type whether the value can be shown, and then whether it is replaced.
            if set.get {
                touch.asks();
            }
            let deadline = (!set.keeps_deadline()).then_some(Mode::Write);
            touch.key(Presence::Replaces, mode, deadline);
        }
        Op::Put(put) => {
            if put.only_new {
                touch.asks().condition();
            }
            touch.key(Presence::Replaces, Mode::Write, Some(Mode::Write));
        }
    }
}
