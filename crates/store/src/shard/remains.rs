//! What remains of a value without the writes that have gone, or that were removed; see `gone`.

use super::noted::Note;
use super::types::Any;
use rufous_datatype::algebra::{Algebra, Corrupt, DataType, Tuning};
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::register::Register;
use rufous_datatype::replicated::{chunk_since, names_what_goes, operations_of};
use rufous_lattice::Stamp;

/// The notes of a grave that is forgotten. A grave of a string needs none, as a later string contains more, and values
/// of other types replace it; but for counts without a stamp that have expired, as later ones may have no stamp either.
pub(super) fn ends_of(object: &Object, horizon: u64) -> [Note; 2] {
    let (tag, gone) = (object.tag(), object.gone(horizon));
    let end = match tag {
        Tag::Register => gone,
        _ => object.newest().max(gone),
    };
    match names_what_goes(tag) {
        true => [Note::Gone(tag, gone), Note::Ended(tag, end)],
        false => [Note::Gone(tag, end), Note::Ended(tag, Stamp::ZERO)],
    }
}

/// Whether a grave may hide a value of another type, or counts, and all replicas have received everything in it.
pub(super) fn is_over(object: &Object, horizon: u64) -> bool {
    match object.tag() {
        Tag::Register => object.gone(horizon) > Stamp::ZERO,
        _ => object.until() <= horizon,
    }
}

impl Any<'_> {
    /// See [`rufous_datatype::object::Object::gone`].
    pub(super) fn gone(self, horizon: u64) -> Stamp {
        match self {
            Any::Packed(tag, bytes) => tag.packed_gone(bytes, horizon),
            Any::Object(object) => object.gone(horizon),
            Any::String(_) => Stamp::ZERO,
        }
    }

    /// Whether a replicated string consists of counts only, on nothing or on a removal.
    pub(super) fn only_counts(self) -> bool {
        match self {
            Any::Packed(Tag::Register, bytes) => Register::packed_view(bytes).only_counts(),
            Any::Object(object) => {
                Register::of(object).is_some_and(|state| Register::view(state).only_counts())
            }
            _ => false,
        }
    }
}

/// What remains of a replica of any type without everything below the cut, if anything does. A deadline at the cut, or
/// a removal, is nothing.
pub(super) fn since(any: Any<'_>, cut: Stamp, tuning: &Tuning) -> Option<Object> {
    let object = left(any, tuning, |tag, ops| tag.since(ops, cut))?;
    let newest = object.newest();
    (newest > cut || newest == cut && !object.is_hidden()).then_some(object)
}

/// The object without removals up to the end, which have removed the counts that they name.
pub(super) fn without_end(object: Object, end: Stamp, tuning: &Tuning) -> Option<Object> {
    if end == Stamp::ZERO {
        return Some(object);
    }
    let any = Any::of_object(&object);
    let object = left(any, tuning, |tag, ops| tag.ended(ops, end))?;
    (object.newest() > end || !object.is_hidden()).then_some(object)
}

pub(super) fn left(
    any: Any<'_>,
    tuning: &Tuning,
    of: impl Fn(Tag, &[u8]) -> Result<Vec<u8>, Corrupt>,
) -> Option<Object> {
    let tag = any.tag()?;
    let (mut object, mut chunk) = (tag.empty(), Vec::new());
    let mut next = Some(0);
    while let Some(from) = next {
        chunk.clear();
        next = any.chunk(from, usize::MAX, &mut chunk);
        let left = of(tag, &operations_of(tag, &chunk));
        let done = left.and_then(|ops| object.commit_encoded(&ops, tuning));
        debug_assert!(done.is_ok(), "a value's chunks are parts of it");
    }
    Some(object)
}

/// A part of a snapshot without what has gone. Strings are one part.
pub(super) fn leave_out(tag: Tag, gone: Stamp, chunk: &mut Vec<u8>) {
    if gone > Stamp::ZERO && tag != Tag::Register {
        let left = chunk_since(tag, chunk, gone);
        debug_assert!(left.is_ok(), "a value's chunks are parts of it");
        if let Ok(left) = left {
            *chunk = left;
        }
    }
}
