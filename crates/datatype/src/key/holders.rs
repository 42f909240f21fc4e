//! What holds a key, as counts: an operation is compared with all holders at once, in constant time for each of its
//! accesses, and logarithmic time for elements.
//!
//! [`plain_relation`] says the same pair by pair; tests compare the two.

use super::access::{Access, Context, Mode, Place, Presence, What};
use super::footprint::Footprint;
use super::{Key, Relation};
use std::collections::BTreeMap;

/// What of a key's state matters to independence. It has to be taken before any of the holders is applied, or again
/// after some are: it grows no worse by holders that are applied or given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Elements; none where the key does not exist.
    pub len: u64,
    pub has_deadline: bool,
    /// Value and bounds of a number.
    pub room: Option<(i64, i64, i64)>,
}

impl Standing {
    pub fn of(key: &Key) -> Self {
        Self {
            len: key.len(),
            has_deadline: key.deadline().is_some(),
            room: key.room(),
        }
    }
}

/// What the context of a comparison is made of, as sums over all operations that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Totals {
    /// Elements that may be removed.
    removed: u128,
    /// Accesses that replace or delete the key, give it a deadline, or write its value without counting.
    wholes: u64,
    deadlines: u64,
    writes: u64,
    low: i128,
    high: i128,
}

impl Totals {
    /// The sums with a footprint added, or subtracted.
    fn with(mut self, footprint: &Footprint, adds: bool) -> Self {
        let sign = if adds { 1 } else { -1 };
        let step = |count: &mut u64| {
            *count = if adds { *count + 1 } else { *count - 1 };
        };
        let removed = u128::from(footprint.removed);
        self.removed = if adds {
            self.removed + removed
        } else {
            self.removed - removed
        };
        for access in &footprint.accesses {
            match access.what {
                What::Presence(presence) if presence.is_whole() => step(&mut self.wholes),
                What::At(Place::Deadline, mode) if mode != Mode::Read && mode != Mode::Discard => {
                    step(&mut self.deadlines);
                }
                What::At(Place::Whole, Mode::Count(by)) => {
                    self.low += sign * i128::from(by.min(0));
                    self.high += sign * i128::from(by.max(0));
                }
                What::At(place, mode)
                    if (place == Place::Whole || place.is_part()) && mode.writes() =>
                {
                    step(&mut self.writes);
                }
                _ => {}
            }
        }
        self
    }

    fn context(&self, standing: Option<&Standing>) -> Context {
        let Some(standing) = standing else {
            return Context::default();
        };
        let sums_fit = standing.room.is_some_and(|(value, min, max)| {
            let reach = |by: i128| i128::from(value) + by;
            reach(self.low) >= i128::from(min) && reach(self.high) <= i128::from(max)
        });
        Context {
            is_stable: self.wholes == 0 && u128::from(standing.len) > self.removed,
            has_no_deadline: !standing.has_deadline && self.deadlines == 0,
            sums_fit: sums_fit && self.writes == 0,
        }
    }

    /// Of operations that were applied, where the state is the one after them: whether sums fit from any state that any part
    /// of them may have come from, and whether none of them was refused.
    fn context_after(&self, standing: &Standing) -> Context {
        let span = self.high - self.low;
        let fits = |(value, min, max): (i64, i64, i64)| {
            let value = i128::from(value);
            value - span >= i128::from(min) && value + span <= i128::from(max)
        };
        Context {
            sums_fit: standing.room.is_some_and(fits) && self.writes == 0 && self.wholes == 0,
            ..Context::default()
        }
    }
}

/// How many accesses there are of each class, and how many of these are fixed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Counts<const N: usize> {
    all: [u64; N],
    fixed: [u64; N],
}

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        Self {
            all: [0; N],
            fixed: [0; N],
        }
    }
}

impl<const N: usize> Counts<N> {
    fn step(&mut self, class: usize, fixed: bool, adds: bool) {
        let step = |count: &mut u64| {
            *count = if adds { *count + 1 } else { *count - 1 };
        };
        step(&mut self.all[class]);
        if fixed {
            step(&mut self.fixed[class]);
        }
    }

    fn is_empty(&self) -> bool {
        self.all.iter().all(|count| *count == 0)
    }

    /// One access of each class that there is: a fixed one if there is one.
    fn each(&self, of: impl Fn(usize) -> What) -> impl Iterator<Item = Access> {
        let classes = (0..N).filter(|class| self.all[*class] > 0);
        classes.map(move |class| Access {
            what: of(class),
            fixed: self.fixed[class] > 0,
        })
    }
}

