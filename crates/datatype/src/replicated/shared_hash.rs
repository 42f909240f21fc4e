//! Replicated hashes: the last write of a field wins, and increments of it add
//! up.

use super::elements::{Element, Elements, tell};
use super::register::{self, add_float, samples, text_of};
use super::{Refused, Replicate, Writer};
use crate::ValueError;
use crate::algebra::Algebra;
use crate::hash::{self, Hash, Op, Reply};
use crate::object::{Object, Registered, Tag};
use rufous_lattice::{Coded, Register, Stamp};
use std::sync::LazyLock;

/// Fields are registers.
#[derive(Debug)]
pub struct Field;

pub type SharedHash = Elements<Field>;

impl Element for Field {
    type Plain = Hash;
    type Value = Register;

    const NAME: &'static str = "replicated hashes";
    const ABOUT: &'static str = "Hashes of keyspaces whose replicas all take writes. Writes of \
        different fields never meet. Of two writes of one field at the same time, of which a \
        deletion is one, the one with the higher stamp stays. Increments belong to the write that \
        they have seen and add up; a write replaces them, also those that are made at the same \
        time.";

    fn is_there(value: &Register, cut: Stamp) -> bool {
        value.is_there() && value.stamp() >= cut
    }

    fn nothing(cut: Stamp) -> Register {
        Register::deleted(cut)
    }

    fn newest(value: &Register) -> Stamp {
        value.newest()
    }

    fn only_counts(value: &Register) -> bool {
        value.only_counts()
    }

    const COUNTS: bool = true;

    fn meet(mine: &mut Register, theirs: &Register, horizon: u64) -> bool {
        mine.meet(theirs, horizon)
    }

    fn removal(_: &Register, stamp: Stamp) -> Register {
        Register::deleted(stamp)
    }

    fn single(value: &Register) -> Option<Stamp> {
        value.is_plain().then_some(value.stamp())
    }

    fn written(stamp: Stamp, value: &[u8]) -> Register {
        Register::written(stamp, value.to_vec(), 0)
    }

    fn write_of(delta: &[u8]) -> Option<(Stamp, &[u8])> {
        register::plain(delta)
    }

    fn replaces(old: Stamp, new: Stamp) -> Option<bool> {
        (old != new).then_some(new > old)
    }

    fn with_shown<R>(value: &Register, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        text_of(value).map(|text| see(&text))
    }

    fn samples() -> &'static [Vec<u8>] {
        static ALL: LazyLock<Vec<Vec<u8>>> =
            LazyLock::new(|| samples().iter().map(Coded::encoded).collect());
        &ALL
    }
}

pub(crate) const REPLICATE: Replicate<Hash> = Replicate {
    tag: Tag::SharedHash,
    inside: |object| SharedHash::of(object).map(SharedHash::plain),
    packed_inside: SharedHash::packed_plain,
    translate,
};

const SET_NEW: Refused = Refused {
    why: "only all replicas together know whether a field is new",
    instead: "use HSET, whose last write wins, or a keyspace of regime strict",
};

fn translate(
    object: &Object,
    op: &Op<'_>,
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> Result<Reply, Refused> {
    let state = SharedHash::of(object).ok_or(Refused::OTHER_TYPE)?;
    let value = |field| SharedHash::value(state, field);
    let reply = Hash::execute(SharedHash::plain(state), op);
    match (*op, &reply) {
        (Op::Set { field, value }, _) => {
            tell(
                field,
                &Register::written(writer.stamp, value.to_vec(), 0),
                ops,
            );
        }
        (Op::SetNew { .. }, _) => return Err(SET_NEW),
        (Op::Delete { field }, _) => SharedHash::remove(state, field, writer, ops),
        (Op::Increment { field, by }, Reply::Integer(Ok(_))) => {
            let mut register = value(field);
            if register.counter.add(writer.stamp.replica, by).is_err() {
                return Ok(Reply::Integer(Err(ValueError::Overflow)));
            }
            tell(field, &register, ops);
        }
        (Op::IncrementFloat { field, by }, Reply::Float(Ok(_))) => {
            let mut register = value(field);
            let added = hash::finite(by).and_then(|by| add_float(&mut register, by, writer));
            if let Err(error) = added {
                return Ok(Reply::Float(Err(error)));
            }
            tell(field, &register, ops);
        }
        _ => {}
    }
    Ok(reply)
}
