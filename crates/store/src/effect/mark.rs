//! Marks of slots in the log: what a worker has of a slot's chain.

use super::NotAnEffect;
use super::bytes::{byte, put_varint, varint};

/// How much of a slot that moves along a chain a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotMark {
    /// A part: of an unfinished copy, or of a slot that is being dropped.
    Part,
    /// All writes of the chain up to this one. `since`: the epoch of that chain; 0 where an older
    /// version wrote the mark.
    Whole { seq: u64, since: u64 },
}

/// Kinds of marks. Versions that did not know epochs wrote `WHOLE`.
const NONE: u8 = 0;
const PART: u8 = 1;
const WHOLE: u8 = 2;
const WHOLE_SINCE: u8 = 3;

pub(super) fn put(out: &mut Vec<u8>, mark: Option<SlotMark>) {
    match mark {
        None => out.push(NONE),
        Some(SlotMark::Part) => out.push(PART),
        Some(SlotMark::Whole { seq, since: 0 }) => {
            out.push(WHOLE);
            put_varint(out, seq);
        }
        Some(SlotMark::Whole { seq, since }) => {
            out.push(WHOLE_SINCE);
            put_varint(out, seq);
            put_varint(out, since);
        }
    }
}

pub(super) fn take(from: &mut &[u8]) -> Result<Option<SlotMark>, NotAnEffect> {
    Ok(match byte(from)? {
        NONE => None,
        PART => Some(SlotMark::Part),
        WHOLE => Some(SlotMark::Whole {
            seq: varint(from)?,
            since: 0,
        }),
        WHOLE_SINCE => Some(SlotMark::Whole {
            seq: varint(from)?,
            since: varint(from)?,
        }),
        _ => return Err(NotAnEffect),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_older_versions_have_no_epoch() {
        let (seq, since) = (7, 0);
        let old = take(&mut &[WHOLE, 7][..]);
        let mark = Some(SlotMark::Whole { seq, since });
        assert_eq!(old, Ok(mark));
        let mut again = Vec::new();
        put(&mut again, mark);
        assert_eq!(again, [WHOLE, 7]);
        assert_eq!(take(&mut &[WHOLE_SINCE, 7][..]), Err(NotAnEffect));
        assert_eq!(take(&mut &[4][..]), Err(NotAnEffect));
    }
}
