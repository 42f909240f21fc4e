//! Which operations on a string are independent.
//!
//! An operation that changes nothing here must do so, and answer the same,
//! after whatever the other does; two that change must leave the same in both
//! orders. That is decided for pairs, by what each writes and reads: the rules
//! stay true while other admitted operations are done, as none of these writes
//! what another reads. Counting and appending alone look at the whole group.

use super::act::{Act, Patch, act};
use super::{Kind, Op, Text, View, len};
use crate::algebra::{self, Algebra, Held, Rule, When};
use crate::range::{check_string_len, string_range};
use crate::{DEFAULT_MAX_BULK_LEN, integer};
use std::sync::OnceLock;

pub(super) fn admits(held: &[Held<Op<'_>>], new: &Held<Op<'_>>, view: View<'_>) -> bool {
    let group = || held.iter().chain([new]);
    held.iter().all(|held| pair(held, new, view))
        && sums_fit(group(), view)
        && appended_fits(group(), view)
}

fn pair(a: &Held<Op<'_>>, b: &Held<Op<'_>>, view: View<'_>) -> bool {
    let (doing_a, doing_b) = (act(&a.op), act(&b.op));
    if let (Act::Add(_), Act::Add(_)) = (doing_a, doing_b) {
        return sums_fit([a, b].into_iter(), view);
    }
    match (doing_a.changes(view), doing_b.changes(view)) {
        (false, false) => true,
        (false, true) => undisturbed(a, &doing_b, view),
        (true, false) => undisturbed(b, &doing_a, view),
        (true, true) => commute(a, b, view) || commute(b, a, view),
    }
}

/// Whether the reply is the same before and after the string came to be `value`.
fn answers_alike(held: &Held<Op<'_>>, view: View<'_>, value: View<'_>) -> bool {
    !held.wanted || Text::execute(view, &held.op) == Text::execute(value, &held.op)
}

/// Whether an operation that changes nothing here does so, and answers the
/// same, also after one that changes something.
fn undisturbed(still: &Held<Op<'_>>, change: &Act<'_>, view: View<'_>) -> bool {
    let same = |value| !act(&still.op).changes(value) && answers_alike(still, view, value);
    let quiet = !still.wanted;
    match (*change, act(&still.op)) {
        (Act::Nothing, _) => true,
        (Act::Put(value), _) => same(value),
        (Act::PutIfMissing(value), _) => same(Some(value)),
        // It is present, for it is still, and what follows keeps it.
        (_, Act::PutIfMissing(_)) => true,
        // Nothing more is nothing, be it a number or not.
        (_, Act::Add(0)) if quiet => true,
        (Act::Patch(patch), Act::Nothing) => quiet || reads_around(&still.op, &patch, view),
        (Act::Patch(patch), Act::Patch(own)) => {
            own.agrees(&patch) && (quiet || answers_around(&own, &patch, view))
        }
        (Act::Append(_), Act::Nothing) => quiet || reads_within(&still.op, view),
        (Act::Append(_), Act::Patch(own)) => quiet || matches!(own, Patch::Bit { .. }),
        (Act::Add(_) | Act::AddFloat(_), Act::Nothing) => quiet || reads_nothing(&still.op, view),
        (Act::Append(_), Act::Add(_) | Act::AddFloat(_)) => no_number(view).is_some(),
        (Act::Patch(patch), Act::Add(_) | Act::AddFloat(_)) => no_number(view)
            .is_some_and(|byte| patch.leaves_bytes(view.unwrap_or_default(), byte..byte + 1)),
        _ => false,
    }
}

/// The first byte that is in no number, and so makes that the string is none.
/// It depends on the string alone: while it stays, counts are refused, whatever
/// becomes of the others.
fn no_number(view: View<'_>) -> Option<usize> {
    // Also hexadecimal and infinite ones, that is.
    let in_none = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte);
    let letter = |byte: &u8| b"ghjklmoqrsuvwzGHJKLMOQRSUVWZ".contains(byte);
    view?.iter().position(|byte| in_none(byte) || letter(byte))
}

