//! LZF, the compression of long strings: runs of literal bytes, and references to what was output
//! before.
//!
//! ```text
//! 000lllll                      l + 1 literals follow
//! llloooooo oooooooo            l + 2 bytes from o + 1 bytes back
//! 111ooooo llllllll oooooooo    l + 9 bytes from o + 1 bytes back
//! ```

use super::RdbError;

/// The most bytes that one compressed byte can stand for: three give 264.
const MAX_EXPANSION: usize = 88;

/// Decompresses to exactly `len` bytes.
pub(super) fn decompress(input: &[u8], len: usize) -> Result<Vec<u8>, RdbError> {
    if len / MAX_EXPANSION > input.len() {
        return Err(RdbError::Malformed);
    }
    let mut out = Vec::with_capacity(len);
    let mut rest = input;
    while let Some((&control, after)) = rest.split_first() {
        let literals = usize::from(control) + 1;
        rest = if control < 32 {
            let (literal, after) = after
                .split_at_checked(literals)
                .ok_or(RdbError::Malformed)?;
            out.extend_from_slice(literal);
            after
        } else {
            let (count, offset, after) = reference(control, after).ok_or(RdbError::Malformed)?;
            copy_back(&mut out, offset, count, len)?;
            after
        };
        if out.len() > len {
            return Err(RdbError::Malformed);
        }
    }
    match out.len() == len {
        true => Ok(out),
        false => Err(RdbError::Malformed),
    }
}

/// How many bytes from how far back, and what follows.
fn reference(control: u8, rest: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (mut count, mut rest) = (usize::from(control >> 5), rest);
    if count == 7 {
        let (more, after) = rest.split_first()?;
        count += usize::from(*more);
        rest = after;
    }
    let (low, rest) = rest.split_first()?;
    let offset = usize::from(control & 31) << 8 | usize::from(*low);
    Some((count + 2, offset + 1, rest))
}

/// The source may reach into what is being written: then it repeats.
fn copy_back(out: &mut Vec<u8>, offset: usize, count: usize, len: usize) -> Result<(), RdbError> {
    let start = out.len().checked_sub(offset).ok_or(RdbError::Malformed)?;
    if out.len() + count > len {
        return Err(RdbError::Malformed);
    }
    if offset >= count {
        out.extend_from_within(start..start + count);
    } else {
        for at in start..start + count {
            out.push(out[at]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_references() {
        assert_eq!(decompress(b"\x02abc", 3).unwrap(), b"abc");
        assert_eq!(decompress(b"\x00a\x40\x00", 5).unwrap(), b"aaaaa");
        assert_eq!(decompress(b"\x01ab\x20\x01\x00!", 6).unwrap(), b"ababa!");
        assert_eq!(decompress(b"\x00a\xe0\xff\x00", 265).unwrap(), [b'a'; 265]);
        assert_eq!(decompress(b"", 0).unwrap(), b"");
    }

    #[test]
    fn broken_input_is_refused() {
        let broken = |input: &[u8], len| {
            assert_eq!(
                decompress(input, len),
                Err(RdbError::Malformed),
                "{input:?}"
            );
        };
        broken(b"", 1);
        broken(b"\x02ab", 3);
        broken(b"\x02abc", 2);
        broken(b"\x02abc", 4);
        broken(b"\x00a\x40\x01", 5);
        broken(b"\x00a\x40", 5);
        broken(b"\x00a\xe0\x00", 10);
        broken(b"\x00a\xe0\xff\x00", 264);
        broken(b"\x00a\xe0\xff\x00", usize::MAX);
    }
}
