//! Replicated strings with causal order: a write replaces what its writer has seen, and becomes a sibling of the
//! rest; increments of one write add up. See [`rufous_lattice::Siblings`].
//!
//! A state is its encoding there, packed or, if it does not fit a record, kept by reference; no bytes are a state
//! that was never written. Operations contain whole states, so that what a state has seen is exactly its vector.

#[cfg(test)]
mod tests;

use super::{Expiry, Forgotten, Replicas, Writer};
use crate::algebra::{Algebra, Applied, Corrupt, DataType, MAX_PACKED, Merge, Rule, Tuning, When};
pub use crate::declared::{Kind, Op};
use crate::declared::{merge_alone, merge_coded, packed_or_large};
use crate::{ValueError, integer, pack, table};
use rufous_base::rng::Rng;
use rufous_lattice::{Coded, Lattice, Seen, Siblings as Values, Stamp, VersionVector};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

/// See the module's description.
#[derive(Debug)]
pub struct Siblings;

#[derive(Clone, Debug)]
pub enum State {
    Packed(Vec<u8>),
    /// Copies share it.
    Large(Arc<Vec<u8>>),
}

/// An encoded [`Values`], or nothing.
pub type View<'a> = &'a [u8];

/// Which of several values a plain read returns. All replicas that have the same values choose the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// The one that was written last.
    #[default]
    Newest,
    /// The largest: numbers by value, below texts; texts by their bytes.
    Largest,
    Smallest,
}

/// The texts, the latest first. Nothing is decoded.
#[inline]
pub fn texts(view: View<'_>) -> impl Iterator<Item = &[u8]> {
    rufous_lattice::siblings::texts(view)
}

/// The text that a plain read returns. Nothing is decoded.
#[inline]
pub fn shown(view: View<'_>, pick: Pick) -> Option<&[u8]> {
    let mut texts = texts(view);
    match pick {
        Pick::Newest => texts.next(),
        Pick::Largest => texts.max_by(|a, b| compare(a, b)),
        Pick::Smallest => texts.min_by(|a, b| compare(a, b)),
    }
}

