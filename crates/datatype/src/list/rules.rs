//! Which operations on lists are independent.
//!
//! What an operation depends on is near one of the ends of the list or somewhere in between, and pops and pushes move
//! the end that they are at. So conditions are about places: that what one operation concerns stays, whatever the
//! others do at the ends, apart from it. [`Around`](super::around) counts what a group does at the ends; a rule for a pair counts the
//! pair alone.

use super::around::{Around, Has, LOOK, Span, element, is_read, pivot, span};
use super::{Kind, List, Op, View};
use crate::algebra::{Operation, Rule, When};

type Holds = for<'a, 's> fn(&Has<'a>, &Has<'a>, &Around<'a, 's>) -> bool;

/// Whether the reply contains the length of the list, and is wanted.
fn wants_length(held: &Has<'_>) -> bool {
    held.wanted
        && matches!(
            held.op.kind(),
            Kind::PushFront | Kind::PushBack | Kind::Insert | Kind::Length
        )
}

macro_rules! table {
    ($($a:ident, $b:ident: $text:literal, $holds:expr;)+) => {
        /// For documentation; [`admits`] looks into [`TABLE`].
        pub(super) static RULES: &[Rule<List>] = &[$(Rule {
            pair: (Kind::$a, Kind::$b),
            when: When::If {
                text: $text,
                holds: |a, b, view| {
                    let around = Around::of(&[], &[a, b], view);
                    let holds: Holds = $holds;
                    around.is_idle(a, b) || holds(a, b, &around)
                },
            },
        }),+];

        static TABLE: &[(Kind, Kind, Holds)] = &[$((Kind::$a, Kind::$b, $holds)),+];
    };
}

