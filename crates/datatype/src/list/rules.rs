//! Which operations on lists are independent.
//!
//! What an operation depends on is near one of the ends of the list or somewhere in between, and pops and pushes move
//! the end that they are at. So conditions are about places: that what one operation concerns stays, whatever the
//! others do at the ends, apart from it. [`Around`] counts what a group does at the ends; a rule for a pair counts the
//! pair alone.

use super::{Kind, List, Op, View};
use crate::algebra::{Algebra, Held, Rule, When};

type Has<'a> = Held<Op<'a>>;
type Holds = for<'a, 's> fn(&Has<'a>, &Has<'a>, &Around<'s>) -> bool;

/// So many elements are looked at to see whether some operation finds what it looks for.
const LOOK: usize = 128;

/// A list and what a group does at its ends.
struct Around<'s> {
    view: View<'s>,
    len: u64,
    /// How many elements are popped at the front.
    front: u64,
    back: u64,
    pushes: u64,
    inserts: u64,
}

impl<'s> Around<'s> {
    fn of<'a: 'h, 'h>(group: impl Iterator<Item = &'h Has<'a>>, view: View<'s>) -> Self {
        let mut around = Around {
            view,
            len: view.len() as u64,
            front: 0,
            back: 0,
            pushes: 0,
            inserts: 0,
        };
        for held in group {
            match held.op {
                Op::PopFront { count } => around.front = around.front.saturating_add(count),
                Op::PopBack { count } => around.back = around.back.saturating_add(count),
                Op::PushFront { .. } | Op::PushBack { .. } => around.pushes += 1,
                Op::InsertBefore { .. } | Op::InsertAfter { .. } => around.inserts += 1,
                _ => {}
            }
        }
        around
    }

    /// Whether one of the two does nothing that anybody could see: what no rule needs to say.
    fn is_idle(&self, a: &Has<'_>, b: &Has<'_>) -> bool {
        let unseen = |held: &Has<'_>| !held.wanted && is_read(&held.op);
        unseen(a) || unseen(b) || (self.len == 0 && self.pushes == 0)
    }

    /// Whether there is enough for all pops.
    fn is_enough(&self) -> bool {
        self.front.saturating_add(self.back) <= self.len
    }

    /// Whether the element is known not to be there.
    fn lacks(&self, element: &[u8]) -> bool {
        self.len <= LOOK as u64 && self.view.iter().all(|other| other != element)
    }

    /// Where the element is first, if that is soon.
    fn soon(&self, element: &[u8]) -> Option<u64> {
        let place = self
            .view
            .iter()
            .take(LOOK)
            .position(|other| other == element);
        place.map(|place| place as u64)
    }

    /// Whether a trim keeps everything, whatever is put in.
    fn keeps_all(&self, start: i64, stop: i64) -> bool {
        let most = self.len + self.pushes + self.inserts;
        let from_first = start == 0 || (start < 0 && start.unsigned_abs() >= most);
        from_first && (stop == -1 || (stop >= 0 && stop.unsigned_abs() >= most))
    }

    /// Whether these places, counted from the front, are there even after all pops at the back.
    fn stays_in_front(&self, span: Span) -> bool {
        match span {
            (start, stop) if start < 0 || stop < 0 => false,
            (start, stop) => start > stop || (stop as u64) < self.len.saturating_sub(self.back),
        }
    }

    /// The same, counted from the end.
    fn stays_in_back(&self, span: Span) -> bool {
        match span {
            (start, stop) if start >= 0 || stop >= 0 => false,
            (start, stop) => {
                start > stop || start.unsigned_abs() <= self.len.saturating_sub(self.front)
            }
        }
    }
}

/// The indices that an operation reads or writes.
type Span = (i64, i64);

fn span(op: &Op<'_>) -> Option<Span> {
    match *op {
        Op::Set { index, .. } | Op::Index { index } => Some((index, index)),
        Op::Range { start, stop } => Some((start, stop)),
        _ => None,
    }
}

