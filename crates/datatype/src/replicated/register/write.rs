//! Operations of commands on replicated strings. Each function appends an encoded operation.

use super::state::long;
use super::{Op, Register, View};
use crate::algebra::DataType;
use crate::float::LongDouble;
use crate::replicated::Writer;
use crate::{ValueError, hash, integer, pack};
use rufous_lattice::register::form;
use rufous_lattice::{Coded, Register as Lattice, Stamp};

/// Writes a value, with a deadline in Unix milliseconds or 0 for none.
#[inline]
pub fn set(writer: &Writer, value: &[u8], deadline: u64, ops: &mut Vec<u8>) {
    if deadline > 0 {
        return tell(
            &Lattice::written(writer.stamp, value.to_vec(), deadline),
            ops,
        );
    }
    // The encoding of a written register, without constructing one.
    let mut head = [form::PLAIN; 1 + Stamp::SIZE];
    head[1..].copy_from_slice(&writer.stamp.to_bytes());
    pack::push_parts(ops, &head, value);
}

/// Writes a value and keeps the deadline, which another replica may be changing at the same time.
pub fn set_keeping(view: View<'_>, writer: &Writer, value: &[u8], ops: &mut Vec<u8>) {
    let register = view.register();
    tell(&register.rewritten(writer.stamp, value.to_vec()), ops);
}

pub fn delete(writer: &Writer, ops: &mut Vec<u8>) {
    tell(&Lattice::deleted(writer.stamp), ops);
}

/// Adds to a number, and returns the sum. A text that is not a number is not changed.
pub fn increment(
    view: View<'_>,
    by: i64,
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> Result<i64, ValueError> {
    let sum = integer::increment(view.text(), by)?;
    let mut register = view.register();
    register.begin_count(writer.stamp);
    let added = register.counter.add(writer.stamp.replica, by);
    added.map_err(|_| ValueError::Overflow)?;
    tell(&register, ops);
    Ok(sum)
}

/// The same for a floating-point number; `by` is a finite number as text.
pub fn increment_float(
    view: View<'_>,
    by: &[u8],
    writer: &Writer,
    ops: &mut Vec<u8>,
) -> Result<Vec<u8>, ValueError> {
    let by = hash::finite(by)?;
    let text = view.text().unwrap_or(b"0");
    let current = LongDouble::parse(text).ok_or(ValueError::NotFloat)?;
    let sum = current.checked_add(by).ok_or(ValueError::NanOrInfinity)?;
    let mut register = view.register();
    register.begin_count(writer.stamp);
    add_float(&mut register, by, writer)?;
    tell(&register, ops);
    Ok(sum.to_text())
}

/// Adds to the total of the writer's replica.
pub(in crate::replicated) fn add_float(
    register: &mut Lattice,
    by: LongDouble,
    writer: &Writer,
) -> Result<(), ValueError> {
    let replica = writer.stamp.replica;
    let total = long(register.floats.total(replica)).and_then(|total| total.checked_add(by));
    let text = total.map(LongDouble::to_text).unwrap_or_default();
    let total = str::from_utf8(&text).map_or(Ok(f64::NAN), str::parse::<f64>);
    match total {
        Ok(total) if total.is_finite() => register.floats.set(replica, total),
        _ => return Err(ValueError::NanOrInfinity),
    }
    Ok(())
}

/// Sets another deadline, with a stamp of its own, and leaves value and increments as they are; returns whether there
/// is anything to read.
pub fn expire_at(view: View<'_>, deadline: u64, writer: &Writer, ops: &mut Vec<u8>) -> bool {
    let mut register = view.register();
    let is_there = register.set_deadline(writer.stamp, deadline);
    if is_there || register.has_expired() {
        tell(&register, ops);
    }
    is_there
}

/// The operation of every replica when the deadline has passed; see [`Lattice::expire`].
pub fn expire(view: View<'_>, ops: &mut Vec<u8>) {
    if view.deadline() > 0 {
        tell(&view.register().expiry(), ops);
    }
}

fn tell(register: &Lattice, ops: &mut Vec<u8>) {
    let delta = &register.encoded();
    Register::encode(&Op::Merge { delta }, ops);
}