table! {
    PushFront, PushFront: "x = y, the length is not wanted", same_push;
    PushBack, PushBack: "x = y, the length is not wanted", same_push;
    PushFront, PushBack: "the length is not wanted", unmeasured;
    PushFront, PopBack: "the length is not wanted, S has enough to pop", apart;
    PushBack, PopFront: "the length is not wanted, S has enough to pop", apart;
    PopFront, PushFront: "S has enough to pop, all equal to y, the length is not wanted", pop_and_push;
    PopBack, PushBack: "S has enough to pop, all equal to y, the length is not wanted", pop_and_push;
    PopFront, PopFront: "the elements are not wanted, or they are all equal", same_pop;
    PopBack, PopBack: "the elements are not wanted, or they are all equal", same_pop;
    PopFront, PopBack: "the elements are not wanted, or S has enough for both", pops;
    Set, PushFront: "the index counts from the end and S has it", in_back;
    Set, PopFront: "the index counts from the end and S has it after the pop", in_back;
    Set, PushBack: "the index counts from the front and S has it", in_front;
    Set, PopBack: "the index counts from the front and S has it after the pop", in_front;
    Set, Set: "other places in S, or x = y", sets;
    Set, Index: "other places in S, or x is there already", set_and_read;
    Set, Range: "other places in S, or x is there already", set_and_read;
    Set, Length: "always", |_, _, _| true;
    Set, Position: "x ≠ y, and y is not what is replaced", set_and_search;
    Set, Remove: "S does not have y, x ≠ y", |set, remove, s| {
        element(&set.op) != element(&remove.op) && s.lacks(element(&remove.op))
    };
    Set, Insert: "x is not the pivot, and S lacks it or has it further from where the index counts", |set, insert, s| {
        element(&set.op) != pivot(&insert.op).0
            && (finds_nothing(insert, s) || is_nearer(set, insert, s))
    };
    Set, Trim: "the trim keeps all, or nothing and the reply is not wanted, or the place, counted from where the trim begins", |set, trim, s| {
        trims_all(set, trim, s) || trim_and_place(set, trim, s)
    };
    Insert, PushFront: "y is not the pivot, and the length is not wanted or S lacks the pivot", insert_and_push;
    Insert, PushBack: "y is not the pivot, and the length is not wanted or S lacks the pivot", insert_and_push;
    Insert, PopFront: "the length is not wanted and the pivot stays after the pop, or S lacks the pivot", insert_and_pop;
    Insert, PopBack: "the length is not wanted and the pivot stays after the pop, or S lacks the pivot", insert_and_pop;
    Insert, Insert: "neither puts in the pivot of the other, nor both others at one place, and the length is not wanted; or S lacks the pivot of one", inserts;
    Insert, Remove: "y is neither x nor the pivot, the length is not wanted", |insert, remove, _| {
        let removed = element(&remove.op);
        !insert.wanted && removed != element(&insert.op) && removed != pivot(&insert.op).0
    };
    Insert, Trim: "the trim keeps all, or nothing or S lacks the pivot, and the reply is not wanted", |insert, trim, s| {
        trims_all(insert, trim, s) || (!insert.wanted && finds_nothing(insert, s))
    };
    Insert, Index: "S lacks the pivot, or has it further from where the index counts", insert_and_place;
    Insert, Range: "S lacks the pivot, or has it further from where the indices count", insert_and_place;
    Insert, Length: "S lacks the pivot", |insert, _, s| s.lacks(pivot(&insert.op).0);
    Insert, Position: "S lacks the pivot", |insert, _, s| s.lacks(pivot(&insert.op).0);
    Remove, PushFront: "x ≠ y, and the length is not wanted or S lacks x", remove_and_push;
    Remove, PushBack: "x ≠ y, and the length is not wanted or S lacks x", remove_and_push;
    Remove, PopFront: "S has enough to pop, x not among it", remove_and_pop;
    Remove, PopBack: "S has enough to pop, x not among it", remove_and_pop;
    Remove, Remove: "x ≠ y, or the count is not wanted, or S lacks x", |a, b, s| {
        let (x, y) = (element(&a.op), element(&b.op));
        x != y || (!a.wanted && !b.wanted) || s.lacks(x)
    };
    Remove, Trim: "S lacks x, or the trim keeps all, or nothing and the reply is not wanted", |remove, trim, s| {
        removes_nothing(remove, trim, s) || trims_all(remove, trim, s)
    };
    Remove, Index: "S lacks x", removes_nothing;
    Remove, Range: "S lacks x", removes_nothing;
    Remove, Length: "S lacks x", removes_nothing;
    Remove, Position: "S lacks x", removes_nothing;
    Trim, PushFront: "the trim keeps all", trims_nothing;
    Trim, PushBack: "the trim keeps all", trims_nothing;
    Trim, PopFront: "the trim keeps all, or nothing and the reply is not wanted", trims_all;
    Trim, PopBack: "the trim keeps all, or nothing and the reply is not wanted", trims_all;
    Trim, Trim: "one keeps all or nothing, or both keep the beginning, or both the end", trims;
    Trim, Index: "the trim keeps all, or the place, counted from where the trim begins", trim_and_place;
    Trim, Range: "the trim keeps all, or the places, counted from where the trim begins", trim_and_place;
    Trim, Length: "the trim keeps all", trims_nothing;
    Trim, Position: "the trim keeps all", trims_nothing;
    Index, PushFront: "the index counts from the end and S has it", in_back;
    Index, PopFront: "the index counts from the end and S has it after the pop", in_back;
    Index, PushBack: "the index counts from the front and S has it", in_front;
    Index, PopBack: "the index counts from the front and S has it after the pop", in_front;
    Range, PushFront: "the indices count from the end and S has them", in_back;
    Range, PopFront: "the indices count from the end and S has them after the pop", in_back;
    Range, PushBack: "the indices count from the front and S has them", in_front;
    Range, PopBack: "the indices count from the front and S has them after the pop", in_front;
    Length, PushFront: "the length is not wanted", |_, _, _| false;
    Length, PushBack: "the length is not wanted", |_, _, _| false;
    Length, PopFront: "the length is not wanted", |_, _, _| false;
    Length, PopBack: "the length is not wanted", |_, _, _| false;
    Position, PushFront: "x ≠ y, S lacks x", |search, push, s| {
        element(&search.op) != element(&push.op) && removes_nothing(search, push, s)
    };
    Position, PushBack: "x ≠ y, counted from the front or all looked at", search_and_push;
    Position, PopFront: "S lacks x", removes_nothing;
    Position, PopBack: "S lacks x", removes_nothing;
}

/// See `Algebra::admits`.
pub(super) fn admits<'a>(held: &[Has<'a>], new: &Has<'a>, view: View<'_>) -> bool {
    let around = Around::of(held, &[new], view);
    // What is new may move the ends, so that the others have to be looked at again.
    held.iter().enumerate().all(|(at, one)| {
        let moves = !is_read(&new.op);
        independent(one, new, &around)
            && (!moves
                || held[..at]
                    .iter()
                    .all(|other| independent(other, one, &around)))
    })
}