type Modes = Counts<{ Mode::CLASSES.len() }>;

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    held: usize,
    totals: Totals,
    presence: Counts<{ Presence::CLASSES }>,
    /// By place; elements among them.
    places: BTreeMap<Place, Modes>,
    /// All that are at parts of the value.
    parts: Modes,
}

impl Holders {
    pub fn hold(&mut self, footprint: &Footprint) {
        self.held += 1;
        self.step(footprint, true);
    }

    /// Takes back what [`Holders::hold`] was given.
    pub fn release(&mut self, footprint: &Footprint) {
        self.held -= 1;
        self.step(footprint, false);
    }

    pub fn len(&self) -> usize {
        self.held
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    fn step(&mut self, footprint: &Footprint, adds: bool) {
        self.totals = self.totals.with(footprint, adds);
        for access in &footprint.accesses {
            match access.what {
                What::Presence(presence) => {
                    self.presence.step(presence.class(), access.fixed, adds);
                }
                What::At(place, mode) => {
                    let modes = self.places.entry(place).or_default();
                    modes.step(mode.class(), access.fixed, adds);
                    if modes.is_empty() {
                        self.places.remove(&place);
                    }
                    if place.is_part() {
                        self.parts.step(mode.class(), access.fixed, adds);
                    }
                }
            }
        }
    }

    /// The strongest relation of an operation to any holder; without a standing: in whatever state.
    pub fn relation(&self, new: &Footprint, standing: Option<&Standing>) -> Relation {
        self.strongest(new, self.totals.with(new, true).context(standing))
    }

    /// The strongest relation of an operation to those that were applied, and that it may not be told apart from: `standing` is
    /// the key after them.
    pub fn relation_after(&self, new: &Footprint, standing: &Standing) -> Relation {
        self.strongest(new, self.totals.with(new, true).context_after(standing))
    }

    fn strongest(&self, new: &Footprint, context: Context) -> Relation {
        if self.held == 0 {
            return Relation::Independent;
        }
        let strongest = |held: &mut dyn Iterator<Item = Access>, access: &Access| {
            held.map(|held| one(access, &held, context)).max()
        };
        let of = |access: &Access| match access.what {
            What::Presence(_) => {
                let of_class = |class| What::Presence(Presence::of_class(class));
                strongest(&mut self.presence.each(of_class), access)
            }
            What::At(place, _) => {
                let same = self.at(place);
                let around = self.at(Place::Whole).filter(|_| place.is_part());
                let parts = |class| What::At(Place::Size, Mode::CLASSES[class]);
                let within = self.parts.each(parts).filter(|_| place == Place::Whole);
                strongest(&mut same.chain(around).chain(within), access)
            }
        };
        let all = new.accesses.iter().filter_map(of);
        all.max().unwrap_or(Relation::Independent)
    }

    /// The relation of two that are held: others may leave less of what both of them need.
    pub fn pair(&self, [a, b]: [&Footprint; 2], standing: Option<&Standing>) -> Relation {
        let context = self.totals.context(standing);
        let pairs = a.accesses.iter();
        let pairs = pairs.flat_map(|a| b.accesses.iter().map(move |b| one(a, b, context)));
        pairs.max().unwrap_or(Relation::Independent)
    }

    fn at(&self, place: Place) -> impl Iterator<Item = Access> {
        let modes = self.places.get(&place).into_iter();
        modes.flat_map(move |modes| modes.each(move |class| What::At(place, Mode::CLASSES[class])))
    }
}

fn one(a: &Access, b: &Access, context: Context) -> Relation {
    if a.commutes(b, context) {
        Relation::Independent
    } else if a.conflicts(b) {
        Relation::Conflicting
    } else {
        Relation::Orderable
    }
}

/// What [`Holders::relation`] says, pair by pair.
pub fn plain_relation<'f>(
    held: impl Iterator<Item = &'f Footprint> + Clone,
    new: &'f Footprint,
    standing: Option<&Standing>,
) -> Relation {
    let totals = held.clone().chain([new]);
    let totals = totals.fold(Totals::default(), |totals, one| totals.with(one, true));
    let context = totals.context(standing);
    let pairs = held.flat_map(|held| {
        let held = held.accesses.iter();
        held.flat_map(|a| new.accesses.iter().map(move |b| one(a, b, context)))
    });
    pairs.max().unwrap_or(Relation::Independent)
}
