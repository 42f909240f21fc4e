//! Bits of strings: reading, setting, counting, finding and combining them.
//!
//! Bit 0 is the most significant bit of the first byte, as everywhere in Redis. A string behaves as if followed by
//! endless zeros, except where `BITPOS` says otherwise.

use crate::ValueError;

/// What the indexes of `BITCOUNT` and `BITPOS` count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitUnit {
    #[default]
    Byte,
    Bit,
}

/// The operations of `BITOP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    And,
    Or,
    Xor,
    Not,
}

/// Parses a bit offset that lies in a string of at most `max_len` bytes.
///
/// `field_width` is given by `BITFIELD` alone, where `#n` means the n-th field of that width.
pub fn parse_bit_offset(
    text: &[u8],
    field_width: Option<u32>,
    max_len: u64,
) -> Result<u64, ValueError> {
    let offset = match (text, field_width) {
        ([b'#', index @ ..], Some(width)) => {
            crate::integer::parse_i64(index).and_then(|index| index.checked_mul(i64::from(width)))
        }
        _ => crate::integer::parse_i64(text),
    };
    match offset.map(u64::try_from) {
        Some(Ok(offset)) if offset / 8 < max_len => Ok(offset),
        _ => Err(ValueError::BitOffset),
    }
}

/// Parses the value of `SETBIT`.
pub fn parse_bit(text: &[u8]) -> Result<bool, ValueError> {
    match text {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err(ValueError::BitValue),
    }
}

/// How many bytes a string needs to hold this bit.
pub fn bytes_to_hold(bit_offset: u64) -> u64 {
    bit_offset / 8 + 1
}

/// The bit at an offset; beyond the end it is 0.
pub fn getbit(data: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8)
        .ok()
        .and_then(|index| data.get(index));
    byte.is_some_and(|byte| byte & bit_mask(offset) != 0)
}

/// Sets a bit and returns the old one.
///
/// # Panics
/// If `data` is shorter than [`bytes_to_hold`] says: growing the string is the caller's part.
pub fn setbit(data: &mut [u8], offset: u64, bit: bool) -> bool {
    let byte = &mut data[(offset / 8) as usize];
    let mask = bit_mask(offset);
    let old = *byte & mask != 0;
    if bit {
        *byte |= mask;
    } else {
        *byte &= !mask;
    }
    old
}

fn bit_mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// How many bits are set.
pub fn bitcount(data: &[u8]) -> u64 {
    let mut words = data.chunks_exact(8);
    let whole: u64 = words
        .by_ref()
        .map(|word| u64::from(load_be(word).count_ones()))
        .sum();
    whole + u64::from(load_be(words.remainder()).count_ones())
}

/// How many bits are set between two indexes, both inclusive.
pub fn bitcount_range(data: &[u8], start: i64, end: i64, unit: BitUnit) -> u64 {
    if start < 0 && end < 0 && start > end {
        return 0;
    }
    let Some((first, last)) = bit_span(data.len(), start, end, unit) else {
        return 0;
    };
    let bytes = &data[(first / 8) as usize..=(last / 8) as usize];
    let before = bytes[0] & !(0xff >> (first % 8));
    let after = bytes[bytes.len() - 1] & !(0xff << (7 - last % 8));
    bitcount(bytes) - u64::from(before.count_ones() + after.count_ones())
}

/// Where `BITPOS` finds a bit of this value, or -1.
///
/// Without an `end`, clear bits are also found right after the string: the answer is then its length in bits. With
/// one, or if `start` already lies beyond the string, they are not.
pub fn bitpos(data: &[u8], bit: bool, start: i64, end: Option<i64>, unit: BitUnit) -> i64 {
    let Some((first, last)) = bit_span(data.len(), start, end.unwrap_or(-1), unit) else {
        return -1;
    };
    match find_bit(data, bit, first, last) {
        Some(position) => position as i64,
        None if !bit && end.is_none() => data.len() as i64 * 8,
        None => -1,
    }
}

/// What `BITPOS` answers for an absent key, which (unlike an empty string) is all zeros.
pub fn bitpos_absent(bit: bool) -> i64 {
    if bit { -1 } else { 0 }
}

/// Parses the bit to look for.
pub fn parse_bitpos_bit(text: &[u8]) -> Result<bool, ValueError> {
    match crate::integer::parse_i64(text) {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        Some(_) => Err(ValueError::BitArgument),
        None => Err(ValueError::NotInteger),
    }
}

/// The first and last bit (inclusive) that two indexes name; nothing if they name none. Like `GETRANGE`, an end
/// before the string is pulled up to its first byte or bit.
fn bit_span(len: usize, start: i64, end: i64, unit: BitUnit) -> Option<(u64, u64)> {
    let total = match unit {
        BitUnit::Byte => len as i64,
        BitUnit::Bit => len as i64 * 8,
    };
    let from_front = |index: i64| {
        if index < 0 {
            index.saturating_add(total).max(0)
        } else {
            index
        }
    };
    let (start, end) = (from_front(start), from_front(end).min(total - 1));
    if start > end {
        return None;
    }
    Some(match unit {
        BitUnit::Byte => (start as u64 * 8, end as u64 * 8 + 7),
        BitUnit::Bit => (start as u64, end as u64),
    })
}