fn independent<'a>(a: &Has<'a>, b: &Has<'a>, around: &Around<'_, '_>) -> bool {
    if around.is_idle(a, b) {
        return true;
    }
    let (x, y) = (a.op.kind(), b.op.kind());
    for &(first, second, holds) in TABLE {
        if (first, second) == (x, y) {
            return holds(a, b, around);
        }
        if (first, second) == (y, x) {
            return holds(b, a, around);
        }
    }
    is_read(&a.op) && is_read(&b.op)
}

fn unmeasured(a: &Has<'_>, b: &Has<'_>, _: &Around<'_, '_>) -> bool {
    !wants_length(a) && !wants_length(b)
}

fn same_push(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    element(&a.op) == element(&b.op) && unmeasured(a, b, s)
}

fn apart(push: &Has<'_>, _: &Has<'_>, s: &Around<'_, '_>) -> bool {
    !push.wanted && s.is_enough()
}

fn same_pop(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    if !a.wanted && !b.wanted {
        return true;
    }
    let (from, count) = match a.op {
        Op::PopFront { .. } => (0, s.front),
        _ => (s.len.saturating_sub(s.back), s.back),
    };
    if !s.is_enough() || count > LOOK as u64 {
        return false;
    }
    let mut taken = s.view.iter_from(from as usize).take(count as usize);
    let first = taken.next();
    taken.all(|other| Some(other) == first)
}

fn pop_and_push(pop: &Has<'_>, push: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let at_front = matches!(pop.op, Op::PopFront { .. });
    !push.wanted && s.pops_only(at_front, element(&push.op))
}

fn remove_and_pop(remove: &Has<'_>, _: &Has<'_>, s: &Around<'_, '_>) -> bool {
    s.pops_lack(element(&remove.op))
}

fn pops(front: &Has<'_>, back: &Has<'_>, s: &Around<'_, '_>) -> bool {
    (!front.wanted && !back.wanted) || s.is_enough()
}

fn in_front(at: &Has<'_>, _: &Has<'_>, s: &Around<'_, '_>) -> bool {
    span(&at.op).is_some_and(|span| s.stays_in_front(span))
}

fn in_back(at: &Has<'_>, _: &Has<'_>, s: &Around<'_, '_>) -> bool {
    span(&at.op).is_some_and(|span| s.stays_in_back(span))
}

fn sets(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    element(&a.op) == element(&b.op) || !meet(&a.op, &b.op, s)
}

fn set_and_read(set: &Has<'_>, read: &Has<'_>, s: &Around<'_, '_>) -> bool {
    !meet(&set.op, &read.op, s) || replaced(&set.op, s).is_none_or(|old| old == element(&set.op))
}

fn set_and_search(set: &Has<'_>, search: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let sought = element(&search.op);
    element(&set.op) != sought && replaced(&set.op, s) != Some(sought)
}

/// What is where an element is set.
fn replaced<'s>(set: &Op<'_>, s: &Around<'_, 's>) -> Option<&'s [u8]> {
    span(set).and_then(|(index, _)| s.view.at(index))
}

/// Whether the operations concern a place that both have. Where one counts from the front and one from the end, nothing
/// that moves the ends is independent of both, so that places are where they are now.
fn meet(a: &Op<'_>, b: &Op<'_>, s: &Around<'_, '_>) -> bool {
    let places = |op: &Op<'_>| {
        let (start, stop) = span(op).unwrap_or((1, 0));
        s.view.places(start, stop)
    };
    let exact = |op: &Op<'_>| match *op {
        // An index before the beginning is none; a range would begin at the beginning.
        Op::Set { index, .. } | Op::Index { index } => s.view.place(index).is_none(),
        _ => false,
    };
    if exact(a) || exact(b) {
        return false;
    }
    let (a, b) = (places(a), places(b));
    a.start < b.end && b.start < a.end
}

/// Whether an insertion does nothing because its pivot is missing, unless another operation adds the pivot. Its reply
/// differs if the list is missing.
fn finds_nothing(insert: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let is_left = s.front.saturating_add(s.back) < s.len;
    s.lacks(pivot(&insert.op).0) && (!insert.wanted || is_left)
}

