//! Long replies, made while they are sent: the beginning is written by the command, the rest by a
//! [`Source`] when the client has taken what precedes it. It keeps the collection as of the
//! command's instant; a large one shares its pieces with the key's value, so that this costs little.

use crate::Reply;
use crate::sorted_set::element;
use rufous_base::limits::MADE_AT_ONCE;
use rufous_base::rng::Rng;
use rufous_base::{Output, Source};
use rufous_datatype::algebra::Algebra;
use rufous_datatype::hash::Hash;
use rufous_datatype::list::List;
use rufous_datatype::object::Registered;
use rufous_datatype::set::Set;
use rufous_datatype::sorted_set::{self, SortedSet};
use rufous_datatype::table;
use rufous_resp::encode::Proto;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The elements of a reply, and how far it is.
pub(crate) trait Elements<T: Algebra>: Clone + Debug + Send + Sync + 'static {
    /// Whether the request says how many elements there are, not the data.
    const REPEATS: bool = false;

    /// Writes elements, at least one if any is left, until the reply has `end` bytes.
    fn write(&mut self, view: T::View<'_>, end: usize, reply: &mut Reply<'_>);

    /// The number of elements left.
    fn left(&self) -> u64;
}

/// A type whose views can be kept.
pub(crate) trait Kept: Registered {
    /// What the view shows, to be kept. What is large is shared.
    fn keep(view: Self::View<'_>) -> Self::State;
}

impl Kept for List {
    fn keep(view: Self::View<'_>) -> Self::State {
        view.to_state()
    }
}

impl Kept for SortedSet {
    fn keep(view: Self::View<'_>) -> Self::State {
        view.to_state()
    }
}

impl Kept for Set {
    fn keep(view: Self::View<'_>) -> Self::State {
        view.to_shared()
    }
}

impl Kept for Hash {
    fn keep(view: Self::View<'_>) -> Self::State {
        view.to_shared()
    }
}

/// Writes the elements, of which the view has those that are left. The head of the reply is
/// written already.
pub(crate) fn write<T: Kept>(
    view: T::View<'_>,
    mut elements: impl Elements<T>,
    reply: &mut Reply<'_>,
) {
    let (start, all) = (reply.out.bytes.len(), elements.left());
    if all == 0 {
        return;
    }
    elements.write(view, start + MADE_AT_ONCE, reply);
    let left = elements.left();
    if left > 0 {
        let written = (reply.out.bytes.len() - start) as u64;
        reply.out.make(Box::new(Rest::<T, _> {
            state: Arc::new(T::keep(view)),
            elements,
            proto: reply.proto,
            mean: written / (all - left).max(1),
        }));
    }
}

/// What is left of a reply.
struct Rest<T: Kept, E> {
    state: Arc<T::State>,
    elements: E,
    proto: Proto,
    /// Bytes of an element, about.
    mean: u64,
}

impl<T: Kept, E: Debug> Debug for Rest<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rest({}, {:?})", T::NAME, self.elements)
    }
}

impl<T: Kept, E: Elements<T>> Source for Rest<T, E> {
    fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
        let end = out.len().saturating_add(room);
        let mut made = Output {
            bytes: std::mem::take(out),
            ..Output::default()
        };
        let reply = &mut Reply {
            out: &mut made,
            proto: self.proto,
        };
        self.elements.write(T::view(&self.state), end, reply);
        *out = made.bytes;
        self.elements.left() > 0
    }

    fn remaining(&self) -> u64 {
        self.elements.left().saturating_mul(self.mean)
    }

    fn repeats(&self) -> bool {
        E::REPEATS
    }

    fn held(&self) -> usize {
        // The copies of a source share it, and are mostly gone by the time that matters.
        T::own_bytes(&self.state)
    }

    fn copy(&self) -> Box<dyn Source> {
        Box::new(Self {
            state: Arc::clone(&self.state),
            elements: self.elements.clone(),
            ..*self
        })
    }
}

/// What a reply has of each element of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Name,
    Value,
    Both,
    Pair,
}

impl Form {
    #[inline]
    pub(crate) fn write(self, reply: &mut Reply<'_>, name: &[u8], value: &[u8]) {
        if self == Form::Pair {
            reply.array(2);
        }
        if self != Form::Value {
            reply.bulk(name);
        }
        if self != Form::Name {
            reply.bulk(value);
        }
    }
}

/// All elements of a table.
#[derive(Clone, Debug)]
pub(crate) struct All {
    form: Form,
    /// A segment and the number of its elements that are written.
    at: (usize, usize),
    left: usize,
}

impl All {
    pub(crate) fn of<const WIDTH: usize>(view: table::View<'_, WIDTH>, form: Form) -> Self {
        Self {
            form,
            at: (0, 0),
            left: view.len(),
        }
    }

