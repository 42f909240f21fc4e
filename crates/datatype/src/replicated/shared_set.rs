//! Replicated sets: an addition beats a removal that has not seen it.

use super::elements::{Element, Elements, Spot, tell};
use super::{Refused, Replicate, Writer};
use crate::algebra::{Algebra, Packing, Tuning};
use crate::dict::Dict;
use crate::object::{Object, Registered, Tag};
use crate::pack::Pack;
use crate::set::{self, Op, Set};
use rufous_lattice::{Coded, Lattice, Presence, Stamp, presence};
use std::sync::LazyLock;

/// Members are there or not; see [`Presence`].
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

    fn removal(value: &Presence, stamp: Stamp) -> Presence {
        value.removal(stamp)
    }

    type Shown<'a> = ();

    fn single(value: &Presence) -> Option<Stamp> {
        value.only_addition()
    }

    fn written(stamp: Stamp, (): ()) -> Presence {
        Presence::added(stamp)
    }

    fn write_of(delta: &[u8]) -> Option<(Stamp, ())> {
        Some((presence::addition(delta)?, ()))
    }

    /// Each replica has an addition of its own.
    fn replaces(old: Stamp, new: Stamp) -> Option<bool> {
        (old.replica == new.replica).then_some(new > old)
    }

    fn with_shown<R>(_: &Presence, see: impl FnOnce(()) -> R) -> Option<R> {
        Some(see(()))
    }

    fn packing(tuning: &Tuning) -> Packing {
        tuning.set
    }

    fn shown_len((): ()) -> usize {
        0
    }

    fn elements(packed: &[u8]) -> impl Iterator<Item = (&[u8], ())> {
        Pack(packed).iter().map(|member| (member, ()))
    }

    fn find(packed: &[u8], member: &[u8]) -> Result<(Spot, ()), usize> {
        let (index, offset) = Pack(packed).search::<1>(member)?;
        Ok((Spot { index, offset }, ()))
    }

    fn put(
        plain: &mut set::State,
        at: Result<Spot, usize>,
        member: &[u8],
        (): (),
        tuning: &Tuning,
    ) -> usize {
        match at {
            Ok(spot) => spot.index,
            Err(count) => {
                plain.put_at(Err(count), member, &[], &set::shape(tuning));
                count
            }
        }
    }

    fn remove(plain: &mut set::State, member: &[u8], tuning: &Tuning) {
        Set::commit(plain, &Op::Remove { member }, tuning);
    }

    fn table(plain: &set::State) -> Option<&Dict> {
        plain.large()
    }

    fn table_mut(plain: &mut set::State) -> Option<&mut Dict> {
        plain.large_mut()
    }

    fn shown(_: &[u8]) {}

    fn put_large(plain: &mut set::State, member: &[u8], (): (), beside: &[u8], _: &Tuning) {
        if let Some(table) = plain.large_mut() {
            table.insert_beside(member, &[], beside);
        }
    }

    fn samples() -> &'static [Vec<u8>] {
        static ALL: LazyLock<Vec<Vec<u8>>> =
            LazyLock::new(|| deltas().iter().map(Coded::encoded).collect());
        &ALL
    }
}

/// Deltas of few stamps.
fn deltas() -> Vec<Presence> {
    let stamp = |time, replica| Stamp {
        time,
        replica,
        step: 0,
    };
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
        // Also of a member that is there: a removal that has not seen this addition
        // is not to take it away.
        Op::Add { member } => tell(member, &Presence::added(writer.stamp), ops),
        Op::Remove { member } => SharedSet::remove(state, member, writer, ops),
        Op::Contains { .. } | Op::Size | Op::Members => {}
    }
    Ok(Set::execute(SharedSet::plain(state), op))
}