/// A total order, whatever the texts are.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let number = |text: &[u8]| -> Option<f64> {
        let number: f64 = str::from_utf8(text).ok()?.parse().ok()?;
        // Makes a negative zero positive.
        (!number.is_nan()).then_some(number + 0.0)
    };
    match (number(a), number(b)) {
        (Some(x), Some(y)) => {
            // Integers with the same double are still ordered.
            let order = x.total_cmp(&y);
            let order = order.then_with(|| integer::parse_i64(a).cmp(&integer::parse_i64(b)));
            order.then_with(|| a.cmp(b))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// When the value that is read expires, in Unix milliseconds; 0 for never.
pub fn shown_deadline(view: View<'_>, pick: Pick) -> u64 {
    let mut timed = rufous_lattice::siblings::timed(view);
    let picked = match pick {
        Pick::Newest => timed.next(),
        Pick::Largest => timed.max_by(|a, b| compare(a.0, b.0)),
        Pick::Smallest => timed.min_by(|a, b| compare(a.0, b.0)),
    };
    picked.map_or(0, |(_, deadline)| deadline)
}

/// Number of values.
pub fn count(view: View<'_>) -> usize {
    rufous_lattice::siblings::len(view)
}

/// The vector of writes that were seen.
pub fn seen(view: View<'_>) -> VersionVector {
    rufous_lattice::siblings::seen_of(view).unwrap_or_default()
}

/// All values, with the vector.
pub fn values(view: View<'_>) -> Values {
    if view.is_empty() {
        return Values::default();
    }
    // The kept bytes were encoded here; no bytes are a state that was never written.
    Values::decode(view).unwrap_or_default()
}

/// Writes a value that replaces what `context` has seen, or everything that this replica shows; with a deadline in
/// Unix milliseconds, or 0. Returns the number of values after that, and the writer's context.
pub fn set(
    view: View<'_>,
    (value, deadline): (&[u8], u64),
    context: Option<&Seen>,
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> (usize, Seen) {
    let mut values = values(view);
    values.write(writer.stamp, Some(value.to_vec()), context);
    if deadline > 0 {
        values.set_deadline_of(writer.stamp, deadline);
    }
    tell(&values, ops);
    let nothing = Seen::default();
    let seen = values.seen_by_writer(writer.stamp, context.unwrap_or(&nothing));
    (values.live().count(), seen)
}

/// Deletes what `context` has seen, or everything that this replica shows. Returns whether there was any.
pub fn delete(view: View<'_>, context: Option<&Seen>, writer: &Writer, ops: &mut Vec<u8>) -> bool {
    let mut values = values(view);
    let before = values.live().count();
    if values.write(writer.stamp, None, context) {
        tell(&values, ops);
    }
    values.live().count() < before
}

/// Sets a deadline in Unix milliseconds on what `context` has seen, or on everything that this replica shows; 0
/// removes it. No value is replaced by that. Returns whether there was any.
pub fn set_deadline(
    view: View<'_>,
    at: u64,
    context: Option<&Seen>,
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> bool {
    let mut values = values(view);
    let any = values.set_deadline(writer.stamp, at, context);
    tell(&values, ops);
    any
}

/// The operation of every replica when the next deadline has passed.
fn expire(view: View<'_>, ops: &mut Vec<u8>) {
    let mut values = values(view);
    if let Some(at) = values.next_deadline() {
        values.expire(at);
        tell(&values, ops);
    }
}

/// Adds to the value that is shown, and returns the sum. If all values are deleted a new one is written. A text that
/// is not a number is not changed.
pub fn increment(
    view: View<'_>,
    pick: Pick,
    by: i64,
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> Result<i64, ValueError> {
    let shown = shown(view, pick);
    let sum = integer::increment(shown, by)?;
    let mut values = values(view);
    let at = values
        .live()
        .find(|sibling| Some(&*sibling.text()) == shown);
    match at.map(|sibling| sibling.stamp) {
        None if !values.is_bottom() => {
            values.write(writer.stamp, Some(sum.to_string().into_bytes()), None);
        }
        at => {
            let added = values.add(at.unwrap_or(Stamp::ZERO), writer.stamp.replica, by);
            added.map_err(|_| ValueError::Overflow)?;
        }
    }
    tell(&values, ops);
    Ok(sum)
}

fn tell(values: &Values, ops: &mut Vec<u8>) {
    let delta = &values.encoded();
    Siblings::encode(&Op::Merge { delta }, ops);
}

impl State {
    fn bytes(&self) -> &[u8] {
        match self {
            State::Packed(bytes) => bytes,
            State::Large(bytes) => bytes,
        }
    }

    fn merge(&mut self, delta: &[u8]) -> bool {
        let Ok(theirs) = Values::decode(delta) else {
            return false;
        };
        let mut values = values(self.bytes());
        let changed = values.merge(&theirs);
        if changed {
            let bytes = values.encoded();
            *self = match bytes.len() <= MAX_PACKED {
                true => State::Packed(bytes),
                false => State::Large(Arc::new(bytes)),
            };
        }
        changed
    }
}

impl Algebra for Siblings {
    type State = State;
    type View<'a> = View<'a>;

    const NAME: &'static str = "siblings";
    const ABOUT: &'static str = "Strings of causal keyspaces. A write replaces the values that its \
        writer has seen; values whose writers have not seen each other stay beside each other, \
        until a write that has seen them all replaces them. Increments belong to the value that \
        they have seen and add up, whichever replicas they are made at; they go with it. Each value \
        may have a deadline; when it has come, every replica drops that value by itself. Where one \
        value is asked for, the latest answers, or the largest or smallest.";
    const MERGE: Option<Merge<Self>> = Some(|into, from, _| !from.is_empty() && into.merge(from));

    merge_alone!();

    fn empty() -> State {
        State::Packed(Vec::new())
    }

    #[inline]
    fn view(state: &State) -> View<'_> {
        state.bytes()
    }

    fn commit(state: &mut State, Op::Merge { delta }: &Op<'_>, _: &Tuning) {
        state.merge(delta);
    }

    fn apply(state: &mut State, Op::Merge { delta }: &Op<'_>, _: &Tuning) -> Applied<()> {
        Applied {
            reply: (),
            changed: state.merge(delta),
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        let (Op::Merge { delta: a }, Op::Merge { delta: b }) = (pending, new);
        (a == b).then_some(*new)
    }

    fn sample_state(rng: &mut Rng) -> State {
        let mut state = Self::empty();
        for _ in 0..rng.below(4) {
            state.merge(sample(rng));
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        Op::Merge { delta: sample(rng) }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        view.to_vec()
    }
}

/// An encoded state of few stamps; one fits no record.
fn sample(rng: &mut Rng) -> &'static [u8] {
    static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let nothing = Seen::default();
        let mut all = Vec::new();
        for replica in 1..4u16 {
            let mut values = Values::default();
            for time in 1..4 {
                let stamp = Stamp::new(time, replica);
                let len = if (replica, time) == (3, 3) { 4000 } else { 2 };
                let value = (time != 2).then(|| vec![b'0' + time as u8; len]);
                values.write(stamp, value, (replica == 1).then_some(&nothing));
                all.push(values.encoded());
                // invariant: so little fits
                values.add(stamp, replica, 7).expect("fits");
                values.set_deadline_of(stamp, time - 1);
                all.push(values.encoded());
                values.expire(1);
                all.push(values.encoded());
            }
            let mut counted = Values::default();
            // invariant: so little fits
            counted.add(Stamp::ZERO, replica, -5).expect("fits");
            all.push(counted.encoded());
            counted.set_deadline(Stamp::new(7, replica), 1, None);
            all.push(counted.encoded());
        }
        all
    });
    &SAMPLES[rng.below(SAMPLES.len() as u64) as usize]
}

impl DataType for Siblings {
    const REDIS_NAME: &'static str = "string";
    const REPLICAS: Option<Replicas<Self>> = Some(Replicas {
        newest: |state| values(state.bytes()).newest(),
        is_hidden: |view| count(view) == 0,
        forget: |state, horizon, _| {
            let values = values(state.bytes());
            if values.live().next().is_some() || values.until() > horizon {
                return Forgotten::Kept;
            }
            *state = Self::empty();
            Forgotten::Empty
        },
        delete: |state, writer, ops| {
            delete(state.bytes(), None, writer, ops);
        },
        expiry: Expiry {
            deadline: |state| {
                let next = rufous_lattice::siblings::next_deadline(state.bytes());
                next.unwrap_or(0)
            },
            until: |state| values(state.bytes()).until(),
            floor: |_| Stamp::ZERO,
            set: |state, at, writer, ops| {
                set_deadline(state.bytes(), at, None, writer, ops);
                Ok(())
            },
            pass: |state, ops| expire(state.bytes(), ops),
        },
        make_way: None,
        past: None,
        adds_to_nothing: |Op::Merge { delta }| {
            let values = values(delta);
            let adds = !values.is_bottom() && values.newest() == Stamp::ZERO;
            adds.then_some(b"")
        },
    });

    packed_or_large!(|bytes: &Arc<Vec<u8>>| size_of::<Vec<u8>>() + bytes.len());
    merge_coded!(Values::decode);

    fn packed_view(bytes: &[u8]) -> View<'_> {
        bytes
    }

    fn is_empty(view: View<'_>) -> bool {
        view.is_empty()
    }

    /// One string is read, whatever its siblings.
    fn len(view: View<'_>) -> usize {
        usize::from(count(view) > 0)
    }

    fn encoding(view: View<'_>, _: &Tuning) -> &'static str {
        match texts(view).next() {
            Some(text) if integer::is_canonical_integer(text) => "int",
            Some(text) if text.len() > 44 => "raw",
            _ => "embstr",
        }
    }

    fn chunk(view: View<'_>, _: u64, _: usize, out: &mut Vec<u8>) -> Option<u64> {
        out.extend_from_slice(view);
        None
    }

    fn extend(state: &mut State, chunk: &[u8], _: &Tuning) -> Result<(), Corrupt> {
        let theirs = Values::decode(chunk).map_err(|_| Corrupt)?;
        // A state without any write is a missing key.
        if theirs.is_bottom() {
            return Err(Corrupt);
        }
        state.merge(chunk);
        Ok(())
    }
}
