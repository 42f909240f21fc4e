//! Strings at replicated keys: set, incremented, or given a deadline.

use super::at::At;
use super::causal;
use super::lattice::{Keyed, is_small};
use super::overwrite::overwrite_register;
use super::types::{ExpirySetting, NewValue};
use super::writes::{NOT_YET, write_replica};
use crate::planted::{self, Planted};
use rufous_datatype::ValueError;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::hll::Registers;
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::Writer;
use rufous_datatype::replicated::register::{self, Register};
use rufous_datatype::replicated::sketch::{self, Sketch};

/// Sets a string; returns whether the key existed before.
pub(super) fn write_string(
    at: &mut At<'_>,
    keyed: Keyed,
    value: &NewValue<'_>,
    expiry: ExpirySetting,
) -> bool {
    let (bytes, tag) = (value.bytes(), keyed.strings);
    if expiry == ExpirySetting::Clear
        && let Some(writer) = at.env.lattice.writer()
        && overwrite_register(at, keyed, writer.stamp, bytes)
    {
        at.env.lattice.step();
        return true;
    }
    let before = causal::expire_at(at);
    let was_plain = at.is_plain();
    if was_plain {
        at.remove();
    }
    let deadline = match expiry {
        ExpirySetting::Clear => 0,
        ExpirySetting::At(unix_ms) => unix_ms.max(1),
        ExpirySetting::Keep => before.flatten().unwrap_or(0),
    };
    if tag == Tag::Siblings {
        let context = at.env.lattice.context_of(at.db.number, at.key);
        causal::write(at, keyed, Some((bytes, deadline)), context.as_ref());
        return before.is_some();
    }
    let keeps = expiry == ExpirySetting::Keep && !was_plain;
    write_replica(at, (keyed, tag), |object, writer, ops| {
        match Register::of(object) {
            Some(state) if keeps => {
                register::set_keeping(Register::view(state), writer, bytes, ops);
            }
            _ => register::set(writer, bytes, deadline, ops),
        }
    });
    before.is_some()
}

/// Adds elements to a HyperLogLog, if the key is replicated; returns whether that changed it.
pub fn add_to_sketch<'e>(
    at: &mut At<'_>,
    elements: impl Iterator<Item = &'e [u8]>,
) -> Option<bool> {
    raise(at, |view, ops| sketch::add(view, elements, ops))
}

/// Merges other HyperLogLogs into that of the key, if it is replicated.
pub fn merge_sketches(at: &mut At<'_>, observed: &Registers) -> Option<bool> {
    raise(at, |view, ops| sketch::merge(view, observed, ops))
}

fn raise(
    at: &mut At<'_>,
    change: impl FnOnce(sketch::View<'_>, &mut Vec<u8>) -> bool,
) -> Option<bool> {
    let keyed = at.replicated()?;
    let encode = |object: &Object, _: &Writer, ops: &mut Vec<u8>| {
        Sketch::of(object).is_some_and(|state| change(Sketch::view(state), ops))
    };
    let done = write_replica(at, (keyed, Tag::Sketch), encode);
    Some(done.unwrap_or(false))
}

/// Adds to a number stored as text, if the key is replicated: additions at different replicas add up.
pub fn increment(at: &mut At<'_>, by: i64) -> Option<Result<i64, ValueError>> {
    let keyed = at.replicated()?;
    if keyed.strings == Tag::Siblings {
        return Some(causal::increment(at, keyed, by));
    }
    let done = count(at, keyed, |view, writer, ops| {
        register::increment(view, by, writer, ops)
    });
    Some(done.unwrap_or(Ok(0)))
}

/// The same for a floating-point number; `by` is one as text.
pub fn increment_float(at: &mut At<'_>, by: &[u8]) -> Option<Result<Vec<u8>, ValueError>> {
    let keyed = at.replicated()?;
    if keyed.strings == Tag::Siblings {
        // The caller reads the value and writes it again with its context.
        return None;
    }
    let done = count(at, keyed, |view, writer, ops| {
        register::increment_float(view, by, writer, ops)
    });
    Some(done.unwrap_or_else(|| Ok(Vec::new())))
}

fn count<R>(
    at: &mut At<'_>,
    keyed: Keyed,
    add: impl FnOnce(register::View<'_>, &Writer, &mut Vec<u8>) -> R,
) -> Option<R> {
    if at.is_plain() {
        adopt_string(at, keyed)?;
    }
    let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
        Register::of(object).map(|state| add(Register::view(state), writer, ops))
    };
    write_replica(at, (keyed, keyed.strings), encode)?
}

/// Rewrites a plain string, from before the key had replicas, as a replicated one.
fn adopt_string(at: &mut At<'_>, keyed: Keyed) -> Option<()> {
    causal::note_read(at);
    let old = NewValue::Own(at.shown_text()?);
    write_string(at, keyed, &old, ExpirySetting::Keep);
    Some(())
}

/// Sets another deadline on what is shown, and leaves the value as it is. Returns whether the key exists.
pub(super) fn set_deadline(at: &mut At<'_>, keyed: Keyed, unix_ms: Option<u64>) -> bool {
    if at.is_plain() && adopt_string(at, keyed).is_none() {
        at.refuse(NOT_YET);
        return false;
    }
    let Some(tag) = at.tag() else {
        return false;
    };
    let deadline = unix_ms.map_or(0, |at| at.max(1));
    if tag == Tag::Siblings {
        return causal::set_deadline(at, keyed, deadline);
    }
    if planted::is(Planted::DeadlineWritesValue)
        && tag == Tag::Register
        && let Some(shown) = at.shown_text()
    {
        let expiry = unix_ms.map_or(ExpirySetting::Clear, ExpirySetting::At);
        return write_string(at, keyed, &NewValue::Own(shown), expiry);
    }
    let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
        object.encode_deadline(deadline, writer, ops)
    };
    let logged = at.env.observers.journal.bytes().len();
    let done = write_replica(at, (keyed, tag), encode);
    if planted::is(Planted::DeadlineNotLogged) && !is_small(tag) {
        at.env.observers.journal.bytes().truncate(logged);
    }
    match done {
        Some(Ok(())) => true,
        Some(Err(refused)) => {
            at.refuse(refused);
            false
        }
        None => false,
    }
}