/// The first bit of this value between two existing bits, both inclusive.
fn find_bit(data: &[u8], bit: bool, first: u64, last: u64) -> Option<u64> {
    let flip = if bit { 0 } else { u64::MAX };
    for word in first / 64..=last / 64 {
        let from = (word * 8) as usize;
        let until = data.len().min(from + 8);
        let mut wanted = load_be(&data[from..until]) ^ flip;
        if word == first / 64 {
            wanted &= u64::MAX >> (first % 64);
        }
        if word == last / 64 {
            wanted &= u64::MAX << (63 - last % 64);
        }
        if wanted != 0 {
            return Some(word * 64 + u64::from(wanted.leading_zeros()));
        }
    }
    None
}

/// Up to eight bytes as the upper end of a word, zeros below.
fn load_be(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(word) => u64::from_be_bytes(word),
        Err(_) => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        }
    }
}

/// Combines strings; the result is as long as the longest, the shorter ones count as padded with zeros. Absent keys
/// are empty strings.
///
/// The loops go over bytes because the compiler turns exactly this form into vector instructions.
pub fn bitop(op: BitOp, sources: &[&[u8]]) -> Result<Vec<u8>, ValueError> {
    if op == BitOp::Not {
        return match sources {
            [source] => Ok(source.iter().map(|byte| !byte).collect()),
            _ => Err(ValueError::BitNotSources),
        };
    }
    let Some((first, rest)) = sources.split_first() else {
        return Ok(Vec::new());
    };
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut result = Vec::with_capacity(len);
    result.extend_from_slice(first);
    result.resize(len, 0);
    for source in rest {
        let (common, beyond) = result.split_at_mut(source.len());
        let pairs = common.iter_mut().zip(*source);
        match op {
            BitOp::And => {
                pairs.for_each(|(into, byte)| *into &= byte);
                beyond.fill(0);
            }
            BitOp::Or => pairs.for_each(|(into, byte)| *into |= byte),
            BitOp::Xor | BitOp::Not => pairs.for_each(|(into, byte)| *into ^= byte),
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_MAX_BULK_LEN as MAX;
    use proptest::prelude::*;

    #[test]
    fn offsets() {
        let check = |text: &str, width, expected: Option<u64>| {
            assert_eq!(
                parse_bit_offset(text.as_bytes(), width, MAX).ok(),
                expected,
                "{text}"
            );
        };
        check("0", None, Some(0));
        check("4294967295", None, Some(4294967295));
        check("4294967296", None, None);
        check("-1", None, None);
        check("#1", None, None);
        check("#3", Some(8), Some(24));
        check("#-1", Some(8), None);
        check("#9223372036854775807", Some(8), None);
        check("x", Some(8), None);
    }

    #[test]
    fn bits_of_a_string() {
        let mut data = vec![0b0100_0000, 0];
        assert!(getbit(&data, 1));
        assert!(!getbit(&data, 0));
        assert!(!getbit(&data, u64::MAX));
        assert!(!setbit(&mut data, 15, true));
        assert!(setbit(&mut data, 1, false));
        assert_eq!(data, [0, 1]);
        assert_eq!(bytes_to_hold(7), 1);
        assert_eq!(bytes_to_hold(8), 2);
        assert_eq!(parse_bit(b"2"), Err(ValueError::BitValue));
        assert_eq!(parse_bitpos_bit(b"2"), Err(ValueError::BitArgument));
        assert_eq!(parse_bitpos_bit(b"x"), Err(ValueError::NotInteger));
    }

    #[test]
    fn counting() {
        let check = |start, end, unit, expected| {
            assert_eq!(
                bitcount_range(b"foobar", start, end, unit),
                expected,
                "{start} {end} {unit:?}"
            );
        };
        assert_eq!(bitcount(b"foobar"), 26);
        check(0, 0, BitUnit::Byte, 4);
        check(1, 1, BitUnit::Byte, 6);
        check(1, 1, BitUnit::Bit, 1);
        check(5, 30, BitUnit::Bit, 17);
        check(0, -100, BitUnit::Byte, 4);
        check(-1, -2, BitUnit::Byte, 0);
        check(6, 9, BitUnit::Byte, 0);
        check(i64::MIN, i64::MAX, BitUnit::Bit, 26);
        assert_eq!(bitcount_range(b"", 0, -1, BitUnit::Byte), 0);
    }

    #[test]
    fn finding() {
        let check = |data: &[u8], bit, start, end, unit, expected| {
            assert_eq!(
                bitpos(data, bit, start, end, unit),
                expected,
                "{data:?} {bit} {start} {end:?}"
            );
        };
        check(b"\xff\xf0\x00", false, 0, None, BitUnit::Byte, 12);
        check(b"\x00\xff\xf0", true, 0, None, BitUnit::Byte, 8);
        check(b"\x00\xff\xf0", true, 2, None, BitUnit::Byte, 16);
        check(b"\x00\xff\xf0", true, 2, Some(-1), BitUnit::Byte, 16);
        check(b"\x00\xff\xf0", true, 7, Some(15), BitUnit::Bit, 8);
        check(b"\x00\xff\xf0", false, 8, Some(15), BitUnit::Bit, -1);
        check(b"\xff\xff\xff", false, 0, None, BitUnit::Byte, 24);
        check(b"\xff\xff\xff", false, 0, Some(-1), BitUnit::Byte, -1);
        check(b"\xff\xff\xff", false, 3, None, BitUnit::Byte, -1);
        check(b"\x00\x00", true, 0, None, BitUnit::Byte, -1);
        check(b"", false, 0, None, BitUnit::Byte, -1);
        assert_eq!((bitpos_absent(false), bitpos_absent(true)), (0, -1));
    }

    #[test]
    fn combining() {
        let check = |op, sources: &[&[u8]], expected: &[u8]| {
            assert_eq!(bitop(op, sources).as_deref(), Ok(expected))
        };
        check(BitOp::And, &[b"\xff\x0f\xff", b"\xf0\xff"], b"\xf0\x0f\x00");
        check(BitOp::Or, &[b"\x01", b"", b"\x02\x03"], b"\x03\x03");
        check(BitOp::Xor, &[b"\x01\x01", b"\x01"], b"\x00\x01");
        check(BitOp::Not, &[b"\x00\xf0"], b"\xff\x0f");
        check(BitOp::And, &[b"", b""], b"");
        check(BitOp::Or, &[], b"");
        assert_eq!(
            bitop(BitOp::Not, &[b"a", b"b"]),
            Err(ValueError::BitNotSources)
        );
    }

    fn unit() -> impl Strategy<Value = BitUnit> {
        prop_oneof![Just(BitUnit::Byte), Just(BitUnit::Bit)]
    }

    /// Mostly runs of equal bytes, so that searches go far.
    fn data() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(
            prop_oneof![4 => Just(0u8), 4 => Just(0xffu8), 1 => any::<u8>()],
            0..40,
        )
    }

    /// The bits which the indexes name, one by one.
    fn named(data: &[u8], start: i64, end: i64, unit: BitUnit) -> Vec<u64> {
        let per_index = if unit == BitUnit::Byte { 8 } else { 1 };
        let total = data.len() as i64 * 8 / per_index;
        let place = |index: i64| {
            if index < 0 {
                (index + total).max(0)
            } else {
                index
            }
        };
        let inside = place(start)..=place(end);
        (0..data.len() as u64 * 8)
            .filter(|&bit| inside.contains(&(bit as i64 / per_index)))
            .collect()
    }

    proptest! {
        #[test]
        fn counts_each_bit(data in data(), start in -350i64..350, end in -350i64..350, unit in unit()) {
            prop_assume!(!(start < 0 && end < 0 && start > end));
            let expected = named(&data, start, end, unit).into_iter().filter(|&bit| getbit(&data, bit)).count();
            prop_assert_eq!(bitcount_range(&data, start, end, unit), expected as u64);
            prop_assert_eq!(bitcount(&data), (0..data.len() as u64 * 8).filter(|&bit| getbit(&data, bit)).count() as u64);
        }

        #[test]
        fn finds_the_first(data in data(), bit: bool, start in -350i64..350, end in -350i64..350, unit in unit()) {
            let found = named(&data, start, end, unit).into_iter().find(|&at| getbit(&data, at) == bit);
            prop_assert_eq!(bitpos(&data, bit, start, Some(end), unit), found.map_or(-1, |at| at as i64));
        }

        #[test]
        fn combines_each_byte(sources in proptest::collection::vec(data(), 1..5)) {
            let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let len = sources.iter().map(Vec::len).max().unwrap_or(0);
            let fold = |combine: fn(u8, u8) -> u8| -> Vec<u8> {
                let column = |i: usize| sources.iter().map(move |source| source.get(i).copied().unwrap_or(0));
                (0..len).map(|i| column(i).reduce(combine).unwrap_or(0)).collect()
            };
            prop_assert_eq!(bitop(BitOp::And, &slices), Ok(fold(|a, b| a & b)));
            prop_assert_eq!(bitop(BitOp::Or, &slices), Ok(fold(|a, b| a | b)));
            prop_assert_eq!(bitop(BitOp::Xor, &slices), Ok(fold(|a, b| a ^ b)));
        }
    }
}
