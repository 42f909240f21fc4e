//! A list and what a group of operations does to it: what the rules look at.

use super::{Op, Side, View};
use crate::algebra::{Held, Operation};

pub(super) type Has<'a> = Held<Op<'a>>;

/// How many elements are searched to see whether an operation finds its element.
pub(super) const LOOK: usize = 128;

/// A list and what a group does at its ends.
pub(super) struct Around<'a, 's> {
    pub(super) view: View<'s>,
    pub(super) len: u64,
    /// How many elements are popped at the front.
    pub(super) front: u64,
    pub(super) back: u64,
    pub(super) pushes: u64,
    inserts: u64,
    /// What is put in, anywhere.
    puts: Vec<&'a [u8]>,
    removes: Vec<&'a [u8]>,
    trims: Vec<Span>,
}

impl<'a, 's> Around<'a, 's> {
    pub(super) fn of(held: &[Has<'a>], new: &[&Has<'a>], view: View<'s>) -> Self {
        let mut around = Around {
            view,
            len: view.len() as u64,
            front: 0,
            back: 0,
            pushes: 0,
            inserts: 0,
            puts: Vec::new(),
            removes: Vec::new(),
            trims: Vec::new(),
        };
        for held in held.iter().chain(new.iter().copied()) {
            around.count(&held.op);
        }
        around
    }

    fn count(&mut self, op: &Op<'a>) {
        match *op {
            Op::PopFront { count } => self.front = self.front.saturating_add(count),
            Op::PopBack { count } => self.back = self.back.saturating_add(count),
            Op::PushFront { .. } | Op::PushBack { .. } => self.pushes += 1,
            Op::Insert { .. } => self.inserts += 1,
            Op::Remove { element, .. } => self.removes.push(element),
            Op::Trim { start, stop } => self.trims.push((start, stop)),
            _ => {}
        }
        if let Op::PushFront { element }
        | Op::PushBack { element }
        | Op::Set { element, .. }
        | Op::Insert { element, .. } = *op
        {
            self.puts.push(element);
        }
    }

    /// Whether one of the two has no visible effect, so that no rule is needed.
    pub(super) fn is_idle(&self, a: &Has<'_>, b: &Has<'_>) -> bool {
        self.is_inert(a) || self.is_inert(b) || (self.len == 0 && self.pushes == 0)
    }

    /// Whether the operation changes nothing and answers the same, whatever the group has done before it.
    fn is_inert(&self, held: &Has<'_>) -> bool {
        // What answers whether there is a list at all must know that there is one.
        let answers_same = !held.wanted || self.least() > 0;
        match held.op {
            _ if !held.wanted && is_read(&held.op) => true,
            Op::Index { index } => self.is_beyond(index),
            Op::Range { start, stop } => self.is_nothing(start, stop),
            Op::Set { index, .. } => self.is_beyond(index) && answers_same,
            Op::Insert { pivot, .. } => self.most_of(pivot) == Some(0) && answers_same,
            Op::Remove { element, .. } => self.most_of(element) == Some(0),
            Op::Trim { start, stop } => self.keeps_all(start, stop),
            Op::Position(search) => {
                let most = self.most_of(search.element);
                most.is_some_and(|most| most < search.rank.unsigned_abs())
            }
            Op::PopFront { count } | Op::PopBack { count } => count == 0,
            Op::PushFront { .. } | Op::PushBack { .. } | Op::Length => false,
        }
    }

    /// How long the list is at most.
    fn most(&self) -> u64 {
        self.len + self.pushes + self.inserts
    }

    /// How long the list is at least.
    fn least(&self) -> u64 {
        let cut = |&(start, stop): &Span| !self.keeps_all(start, stop);
        if self.trims.iter().any(cut) {
            return 0;
        }
        let removed = |element: &&[u8]| self.most_of(element).unwrap_or(self.len);
        let removed = self
            .removes
            .iter()
            .map(removed)
            .fold(0, u64::saturating_add);
        let popped = self.front.saturating_add(self.back);
        self.len.saturating_sub(popped.saturating_add(removed))
    }

    /// An upper bound on the occurrences of the element, if it can be computed quickly.
    fn most_of(&self, element: &[u8]) -> Option<u64> {
        if self.len > LOOK as u64 {
            return None;
        }
        let there = self.view.iter().filter(|&other| other == element).count();
        let put = self.puts.iter().filter(|&&other| other == element).count();
        Some((there + put) as u64)
    }

