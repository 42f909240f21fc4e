//! Between payloads and the values that keys have: elements are handed over in the chunks that
//! every type reads and writes, so that no second copy of a large collection is made.

use super::{DumpWriter, Items, RdbError, RdbValue};
use crate::algebra::Tuning;
use crate::object::{Object, Tag};
use crate::pack::{self, Pack};
use crate::sorted_set::{Item, parts, rank_of};

/// What is asked of a type at once.
const CHUNK: usize = 64 << 10;

/// The value of a payload, ready for a key.
#[derive(Clone, Debug)]
pub enum Restored {
    String(Vec<u8>),
    Object(Object),
}

/// The tags of types that Redis has too.
const HASH: u8 = 1;
const LIST: u8 = 2;
const SET: u8 = 3;
const SORTED_SET: u8 = 4;

/// Whether values of the type have a form that Redis reads.
pub(super) fn is_known_to_redis(tag: Tag) -> bool {
    matches!(tag as u8, HASH | LIST | SET | SORTED_SET)
}

/// The payload of a value of `len` elements that tells them in chunks, as `DataType::chunk` does:
/// given a position and about how many bytes are wanted.
pub fn dump(
    tag: Tag,
    len: usize,
    mut chunk: impl FnMut(u64, usize, &mut Vec<u8>) -> Option<u64>,
) -> Vec<u8> {
    let mut writer = match tag as u8 {
        HASH => DumpWriter::hash(len),
        LIST => DumpWriter::list(len),
        SET => DumpWriter::set(len),
        SORTED_SET => DumpWriter::sorted_set(len),
        _ => DumpWriter::own(tag),
    };
    let (mut bytes, mut at) = (Vec::new(), Some(0));
    while let Some(position) = at {
        bytes.clear();
        at = chunk(position, CHUNK, &mut bytes);
        match tag as u8 {
            HASH | LIST | SET => Pack(&bytes).iter().for_each(|item| writer.item(item)),
            SORTED_SET => {
                for item in Pack(&bytes).iter() {
                    let (score, member) = parts(item);
                    writer.member(member, score);
                }
            }
            _ => writer.item(&bytes),
        }
    }
    writer.finish()
}

/// The value that a payload has, in the shape that the settings want.
pub fn restore(value: RdbValue, tuning: &Tuning) -> Result<Restored, RdbError> {
    let (tag, items) = match value {
        RdbValue::String(bytes) => return Ok(Restored::String(bytes)),
        RdbValue::List(items) => (LIST, items),
        RdbValue::Set(items) => (SET, items),
        RdbValue::Hash(items) => (HASH, items),
        RdbValue::SortedSet(members, scores) => (SORTED_SET, in_order(&members, &scores)),
        RdbValue::Own(tag, chunks) => return own(tag, &chunks, tuning),
    };
    let mut object = Tag::from_byte(tag).ok_or(RdbError::Malformed)?.empty();
    let elements = items.len() / if tag == HASH { 2 } else { 1 };
    let (mut chunk, mut left) = (Vec::new(), items.len());
    for item in items.iter() {
        pack::push(&mut chunk, item);
        left -= 1;
        // Not between a field and its value.
        let is_whole = tag != HASH || left.is_multiple_of(2);
        if left == 0 || chunk.len() >= CHUNK && is_whole {
            let added = object.extend(&chunk, tuning);
            added.map_err(|_| RdbError::Malformed)?;
            chunk.clear();
        }
    }
    match object.len() == elements && !object.is_empty() {
        true => Ok(Restored::Object(object)),
        false => Err(RdbError::Malformed),
    }
}

fn own(tag: Tag, chunks: &Items, tuning: &Tuning) -> Result<Restored, RdbError> {
    let mut object = tag.empty();
    for chunk in chunks.iter() {
        let added = object.extend(chunk, tuning);
        added.map_err(|_| RdbError::Malformed)?;
    }
    match object.is_empty() {
        true => Err(RdbError::Malformed),
        false => Ok(Restored::Object(object)),
    }
}

/// Elements as sorted sets have them, in their order, in which they are added fastest.
fn in_order(members: &Items, scores: &[f64]) -> Items {
    let ranks = scores.iter().map(|&score| rank_of(score));
    let mut all: Vec<_> = ranks.zip(members.iter()).collect();
    all.sort_unstable();
    let mut items = Items::default();
    for (rank, member) in all {
        items.push(&Item::new(rank, member));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Registered, Visitor, visit_types};
    use crate::rdb::{read, seal, types};
    use rufous_base::rng::Rng;

    const LIMIT: usize = 1 << 24;

    fn payload(object: &Object) -> Vec<u8> {
        dump(object.tag(), object.len(), |at, budget, out| {
            object.chunk(at, budget, out)
        })
    }

    fn back(payload: &[u8]) -> Result<Object, RdbError> {
        match restore(read(payload, LIMIT)?, &Tuning::default())? {
            Restored::Object(object) => Ok(object),
            Restored::String(_) => Err(RdbError::Malformed),
        }
    }

    /// Values of every registered type.
    struct Samples(Vec<Object>);

    impl Visitor for Samples {
        fn visit<T: Registered>(&mut self) {
            let mut rng = Rng::new(7);
            for _ in 0..200 {
                let mut state = T::sample_state(&mut rng);
                for _ in 0..rng.below(20) {
                    T::commit(&mut state, &T::sample_op(&mut rng), &Tuning::default());
                }
                if !T::is_empty(T::view(&state)) {
                    self.0.push(T::wrap(state));
                }
            }
        }
    }

    fn samples() -> Vec<Object> {
        let mut samples = Samples(Vec::new());
        visit_types(&mut samples);
        samples.0
    }

    #[test]
    fn every_type_comes_back() {
        for object in samples() {
            assert_eq!(back(&payload(&object)).as_ref(), Ok(&object));
        }
    }

    #[test]
    fn whatever_is_changed_is_refused_or_another_value() {
        let mut rng = Rng::new(3);
        for object in samples() {
            let whole = payload(&object);
            let body = &whole[..whole.len() - 10];
            for _ in 0..20 {
                let mut body = body.to_vec();
                let at = rng.below(body.len() as u64) as usize;
                match rng.below(3) {
                    0 => body[at] = rng.next_u64() as u8,
                    1 => body.truncate(at),
                    _ => body.insert(at, rng.next_u64() as u8),
                }
                if let Ok(object) = back(&seal(body)) {
                    assert!(!object.is_empty());
                    assert_eq!(back(&payload(&object)), Ok(object));
                }
            }
        }
    }

    #[test]
    fn types_of_ours_are_told_by_tag_and_version() {
        let uid = Tag::Uid as u8;
        let state = 5u64.to_le_bytes();
        let body = |head: &[u8]| seal([head, &[8], &state].concat());
        let object = back(&body(&[types::OWN, types::OWN_VERSION, uid])).unwrap();
        assert_eq!(object.tag(), Tag::Uid);
        let refused = [
            [types::OWN, types::OWN_VERSION + 1, uid],
            [types::OWN, types::OWN_VERSION, 0xff],
            [types::OWN, types::OWN_VERSION, SET],
            [types::OWN - 1, types::OWN_VERSION, uid],
        ];
        for head in refused {
            assert_eq!(back(&body(&head)).unwrap_err(), RdbError::Malformed);
        }
        let nothing = seal(vec![types::OWN, types::OWN_VERSION, uid]);
        assert_eq!(back(&nothing).unwrap_err(), RdbError::Malformed);
    }
}