    fn write_of<const WIDTH: usize>(
        &mut self,
        view: table::View<'_, WIDTH>,
        end: usize,
        reply: &mut Reply<'_>,
    ) {
        let dict = match view {
            table::View::Packed(_) => {
                self.left = 0;
                return view.each(|name, value| self.form.write(reply, name, value));
            }
            table::View::Large(dict) => dict,
        };
        for segment in self.at.0..dict.segments() {
            for (name, value) in dict.segment(segment).skip(self.at.1) {
                self.form.write(reply, name, value);
                self.at.1 += 1;
                self.left -= 1;
                if reply.out.bytes.len() >= end {
                    return;
                }
            }
            self.at = (segment + 1, 0);
        }
        debug_assert_eq!(self.left, 0, "a kept table does not change");
        self.left = 0;
    }
}

/// Elements of a table, each drawn from all of them.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    form: Form,
    rng: Rng,
    left: u64,
}

impl Draws {
    pub(crate) fn new(count: u64, form: Form, rng: &mut Rng) -> Self {
        Self {
            form,
            rng: Rng::new(rng.next_u64()),
            left: count,
        }
    }

    fn write_of<const WIDTH: usize>(
        &mut self,
        view: table::View<'_, WIDTH>,
        end: usize,
        reply: &mut Reply<'_>,
    ) {
        let packed: Vec<_> = match view {
            table::View::Packed(_) => view.iter().collect(),
            table::View::Large(_) => Vec::new(),
        };
        while self.left > 0 {
            let drawn = match packed.len() as u64 {
                0 => view.random(&mut self.rng),
                len => packed.get(self.rng.below(len) as usize).copied(),
            };
            let Some((name, value)) = drawn else {
                self.left = 0;
                return;
            };
            self.form.write(reply, name, value);
            self.left -= 1;
            if reply.out.bytes.len() >= end {
                return;
            }
        }
    }
}

macro_rules! of_table {
    ($elements:ty, $of:ty, $repeats:expr) => {
        impl Elements<$of> for $elements {
            const REPEATS: bool = $repeats;

            fn write(
                &mut self,
                view: <$of as Algebra>::View<'_>,
                end: usize,
                reply: &mut Reply<'_>,
            ) {
                self.write_of(view, end, reply);
            }

            fn left(&self) -> u64 {
                self.left as u64
            }
        }
    };
}

of_table!(All, Set, false);
of_table!(All, Hash, false);
of_table!(Draws, Set, true);
of_table!(Draws, Hash, true);

/// Elements of a sorted set, each drawn from all of them.
#[derive(Clone, Debug)]
pub(crate) struct ScoredDraws {
    pub(crate) scores: bool,
    pub(crate) rng: Rng,
    pub(crate) left: u64,
}

impl Elements<SortedSet> for ScoredDraws {
    const REPEATS: bool = true;

    fn write(&mut self, view: sorted_set::View<'_>, end: usize, reply: &mut Reply<'_>) {
        let mut packed = Vec::new();
        if let sorted_set::View::Packed(_) = view {
            view.each(0..view.len(), false, |member, score| {
                packed.push((member, score));
            });
        }
        while self.left > 0 {
            let drawn = match packed.len() as u64 {
                0 => view.random(&mut self.rng),
                len => packed.get(self.rng.below(len) as usize).copied(),
            };
            let Some((member, score)) = drawn else {
                self.left = 0;
                return;
            };
            element(reply, member, score, self.scores);
            self.left -= 1;
            if reply.out.bytes.len() >= end {
                return;
            }
        }
    }

    fn left(&self) -> u64 {
        self.left
    }
}

/// Elements of a sorted set by their positions.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) span: Range<usize>,
    pub(crate) back: bool,
    pub(crate) scores: bool,
}

/// Elements of a collection that are written before the length of the reply is looked at.
const STEP: usize = 16;

impl Elements<SortedSet> for Span {
    fn write(&mut self, view: sorted_set::View<'_>, end: usize, reply: &mut Reply<'_>) {
        while !self.span.is_empty() {
            let step = STEP.min(self.span.len());
            let part = if self.back {
                self.span.end - step..self.span.end
            } else {
                self.span.start..self.span.start + step
            };
            view.each(part, self.back, |member, score| {
                element(reply, member, score, self.scores);
            });
            if self.back {
                self.span.end -= step;
            } else {
                self.span.start += step;
            }
            if reply.out.bytes.len() >= end {
                return;
            }
        }
    }

    fn left(&self) -> u64 {
        self.span.len() as u64
    }
}

/// Elements of a list by their positions.
#[derive(Clone, Debug)]
pub(crate) struct Places(pub(crate) Range<usize>);

impl Elements<List> for Places {
    fn write(&mut self, view: <List as Algebra>::View<'_>, end: usize, reply: &mut Reply<'_>) {
        for element in view.iter_from(self.0.start).take(self.0.len()) {
            reply.bulk(element);
            self.0.start += 1;
            if reply.out.bytes.len() >= end {
                return;
            }
        }
    }

    fn left(&self) -> u64 {
        self.0.len() as u64
    }
}
