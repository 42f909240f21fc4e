//! Replicated sorted sets: the last score of a member wins, and increments of
//! it add up.

use super::elements::{Element, Elements, tell};
use super::{Refused, Replicate, Writer};
use crate::algebra::Algebra;
use crate::object::{Object, Registered, Tag};
use crate::sorted_set::{Only, Op, Reply, SortedSet};
use rufous_lattice::{Coded, Score, Stamp, score};
use std::sync::LazyLock;

/// The elements are the scores of members; see [`Score`].
#[derive(Debug)]
pub struct Ranked;

pub type SharedSortedSet = Elements<Ranked>;

impl Element for Ranked {
    type Plain = SortedSet;
    type Value = Score;

    const NAME: &'static str = "replicated sorted sets";
    const ABOUT: &'static str = "Sorted sets of keyspaces whose replicas all take writes. Changes \
        of different members never meet. Of two scores of one member at the same time, of which a \
        removal is one, the one with the higher stamp stays. Increments belong to the score that \
        they have seen and add up; another score replaces them, also those that are made at the \
        same time. Increments to both infinities make zero.";

    fn is_there(value: &Score, cut: Stamp) -> bool {
        value.score().is_some() && value.stamp() >= cut
    }

    fn nothing(cut: Stamp) -> Score {
        Score::removed(cut)
    }

    fn newest(value: &Score) -> Stamp {
        value.stamp()
    }

    fn only_counts(value: &Score) -> bool {
        value.only_counts()
    }

    const COUNTS: bool = true;

    fn meet(mine: &mut Score, theirs: &Score, horizon: u64) -> bool {
        mine.meet(theirs, horizon)
    }

    fn removal(_: &Score, stamp: Stamp) -> Score {
        Score::removed(stamp)
    }

    fn single(value: &Score) -> Option<Stamp> {
        let is_plain = value.floats.is_empty() && value.score().is_some();
        is_plain.then_some(value.stamp())
    }

    fn written(stamp: Stamp, score: f64) -> Score {
        Score::written(stamp, score)
    }

    fn write_of(delta: &[u8]) -> Option<(Stamp, f64)> {
        score::write(delta)
    }

    fn replaces(old: Stamp, new: Stamp) -> Option<bool> {
        (old != new).then_some(new > old)
    }

    fn with_shown<R>(value: &Score, see: impl FnOnce(f64) -> R) -> Option<R> {
        value.score().map(see)
    }

    fn samples() -> &'static [Vec<u8>] {
        static ALL: LazyLock<Vec<Vec<u8>>> =
            LazyLock::new(|| deltas().iter().map(Coded::encoded).collect());
        &ALL
    }
}

/// Deltas of few stamps.
fn deltas() -> Vec<Score> {
    let stamp = Stamp::new;
    let mut all = Vec::new();
    for (time, replica) in [(1, 1), (1, 2), (2, 1)] {
        let stamp = stamp(time, replica);
        let mut counted = Score::written(stamp, f64::from(replica) - 1.5);
        all.extend([counted.clone(), Score::removed(stamp)]);
        counted.floats.set(1, 0.25);
        all.push(counted.clone());
        counted.floats.set(2, f64::NEG_INFINITY);
        all.push(counted);
    }
    let mut never = Score::default();
    never.floats.set(3, 1.0);
    all.push(never);
    all
}

pub(crate) const REPLICATE: Replicate<SortedSet> = Replicate {
    tag: Tag::SharedSortedSet,
    inside: |object| SharedSortedSet::of(object).map(SharedSortedSet::plain),
    packed_inside: SharedSortedSet::packed_plain,
    translate,
};

const CONDITION: Refused = Refused {
    why: "only all replicas together know the score that the condition compares with",
    instead: "leave out NX, XX, GT and LT, or use a keyspace of regime strict",
};

fn translate(
    object: &Object,
    op: &Op<'_>,
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> Result<Reply, Refused> {
    let state = SharedSortedSet::of(object).ok_or(Refused::OTHER_TYPE)?;
    let view = SharedSortedSet::plain(state);
    let mut reply = SortedSet::execute(view, op);
    match *op {
        Op::Add { only, .. } | Op::Increment { only, .. } if only != Only::default() => {
            return Err(CONDITION);
        }
        Op::Add { member, score, .. } => tell(member, &Score::written(writer.stamp, score), ops),
        Op::Increment { member, by, .. } => {
            let mut score = SharedSortedSet::value(state, member);
            let replica = writer.stamp.replica;
            let total = score.floats.total(replica) + by;
            if total.is_nan() || reply == Reply::NotANumber {
                return Ok(Reply::NotANumber);
            }
            score.floats.set(replica, total);
            reply = Reply::Score(score.score());
            tell(member, &score, ops);
        }
        Op::Remove { member } => SharedSortedSet::remove(state, member, writer, ops),
        Op::RemoveRange { zone } => view.each(view.span(&zone), false, |member, _| {
            SharedSortedSet::remove(state, member, writer, ops);
        }),
        _ => {}
    }
    Ok(reply)
}