/// What an operation puts in, looks for or removes.
fn element<'a>(op: &Op<'a>) -> &'a [u8] {
    match *op {
        Op::PushFront { element }
        | Op::PushBack { element }
        | Op::Set { element, .. }
        | Op::InsertBefore { element, .. }
        | Op::InsertAfter { element, .. }
        | Op::Remove { element, .. } => element,
        Op::Position(search) => search.element,
        _ => b"",
    }
}

/// Pivot, and whether the element goes before it.
fn pivot<'a>(op: &Op<'a>) -> (&'a [u8], bool) {
    match *op {
        Op::InsertBefore { pivot, .. } => (pivot, true),
        Op::InsertAfter { pivot, .. } => (pivot, false),
        _ => (b"", true),
    }
}

/// Whether the reply tells how long the list is, and is wanted.
fn wants_length(held: &Has<'_>) -> bool {
    held.wanted
        && matches!(
            List::kind(&held.op),
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
                    let around = Around::of([a, b].into_iter(), view);
                    let holds: Holds = $holds;
                    around.is_idle(a, b) || holds(a, b, &around)
                },
            },
        }),+];

        static TABLE: &[(Kind, Kind, Holds)] = &[$((Kind::$a, Kind::$b, $holds)),+];
    };
}

table! {
    PushFront, PushFront: "x = y, nobody wants the length", same_push;
    PushBack, PushBack: "x = y, nobody wants the length", same_push;
    PushFront, PushBack: "nobody wants the length", unmeasured;
    PushFront, PopBack: "the length is not wanted, S has enough to pop", apart;
    PushBack, PopFront: "the length is not wanted, S has enough to pop", apart;
    PopFront, PopFront: "nobody wants the elements, or they are all equal", same_pop;
    PopBack, PopBack: "nobody wants the elements, or they are all equal", same_pop;
    PopFront, PopBack: "nobody wants the elements, or S has enough for both", pops;
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
    Set, Insert: "S lacks the pivot, and x is not the pivot", |set, insert, s| {
        element(&set.op) != pivot(&insert.op).0 && finds_nothing(insert, s)
    };
    Set, Trim: "the trim keeps all, or the place, counted from where the trim begins", trim_and_place;
    Insert, PushFront: "y is not the pivot, and nobody wants the length or S lacks the pivot", insert_and_push;
    Insert, PushBack: "y is not the pivot, and nobody wants the length or S lacks the pivot", insert_and_push;
    Insert, PopFront: "the length is not wanted and the pivot stays after the pop, or S lacks the pivot", insert_and_pop;
    Insert, PopBack: "the length is not wanted and the pivot stays after the pop, or S lacks the pivot", insert_and_pop;
    Insert, Insert: "neither puts in the pivot of the other, nor both others at one place, and nobody wants the length; or S lacks the pivot of one", inserts;
    Insert, Remove: "y is neither x nor the pivot, the length is not wanted", |insert, remove, _| {
        let removed = element(&remove.op);
        !insert.wanted && removed != element(&insert.op) && removed != pivot(&insert.op).0
    };
    Insert, Trim: "the trim keeps all, or S lacks the pivot and the reply is not wanted", |insert, trim, s| {
        trims_nothing(insert, trim, s) || (!insert.wanted && finds_nothing(insert, s))
    };
    Insert, Index: "S lacks the pivot, or has it further from where the index counts", insert_and_place;
    Insert, Range: "S lacks the pivot, or has it further from where the indices count", insert_and_place;
    Insert, Length: "S lacks the pivot", |insert, _, s| s.lacks(pivot(&insert.op).0);
    Insert, Position: "S lacks the pivot", |insert, _, s| s.lacks(pivot(&insert.op).0);
    Remove, PushFront: "x ≠ y, and the length is not wanted or S lacks x", remove_and_push;
    Remove, PushBack: "x ≠ y, and the length is not wanted or S lacks x", remove_and_push;
    Remove, PopFront: "S lacks x", removes_nothing;
    Remove, PopBack: "S lacks x", removes_nothing;
    Remove, Remove: "x ≠ y, or nobody wants to know how many, or S lacks x", |a, b, s| {
        let (x, y) = (element(&a.op), element(&b.op));
        x != y || (!a.wanted && !b.wanted) || s.lacks(x)
    };
    Remove, Trim: "S lacks x, or the trim keeps all", |remove, trim, s| {
        removes_nothing(remove, trim, s) || trims_nothing(remove, trim, s)
    };
    Remove, Index: "S lacks x", removes_nothing;
    Remove, Range: "S lacks x", removes_nothing;
    Remove, Length: "S lacks x", removes_nothing;
    Remove, Position: "S lacks x", removes_nothing;
    Trim, PushFront: "the trim keeps all", trims_nothing;
    Trim, PushBack: "the trim keeps all", trims_nothing;
    Trim, PopFront: "the trim keeps all", trims_nothing;
    Trim, PopBack: "the trim keeps all", trims_nothing;
    Trim, Trim: "one keeps all, or both keep the beginning, or both the end", trims;
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
    let around = Around::of(held.iter().chain([new]), view);
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

fn independent<'a>(a: &Has<'a>, b: &Has<'a>, around: &Around<'_>) -> bool {
    if around.is_idle(a, b) {
        return true;
    }
    let (x, y) = (List::kind(&a.op), List::kind(&b.op));
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

fn unmeasured(a: &Has<'_>, b: &Has<'_>, _: &Around<'_>) -> bool {
    !wants_length(a) && !wants_length(b)
}

fn same_push(a: &Has<'_>, b: &Has<'_>, s: &Around<'_>) -> bool {
    element(&a.op) == element(&b.op) && unmeasured(a, b, s)
}

fn apart(push: &Has<'_>, _: &Has<'_>, s: &Around<'_>) -> bool {
    !push.wanted && s.is_enough()
}

fn same_pop(a: &Has<'_>, b: &Has<'_>, s: &Around<'_>) -> bool {
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

fn pops(front: &Has<'_>, back: &Has<'_>, s: &Around<'_>) -> bool {
    (!front.wanted && !back.wanted) || s.is_enough()
}

fn in_front(at: &Has<'_>, _: &Has<'_>, s: &Around<'_>) -> bool {
    span(&at.op).is_some_and(|span| s.stays_in_front(span))
}

fn in_back(at: &Has<'_>, _: &Has<'_>, s: &Around<'_>) -> bool {
    span(&at.op).is_some_and(|span| s.stays_in_back(span))
}

fn sets(a: &Has<'_>, b: &Has<'_>, s: &Around<'_>) -> bool {
    element(&a.op) == element(&b.op) || !meet(&a.op, &b.op, s)
}

fn set_and_read(set: &Has<'_>, read: &Has<'_>, s: &Around<'_>) -> bool {
    !meet(&set.op, &read.op, s) || replaced(&set.op, s).is_none_or(|old| old == element(&set.op))
}

fn set_and_search(set: &Has<'_>, search: &Has<'_>, s: &Around<'_>) -> bool {
    let sought = element(&search.op);
    element(&set.op) != sought && replaced(&set.op, s) != Some(sought)
}

/// What is where an element is set.
fn replaced<'s>(set: &Op<'_>, s: &Around<'s>) -> Option<&'s [u8]> {
    span(set).and_then(|(index, _)| s.view.at(index))
}

/// Whether the operations concern a place that both have. Where one counts from the front and one from the end, nothing
/// that moves the ends is independent of both, so that places are where they are now.
fn meet(a: &Op<'_>, b: &Op<'_>, s: &Around<'_>) -> bool {
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

/// Whether an insertion does nothing for want of its pivot, if nobody puts that in. What it answers is something else
/// where there is no list at all.
fn finds_nothing(insert: &Has<'_>, s: &Around<'_>) -> bool {
    let is_left = s.front.saturating_add(s.back) < s.len;
    s.lacks(pivot(&insert.op).0) && (!insert.wanted || is_left)
}

fn insert_and_push(insert: &Has<'_>, push: &Has<'_>, s: &Around<'_>) -> bool {
    element(&push.op) != pivot(&insert.op).0
        && (unmeasured(insert, push, s) || finds_nothing(insert, s))
}

fn insert_and_pop(insert: &Has<'_>, _: &Has<'_>, s: &Around<'_>) -> bool {
    let place = s.soon(pivot(&insert.op).0);
    let stays = |place| place >= s.front && place < s.len.saturating_sub(s.back);
    (!insert.wanted && place.is_some_and(stays)) || finds_nothing(insert, s)
}

fn inserts(a: &Has<'_>, b: &Has<'_>, s: &Around<'_>) -> bool {
    let ((p, before_p), (q, before_q)) = (pivot(&a.op), pivot(&b.op));
    let (x, y) = (element(&a.op), element(&b.op));
    let apart = match p == q {
        true if before_p == before_q => x == y,
        _ => x != q && y != p,
    };
    (apart && unmeasured(a, b, s))
        || (y != p && finds_nothing(a, s))
        || (x != q && finds_nothing(b, s))
}

fn insert_and_place(insert: &Has<'_>, read: &Has<'_>, s: &Around<'_>) -> bool {
    let pivot = pivot(&insert.op).0;
    let Some((start, stop)) = span(&read.op) else {
        return false;
    };
    let further = s.soon(pivot).is_some_and(|place| {
        let after = (s.len - 1 - place) as i64;
        (start >= 0 && stop >= 0 && stop < place as i64)
            || (start < 0 && stop < 0 && -1 - start < after)
    });
    further || s.lacks(pivot)
}

fn remove_and_push(remove: &Has<'_>, push: &Has<'_>, s: &Around<'_>) -> bool {
    let removed = element(&remove.op);
    removed != element(&push.op) && (!push.wanted || s.lacks(removed))
}

fn removes_nothing(remove: &Has<'_>, _: &Has<'_>, s: &Around<'_>) -> bool {
    s.lacks(element(&remove.op))
}

fn bounds(op: &Op<'_>) -> Option<Span> {
    match *op {
        Op::Trim { start, stop } => Some((start, stop)),
        _ => None,
    }
}

/// Whichever of the two is a trim keeps everything.
fn trims_nothing(a: &Has<'_>, b: &Has<'_>, s: &Around<'_>) -> bool {
    let bounds = bounds(&a.op).or_else(|| bounds(&b.op));
    bounds.is_some_and(|(start, stop)| s.keeps_all(start, stop))
}

fn trims(a: &Has<'_>, b: &Has<'_>, s: &Around<'_>) -> bool {
    let (Some(x), Some(y)) = (bounds(&a.op), bounds(&b.op)) else {
        return false;
    };
    let heads = x.0 == 0 && y.0 == 0 && x.1 >= 0 && y.1 >= 0;
    let tails = x.1 == -1 && y.1 == -1 && x.0 < 0 && y.0 < 0;
    heads || tails || s.keeps_all(x.0, x.1) || s.keeps_all(y.0, y.1)
}

fn trim_and_place(a: &Has<'_>, b: &Has<'_>, s: &Around<'_>) -> bool {
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

fn search_and_push(search: &Has<'_>, push: &Has<'_>, _: &Around<'_>) -> bool {
    let Op::Position(asked) = search.op else {
        return false;
    };
    asked.element != element(&push.op) && (asked.rank > 0 || asked.most == 0)
}

fn is_read(op: &Op<'_>) -> bool {
    List::is_read(List::kind(op))
}