/// Whether two operations that change the string leave the same in both
/// orders, and wanted replies are the same. Tried with the two exchanged, too.
fn commute(a: &Held<Op<'_>>, b: &Held<Op<'_>>, view: View<'_>) -> bool {
    match (act(&a.op), act(&b.op)) {
        // Afterwards, the other changes nothing; before, it is overwritten.
        (Act::Put(x), doing) => {
            !doing.changes(x) && answers_alike(a, view, x) && answers_alike(b, view, x)
        }
        (Act::PutIfMissing(x), Act::PutIfMissing(y)) => x == y && !a.wanted && !b.wanted,
        (Act::Patch(x), Act::Patch(y)) => {
            x.agrees(&y)
                && (!a.wanted || answers_around(&x, &y, view))
                && (!b.wanted || answers_around(&y, &x, view))
        }
        (Act::Append(_), Act::Patch(patch)) => {
            patch.end() <= len(view) && (!b.wanted || matches!(patch, Patch::Bit { .. }))
        }
        (Act::Append(x), Act::Append(y)) => {
            !a.wanted && !b.wanted && x.iter().chain(y).eq(y.iter().chain(x))
        }
        _ => false,
    }
}

/// What a read looks at, besides the length where that is `len`.
enum Reads {
    Bytes {
        range: std::ops::Range<usize>,
        len: bool,
    },
    Bit(u64),
    /// Also whether there is a string.
    All,
}

fn reads(op: &Op<'_>, view: View<'_>) -> Reads {
    let size = view.map_or(0, <[u8]>::len);
    match *op {
        Op::GetRange { start, end } => {
            let range = string_range(start, end, size);
            let reversed = start > end && (start < 0) == (end < 0);
            let inside = start >= 0 && (0..size as i64).contains(&end);
            let len = !(reversed || inside);
            Reads::Bytes { range, len }
        }
        Op::GetBit { offset } => Reads::Bit(offset),
        Op::BitCount => Reads::Bytes {
            range: 0..usize::MAX,
            len: false,
        },
        Op::StrLen
        | Op::SetRange {
            offset: 0..,
            value: [],
        } => Reads::Bytes {
            range: 0..0,
            len: true,
        },
        // Refused whatever is there.
        Op::SetRange { .. } => Reads::Bytes {
            range: 0..0,
            len: false,
        },
        _ => Reads::All,
    }
}

/// Whether the reply is the same whatever the string is.
fn reads_nothing(op: &Op<'_>, view: View<'_>) -> bool {
    matches!(reads(op, view), Reads::Bytes { range, len: false } if range.is_empty())
}

/// Whether a patch leaves what a read looks at.
fn reads_around(op: &Op<'_>, patch: &Patch<'_>, view: View<'_>) -> bool {
    let bytes = view.unwrap_or_default();
    match reads(op, view) {
        Reads::All => false,
        Reads::Bit(offset) => patch.leaves_bit(bytes, offset),
        Reads::Bytes { range, len } => {
            let grows = patch.end() > bytes.len() as u64;
            !(len && grows) && patch.leaves_bytes(bytes, range)
        }
    }
}

/// Whether a read looks at nothing behind the end.
fn reads_within(op: &Op<'_>, view: View<'_>) -> bool {
    let size = view.map_or(0, <[u8]>::len);
    match reads(op, view) {
        Reads::All => false,
        Reads::Bit(offset) => offset / 8 < size as u64,
        Reads::Bytes { range, len } => !len && range.end <= size,
    }
}

/// Whether another patch leaves the reply of a patch: the length afterwards, or
/// the bit before.
fn answers_around(own: &Patch<'_>, other: &Patch<'_>, view: View<'_>) -> bool {
    match *own {
        Patch::Bit { at, .. } => other.leaves_bit(view.unwrap_or_default(), at),
        Patch::Bytes { .. } => other.end() <= own.end().max(len(view)),
    }
}

/// Whether every count fits in every order, or in none, and no wanted reply
/// depends on another.
fn sums_fit<'o, 'a: 'o>(
    group: impl Iterator<Item = &'o Held<Op<'a>>> + Clone,
    view: View<'_>,
) -> bool {
    let counts = group.filter_map(|held| match held.op {
        Op::Incr { by } => Some((by, held.wanted)),
        _ => None,
    });
    let Some(now) = view.map_or(Some(0), integer::parse_i64) else {
        // All are refused.
        return true;
    };
    let fits = |sum: i128| i64::try_from(sum).is_ok();
    let after = |by: i64| i128::from(now) + i128::from(by);
    let (done, refused) = (
        counts.clone().filter(|(by, _)| fits(after(*by))),
        counts.filter(|(by, _)| !fits(after(*by))),
    );
    // Where the number may be, by what was done before.
    let (mut low, mut high, mut changing) = (i128::from(now), i128::from(now), 0);
    for (by, _) in done.clone() {
        low += i128::from(by.min(0));
        high += i128::from(by.max(0));
        changing += usize::from(by != 0);
    }
    let stay_refused = |by: i64| {
        let nearest = if by > 0 { low } else { high };
        !fits(nearest + i128::from(by))
    };
    fits(low)
        && fits(high)
        && refused.clone().all(|(by, _)| stay_refused(by))
        && done
            .clone()
            .all(|(by, wanted)| !wanted || changing == usize::from(by != 0))
}