    /// Whether there is never an element at this index.
    fn is_beyond(&self, index: i64) -> bool {
        match index < 0 {
            true => index.unsigned_abs() > self.most(),
            false => index.unsigned_abs() >= self.most(),
        }
    }

    /// Whether there are never elements from one index to the other.
    pub(super) fn is_nothing(&self, start: i64, stop: i64) -> bool {
        (start >= 0 && self.is_beyond(start))
            || (stop < 0 && self.is_beyond(stop))
            || ((start < 0) == (stop < 0) && start > stop)
    }

    /// Whether what pops take does not have the element.
    pub(super) fn pops_lack(&self, element: &[u8]) -> bool {
        if !self.is_enough() || self.front.saturating_add(self.back) > LOOK as u64 {
            return false;
        }
        let front = self.view.iter().take(self.front as usize);
        let back = self.view.iter_from((self.len - self.back) as usize);
        front.chain(back).all(|other| other != element)
    }

    /// Whether pops at one end take only such elements.
    pub(super) fn pops_only(&self, at_front: bool, element: &[u8]) -> bool {
        let (from, count) = match at_front {
            true => (0, self.front),
            false => (self.len.saturating_sub(self.back), self.back),
        };
        let taken = self.view.iter_from(from as usize).take(count as usize);
        self.is_enough() && count <= LOOK as u64 && taken.into_iter().all(|other| other == element)
    }

    /// Whether there is enough for all pops.
    pub(super) fn is_enough(&self) -> bool {
        self.front.saturating_add(self.back) <= self.len
    }

    /// Whether the element is known not to be there.
    pub(super) fn lacks(&self, element: &[u8]) -> bool {
        self.len <= LOOK as u64 && self.view.iter().all(|other| other != element)
    }

    /// Where the element is first, if that is soon.
    pub(super) fn soon(&self, element: &[u8]) -> Option<u64> {
        let place = self
            .view
            .iter()
            .take(LOOK)
            .position(|other| other == element);
        place.map(|place| place as u64)
    }

    /// Whether a trim keeps everything, whatever is put in.
    pub(super) fn keeps_all(&self, start: i64, stop: i64) -> bool {
        let most = self.most();
        let from_first = start == 0 || (start < 0 && start.unsigned_abs() >= most);
        from_first && (stop == -1 || (stop >= 0 && stop.unsigned_abs() >= most))
    }

    /// Whether these places, counted from the front, are there even after all pops at the back.
    pub(super) fn stays_in_front(&self, span: Span) -> bool {
        match span {
            (start, stop) if start < 0 || stop < 0 => false,
            (start, stop) => start > stop || (stop as u64) < self.len.saturating_sub(self.back),
        }
    }

    /// The same, counted from the end.
    pub(super) fn stays_in_back(&self, span: Span) -> bool {
        match span {
            (start, stop) if start >= 0 || stop >= 0 => false,
            (start, stop) => {
                start > stop || start.unsigned_abs() <= self.len.saturating_sub(self.front)
            }
        }
    }
}

/// The indices that an operation reads or writes.
pub(super) type Span = (i64, i64);

pub(super) fn span(op: &Op<'_>) -> Option<Span> {
    match *op {
        Op::Set { index, .. } | Op::Index { index } => Some((index, index)),
        Op::Range { start, stop } => Some((start, stop)),
        _ => None,
    }
}

/// What an operation puts in, looks for or removes.
pub(super) fn element<'a>(op: &Op<'a>) -> &'a [u8] {
    match *op {
        Op::PushFront { element }
        | Op::PushBack { element }
        | Op::Set { element, .. }
        | Op::Insert { element, .. }
        | Op::Remove { element, .. } => element,
        Op::Position(search) => search.element,
        _ => b"",
    }
}

/// Pivot, and the side of it that the element goes to.
pub(super) fn pivot<'a>(op: &Op<'a>) -> (&'a [u8], Side) {
    match *op {
        Op::Insert { side, pivot, .. } => (pivot, side),
        _ => (b"", Side::Before),
    }
}

pub(super) fn is_read(op: &Op<'_>) -> bool {
    op.is_read()
}