fn insert_and_push(insert: &Has<'_>, push: &Has<'_>, s: &Around<'_, '_>) -> bool {
    element(&push.op) != pivot(&insert.op).0
        && (unmeasured(insert, push, s) || finds_nothing(insert, s))
}

fn insert_and_pop(insert: &Has<'_>, _: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let place = s.soon(pivot(&insert.op).0);
    let stays = |place| place >= s.front && place < s.len.saturating_sub(s.back);
    (!insert.wanted && place.is_some_and(stays)) || finds_nothing(insert, s)
}

fn inserts(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let ((p, side_p), (q, side_q)) = (pivot(&a.op), pivot(&b.op));
    let (x, y) = (element(&a.op), element(&b.op));
    let apart = match p == q {
        true if side_p == side_q => x == y,
        _ => x != q && y != p,
    };
    (apart && unmeasured(a, b, s))
        || (y != p && finds_nothing(a, s))
        || (x != q && finds_nothing(b, s))
}

fn insert_and_place(insert: &Has<'_>, read: &Has<'_>, s: &Around<'_, '_>) -> bool {
    is_nearer(read, insert, s) || s.lacks(pivot(&insert.op).0)
}

/// Whether places are before the pivot, counted from the same end.
fn is_nearer(at: &Has<'_>, insert: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let Some((start, stop)) = span(&at.op) else {
        return false;
    };
    s.soon(pivot(&insert.op).0).is_some_and(|place| {
        let after = (s.len - 1 - place) as i64;
        (start >= 0 && stop >= 0 && stop < place as i64)
            || (start < 0 && stop < 0 && -1 - start < after)
    })
}

fn remove_and_push(remove: &Has<'_>, push: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let removed = element(&remove.op);
    removed != element(&push.op) && (!push.wanted || s.lacks(removed))
}

fn removes_nothing(remove: &Has<'_>, _: &Has<'_>, s: &Around<'_, '_>) -> bool {
    s.lacks(element(&remove.op))
}

fn bounds(op: &Op<'_>) -> Option<Span> {
    match *op {
        Op::Trim { start, stop } => Some((start, stop)),
        _ => None,
    }
}

/// Whichever of the two is a trim keeps everything.
fn trims_nothing(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let bounds = bounds(&a.op).or_else(|| bounds(&b.op));
    bounds.is_some_and(|(start, stop)| s.keeps_all(start, stop))
}

/// Likewise, or each trim among the two removes everything, and the reply of the other one is not wanted.
fn trims_all(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let (bounds, other) = match bounds(&a.op) {
        Some(bounds) => (Some(bounds), b),
        None => (bounds(&b.op), a),
    };
    let takes_all = bounds.is_some_and(|(start, stop)| s.is_nothing(start, stop));
    (takes_all && !other.wanted) || trims_nothing(a, b, s)
}

fn trims(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let (Some(x), Some(y)) = (bounds(&a.op), bounds(&b.op)) else {
        return false;
    };
    let heads = x.0 == 0 && y.0 == 0 && x.1 >= 0 && y.1 >= 0;
    let tails = x.1 == -1 && y.1 == -1 && x.0 < 0 && y.0 < 0;
    let alone = |(start, stop)| s.keeps_all(start, stop) || s.is_nothing(start, stop);
    heads || tails || alone(x) || alone(y)
}

fn trim_and_place(a: &Has<'_>, b: &Has<'_>, s: &Around<'_, '_>) -> bool {
    let (trim, at) = match bounds(&a.op) {
        Some(trim) => (trim, &b.op),
        None => (bounds(&b.op).unwrap_or((0, -1)), &a.op),
    };
    let Some((start, stop)) = span(at) else {
        return false;
    };
    // What is set must be there; a read may find nothing both before and after.
    let there = !matches!(at, Op::Set { .. }) || s.view.place(start).is_some();
    let head = trim.0 == 0 && trim.1 >= 0 && start >= 0 && stop >= 0 && stop <= trim.1;
    let tail = trim.1 == -1 && trim.0 < 0 && start < 0 && stop < 0 && start >= trim.0;
    s.keeps_all(trim.0, trim.1) || (there && (head || tail))
}

fn search_and_push(search: &Has<'_>, push: &Has<'_>, _: &Around<'_, '_>) -> bool {
    let Op::Position(asked) = search.op else {
        return false;
    };
    asked.element != element(&push.op) && (asked.rank > 0 || asked.most == 0)
}