/// Whether all that is appended fits in together.
fn appended_fits<'o, 'a: 'o>(
    group: impl Iterator<Item = &'o Held<Op<'a>>> + Clone,
    view: View<'_>,
) -> bool {
    let appended = group.filter_map(|held| match held.op {
        Op::Append { value } => Some(value.len() as u64),
        _ => None,
    });
    appended.clone().count() < 2
        || check_string_len(len(view), appended.sum(), DEFAULT_MAX_BULK_LEN).is_ok()
}

/// Kinds that have their conditions in common, in the order of `Kind::ALL`.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Read,
    Put,
    PutIfMissing,
    Patch,
    Append,
    Count,
}

fn class(kind: Kind) -> Class {
    use Kind::*;
    match kind {
        Get | StrLen | GetRange | GetBit | BitCount => Class::Read,
        Set | GetSet | Delete | GetDel => Class::Put,
        SetNx => Class::PutIfMissing,
        SetRange | SetBit => Class::Patch,
        Append => Class::Append,
        Incr | IncrFloat => Class::Count,
    }
}

/// What [`pair`] says of two kinds, the later one first.
fn text(a: Kind, b: Kind) -> Option<&'static str> {
    let deletes = |kind| matches!(kind, Kind::Delete | Kind::GetDel);
    let text = match (class(a), class(b)) {
        (Class::Put, Class::Read) => "second reply unwanted, or the same of x as of S",
        (Class::Put, Class::Put) if deletes(a) != deletes(b) => "never",
        (Class::Put, Class::Put) => "both leave the same, replies that show the order unwanted",
        (Class::PutIfMissing, Class::Read) => {
            "S present, or second reply unwanted or the same of x"
        }
        (Class::PutIfMissing, Class::Put) if deletes(b) => "never",
        (Class::PutIfMissing, Class::Put) => "S present, or replies unwanted",
        (Class::PutIfMissing, _) => "S present, or x = y and replies unwanted",
        (Class::Patch, Class::Read) => "second reply unwanted, or of nothing that x changes",
        (Class::Patch | Class::Append | Class::Count, Class::Put) if deletes(b) => "never",
        (Class::Patch, Class::Put) => "y has x in it, replies that show the order unwanted",
        (Class::Patch | Class::Append | Class::Count, Class::PutIfMissing) => "S present",
        (Class::Patch, _) => {
            "x and y alike where they overlap, replies unwanted or not changed by the other"
        }
        (Class::Append, Class::Read) => "second reply unwanted, or of what is within S",
        (Class::Append, Class::Put) => "x empty",
        (Class::Append, Class::Patch) => "y within S, second reply unwanted or a bit",
        (Class::Append, _) => "xy = yx, replies unwanted",
        (Class::Count, Class::Read) => "second reply unwanted",
        (Class::Count, Class::Put) => "y no number, first reply unwanted or S none as well",
        (Class::Count, Class::Patch | Class::Append) => "S no number for a byte that y leaves",
        (Class::Count, _) if a == Kind::Incr && b == Kind::Incr => "all sums fit, replies unwanted",
        (Class::Count, _) => "S no number",
        // No rule is needed for reads, and later kinds come first.
        (Class::Read, _) | (Class::Put, _) => return None,
    };
    Some(text)
}

pub(super) fn rules() -> &'static [Rule<Text>] {
    static RULES: OnceLock<Vec<Rule<Text>>> = OnceLock::new();
    RULES.get_or_init(|| {
        let mut rules = Vec::new();
        for (at, (a, _)) in <Kind as algebra::Kind>::ALL.iter().enumerate() {
            for (b, _) in &<Kind as algebra::Kind>::ALL[..=at] {
                rules.extend(text(*a, *b).map(|text| Rule::<Text> {
                    pair: (*a, *b),
                    when: When::If::<Text> { text, holds: pair },
                }));
            }
        }
        rules
    })
}
