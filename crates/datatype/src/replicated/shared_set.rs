//! Replicated sets: an addition wins over a removal that has not seen it.

use super::elements::{Element, Elements, tell};
use super::{Refused, Replicate, Writer};
use crate::algebra::Algebra;
use crate::object::{Object, Registered, Tag};
use crate::set::{self, Op, Set};
use rufous_lattice::{Coded, Lattice, Presence, Stamp, presence};
use std::sync::LazyLock;

/// The elements are the presence of members; see [`Presence`].
#[derive(Debug)]
pub struct Member;

pub type SharedSet = Elements<Member>;

impl Element for Member {
    type Plain = Set;
    type Value = Presence;

    const NAME: &'static str = "replicated sets";
    const ABOUT: &'static str = "Sets of keyspaces whose replicas all take writes. Additions and \
        removals of different members never meet. Of an addition and a removal of one member at \
        the same time the addition stays: a removal takes away only what it has seen.";

    fn is_there(value: &Presence, cut: Stamp) -> bool {
        value.is_there_since(cut)
    }

    fn nothing(_: Stamp) -> Presence {
        Presence::default()
    }

    fn newest(value: &Presence) -> Stamp {
        value.newest()
    }

    /// Replica by replica.
    fn since(value: Presence, cut: Stamp) -> Option<Presence> {
        value.since(cut)
    }

    const COUNTS: bool = false;

    fn meet(_: &mut Presence, _: &Presence, _: u64) -> bool {
        false
    }

    fn removal(value: &Presence, stamp: Stamp) -> Presence {
        value.removal(stamp)
    }

    fn single(value: &Presence) -> Option<Stamp> {
        value.only_addition()
    }

    fn written(stamp: Stamp, _: &[u8]) -> Presence {
        Presence::added(stamp)
    }

    fn write_of(delta: &[u8]) -> Option<(Stamp, &[u8])> {
        Some((presence::addition(delta)?, &[]))
    }

    /// Each replica has an addition of its own, so two replicas' additions do not replace each other.
    fn replaces(old: Stamp, new: Stamp) -> Option<bool> {
        (old.replica == new.replica).then_some(new > old)
    }

    fn with_shown<R>(_: &Presence, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        Some(see(&[]))
    }

    fn samples() -> &'static [Vec<u8>] {
        static ALL: LazyLock<Vec<Vec<u8>>> =
            LazyLock::new(|| deltas().iter().map(Coded::encoded).collect());
        &ALL
    }
}

/// Deltas of few stamps.
fn deltas() -> Vec<Presence> {
    let stamp = Stamp::new;
    let mut all = Vec::new();
    for (time, replica) in [(1, 1), (1, 2), (2, 1), (3, 3)] {
        let mut added = Presence::added(stamp(time, replica));
        let removal = added.removal(stamp(time + 1, 2));
        all.extend([added.clone(), removal]);
        added.merge(&Presence::added(stamp(1, 2)));
        all.push(added);
    }
    all
}

pub(crate) const REPLICATE: Replicate<Set> = Replicate {
    tag: Tag::SharedSet,
    inside: |object| SharedSet::of(object).map(SharedSet::plain),
    packed_inside: SharedSet::packed_plain,
    translate,
};

fn translate(
    object: &Object,
    op: &Op<'_>,
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> Result<set::Reply, Refused> {
    let state = SharedSet::of(object).ok_or(Refused::OTHER_TYPE)?;
    match *op {
        // Even if the member is present: a removal that has not seen this addition must not remove it.
        Op::Add { member } => tell(member, &Presence::added(writer.stamp), ops),
        Op::Remove { member } => SharedSet::remove(state, member, writer, ops),
        Op::Contains { .. } | Op::Size | Op::Members => {}
    }
    Ok(Set::execute(SharedSet::plain(state), op))
}
