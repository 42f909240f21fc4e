//! Names of commands without regard to case, in two words.

/// A name's length and its bytes with the bit set by which capitals differ from small letters: the first eight and the last eight,
/// which overlap in names under sixteen bytes. A name of up to sixteen letters is equal to another one, but for case, exactly if
/// these are; others may differ where these do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Folded {
    len: usize,
    first: u64,
    last: u64,
}

/// Longest name of which no byte is left out.
const WHOLE: usize = 16;

/// The bit by which letters differ from their capitals, in eight bytes.
const SMALL: u64 = 0x2020_2020_2020_2020;

impl Folded {
    #[inline]
    pub(crate) fn new(name: &[u8]) -> Self {
        let (first, last) = match name {
            [] => (0, 0),
            [a] => (u64::from(*a), 0),
            [a, b] => (u64::from(u16::from_le_bytes([*a, *b])), 0),
            [a, b, c] => (u64::from(u32::from_le_bytes([*a, *b, *c, 0])), 0),
            _ => match (name.first_chunk(), name.last_chunk()) {
                (Some(first), Some(last)) => {
                    (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
                }
                _ => (half(name.first_chunk()), half(name.last_chunk())),
            },
        };
        Self {
            len: name.len(),
            first: first | SMALL,
            last: last | SMALL,
        }
    }

    /// Whether all names that look like this one are equal to it, but for case.
    pub(crate) fn tells_all(name: &[u8]) -> bool {
        name.len() <= WHOLE && name.iter().all(u8::is_ascii_alphabetic)
    }

    #[inline]
    pub(crate) fn hash(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(29) ^ self.len as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize
    }
}

#[inline]
fn half(bytes: Option<&[u8; 4]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_counts_but_for_the_case_of_letters() {
        for len in 1..=WHOLE {
            for at in 0..len {
                for (a, b) in (0..=255u8).flat_map(|a| [a, a ^ 0x20, a ^ 0x80].map(|b| (a, b))) {
                    let (mut left, mut right) = (vec![b'x'; len], vec![b'X'; len]);
                    (left[at], right[at]) = (a, b);
                    if !Folded::tells_all(&left) {
                        continue;
                    }
                    assert_eq!(
                        Folded::new(&left) == Folded::new(&right),
                        left.eq_ignore_ascii_case(&right),
                        "{left:?} and {right:?}"
                    );
                }
            }
        }
    }

    /// Others may look like it: they are compared byte by byte.
    #[test]
    fn only_short_names_of_letters_tell_all() {
        for name in [
            &b"sort_ro"[..],
            b"restore-asking",
            b"config|get",
            b"abcdefghijklmnopq",
        ] {
            assert!(!Folded::tells_all(name));
        }
        assert!(Folded::tells_all(b"abcdefghijklmnop") && Folded::tells_all(b"GET"));
    }

    #[test]
    fn lengths_differ_where_the_words_do_not() {
        assert_ne!(Folded::new(b"\0"), Folded::new(b""));
        assert_ne!(Folded::new(b"aaaaaaaaa"), Folded::new(b"aaaaaaaaaa"));
    }
}
