//! `BITFIELD`: signed and unsigned integers of any width up to 64 bits, at any bit offset of a string.

use crate::ValueError;
use crate::bits::bytes_to_hold;

/// An integer type: `i1` to `i64`, `u1` to `u63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitfieldType {
    signed: bool,
    width: u32,
}

/// What to do with a result that the type cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitfieldOverflow {
    /// Keep the lower bits.
    #[default]
    Wrap,
    /// Take the nearest number that the type holds.
    Saturate,
    /// Write nothing and reply nil.
    Fail,
}

/// What to do with one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitfieldAction {
    Get,
    /// Replies the old value.
    Set(i64),
    /// Replies the new value.
    IncrementBy(i64),
}

/// One operation of a `BITFIELD` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitfieldOp {
    pub field: BitfieldType,
    /// In bits, see [`crate::bits::parse_bit_offset`].
    pub offset: u64,
    pub action: BitfieldAction,
    pub overflow: BitfieldOverflow,
}

impl BitfieldType {
    /// Parses `i16`, `u8` and the like.
    pub fn parse(text: &[u8]) -> Result<Self, ValueError> {
        let (signed, digits, max_width) = match text {
            [b'i', digits @ ..] => (true, digits, 64),
            [b'u', digits @ ..] => (false, digits, 63),
            _ => return Err(ValueError::BitfieldType),
        };
        match crate::integer::parse_i64(digits) {
            Some(width) if (1..=max_width).contains(&width) => Ok(Self {
                signed,
                width: width as u32,
            }),
            _ => Err(ValueError::BitfieldType),
        }
    }

    pub fn signed(self) -> bool {
        self.signed
    }

    /// In bits.
    pub fn width(self) -> u32 {
        self.width
    }

    fn min(self) -> i128 {
        if self.signed {
            -(1 << (self.width - 1))
        } else {
            0
        }
    }

    fn max(self) -> i128 {
        if self.signed {
            (1 << (self.width - 1)) - 1
        } else {
            (1 << self.width) - 1
        }
    }

    /// The number that the lower bits of `raw` mean.
    fn decode(self, raw: u64) -> i64 {
        let unused = 64 - self.width;
        if self.signed {
            ((raw << unused) as i64) >> unused
        } else {
            (raw << unused >> unused) as i64
        }
    }

    /// The argument of a `SET`, as Redis judges whether it fits.
    ///
    /// For an unsigned field a negative number is a huge one. For a signed field Redis computes how far the number
    /// lies below the maximum in 64 bits, so that one too far below counts as above: saturating makes it the maximum.
    fn as_redis_sees(self, value: i64) -> i128 {
        let exact = i128::from(value);
        let below_max = self.max() - exact;
        let wrapped = !self.signed || self.width < 64 && below_max > i128::from(i64::MAX);
        if wrapped {
            i128::from(value as u64)
        } else {
            exact
        }
    }

    /// Fits an exact result into the type; nothing if it does not fit and must not be made to.
    fn fit(self, exact: i128, overflow: BitfieldOverflow) -> Option<i64> {
        if (self.min()..=self.max()).contains(&exact) {
            return Some(exact as i64);
        }
        match overflow {
            BitfieldOverflow::Wrap => Some(self.decode(exact as u64)),
            BitfieldOverflow::Saturate => Some(exact.clamp(self.min(), self.max()) as i64),
            BitfieldOverflow::Fail => None,
        }
    }
}

impl BitfieldOverflow {
    /// Parses the argument of `OVERFLOW`, in any case.
    pub fn parse(text: &[u8]) -> Result<Self, ValueError> {
        match text.to_ascii_lowercase().as_slice() {
            b"wrap" => Ok(Self::Wrap),
            b"sat" => Ok(Self::Saturate),
            b"fail" => Ok(Self::Fail),
            _ => Err(ValueError::BitfieldOverflow),
        }
    }
}

impl BitfieldOp {
    pub fn is_write(&self) -> bool {
        self.action != BitfieldAction::Get
    }

    /// How many bytes the string must have for this operation. Redis grows it even for a write that then fails.
    pub fn required_len(&self) -> u64 {
        if self.is_write() {
            bytes_to_hold(self.offset.saturating_add(u64::from(self.field.width) - 1))
        } else {
            0
        }
    }

    /// Performs the operation; the reply is nil for a write that overflowed under [`BitfieldOverflow::Fail`].
    ///
    /// # Panics
    /// If `data` is shorter than [`required_len`](Self::required_len): growing the string is the caller's part.
    pub fn apply(&self, data: &mut [u8]) -> Option<i64> {
        let old = get(data, self.field, self.offset);
        let new = self.outcome(old)?;
        if self.is_write() {
            set(data, self.field, self.offset, new);
        }
        Some(match self.action {
            BitfieldAction::Set(_) => old,
            BitfieldAction::Get | BitfieldAction::IncrementBy(_) => new,
        })
    }

    /// The reply, if the operation would leave `data` as it is.
    pub fn reply_without_change(&self, data: &[u8]) -> Option<Option<i64>> {
        if self.required_len() > data.len() as u64 {
            return None;
        }
        let old = get(data, self.field, self.offset);
        match self.outcome(old) {
            Some(new) if new != old => None,
            same_or_failed => Some(same_or_failed),
        }
    }

    /// What the field holds after the operation; `None` for one that fails.
    fn outcome(&self, old: i64) -> Option<i64> {
        let new = match self.action {
            BitfieldAction::Get => return Some(old),
            BitfieldAction::Set(value) => self.field.as_redis_sees(value),
            BitfieldAction::IncrementBy(by) => i128::from(old) + i128::from(by),
        };
        self.field.fit(new, self.overflow)
    }
}

/// Reads a field; bits beyond the end are 0.
pub fn get(data: &[u8], field: BitfieldType, offset: u64) -> i64 {
    let window = Window::new(field, offset);
    let bytes = window.bytes.clone().map(|index| {
        let byte = usize::try_from(index)
            .ok()
            .and_then(|index| data.get(index));
        byte.copied().unwrap_or(0)
    });
    let value = bytes.fold(0u128, |value, byte| value << 8 | u128::from(byte));
    field.decode((value >> window.below) as u64)
}

/// Overwrites a field with the lower bits of `value`.
///
/// # Panics
/// If `data` does not hold the whole field.
pub fn set(data: &mut [u8], field: BitfieldType, offset: u64, value: i64) {
    let window = Window::new(field, offset);
    let mask = (u128::MAX >> (128 - field.width)) << window.below;
    let value = (u128::from(value as u64) << window.below) & mask;
    let bytes = &mut data[window.bytes.start as usize..window.bytes.end as usize];
    for (index, byte) in bytes.iter_mut().rev().enumerate() {
        let (mask, value) = ((mask >> (8 * index)) as u8, (value >> (8 * index)) as u8);
        *byte = *byte & !mask | value;
    }
}

/// The bytes that a field touches, at most nine, and how many bits of the last one lie below it.
struct Window {
    bytes: std::ops::Range<u64>,
    below: u32,
}

impl Window {
    fn new(field: BitfieldType, offset: u64) -> Self {
        let last = offset.saturating_add(u64::from(field.width) - 1);
        Self {
            bytes: offset / 8..last / 8 + 1,
            below: 7 - (last % 8) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{getbit, setbit};
    use proptest::prelude::*;

    fn op(
        field: &str,
        offset: u64,
        action: BitfieldAction,
        overflow: BitfieldOverflow,
    ) -> BitfieldOp {
        let field = BitfieldType::parse(field.as_bytes()).unwrap();
        BitfieldOp {
            field,
            offset,
            action,
            overflow,
        }
    }

    #[test]
    fn types() {
        for good in ["i1", "i64", "u1", "u63"] {
            assert!(BitfieldType::parse(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in [
            "", "i", "i0", "i65", "u0", "u64", "u08", "x8", "I8", "u-1", "8",
        ] {
            assert_eq!(
                BitfieldType::parse(bad.as_bytes()),
                Err(ValueError::BitfieldType),
                "{bad}"
            );
        }
        assert_eq!(
            BitfieldOverflow::parse(b"SAT"),
            Ok(BitfieldOverflow::Saturate)
        );
        assert_eq!(
            BitfieldOverflow::parse(b"foo"),
            Err(ValueError::BitfieldOverflow)
        );
    }

    /// Runs `action` on a field that holds `old`; `expected` are reply and
    /// stored value for wrap, saturate and fail.
    #[track_caller]
    fn check(field: &str, old: i64, action: BitfieldAction, expected: [(Option<i64>, i64); 3]) {
        use BitfieldOverflow::*;
        for (overflow, (reply, stored)) in [Wrap, Saturate, Fail].into_iter().zip(expected) {
            let op = op(field, 5, action, overflow);
            let mut data = vec![0; 9];
            set(&mut data, op.field, 5, old);
            assert_eq!(op.apply(&mut data), reply, "{op:?}");
            assert_eq!(get(&data, op.field, 5), stored, "{op:?}");
        }
    }

    #[test]
    fn overflow_of_small_fields() {
        use BitfieldAction::*;
        check(
            "u8",
            250,
            IncrementBy(10),
            [(Some(4), 4), (Some(255), 255), (None, 250)],
        );
        check(
            "u8",
            5,
            IncrementBy(-10),
            [(Some(251), 251), (Some(0), 0), (None, 5)],
        );
        check(
            "i8",
            120,
            IncrementBy(10),
            [(Some(-126), -126), (Some(127), 127), (None, 120)],
        );
        check(
            "i8",
            -120,
            IncrementBy(-10),
            [(Some(126), 126), (Some(-128), -128), (None, -120)],
        );
        check(
            "u8",
            7,
            Set(-1),
            [(Some(7), 255), (Some(7), 255), (None, 7)],
        );
        check("u8", 7, Set(257), [(Some(7), 1), (Some(7), 255), (None, 7)]);
        check(
            "i8",
            7,
            Set(-200),
            [(Some(7), 56), (Some(7), -128), (None, 7)],
        );
    }

    #[test]
    fn overflow_at_the_limits() {
        use BitfieldAction::*;
        check(
            "i64",
            i64::MAX,
            IncrementBy(1),
            [
                (Some(i64::MIN), i64::MIN),
                (Some(i64::MAX), i64::MAX),
                (None, i64::MAX),
            ],
        );
        check(
            "u63",
            i64::MAX,
            IncrementBy(1),
            [(Some(0), 0), (Some(i64::MAX), i64::MAX), (None, i64::MAX)],
        );
        check(
            "u63",
            0,
            Set(i64::MIN),
            [(Some(0), 0), (Some(0), i64::MAX), (None, 0)],
        );
        check(
            "i8",
            7,
            Set(i64::MIN + 127),
            [(Some(7), 127), (Some(7), 127), (None, 7)],
        );
        check(
            "i8",
            7,
            Set(i64::MIN + 128),
            [(Some(7), -128), (Some(7), -128), (None, 7)],
        );
        check("i1", 0, Set(1), [(Some(0), -1), (Some(0), 0), (None, 0)]);
        check("u8", 200, Get, [(Some(200), 200); 3]);
    }

    #[test]
    fn reading_beyond_the_end() {
        let field = BitfieldType::parse(b"u16").unwrap();
        assert_eq!(get(b"\xff", field, 0), 0xff00);
        assert_eq!(get(b"\xff", field, 1 << 40), 0);
        assert_eq!(get(b"", field, u64::MAX - 3), 0);
        assert_eq!(
            op("i64", 7, BitfieldAction::Set(1), BitfieldOverflow::Wrap).required_len(),
            9
        );
        assert_eq!(
            op("i64", 7, BitfieldAction::Get, BitfieldOverflow::Wrap).required_len(),
            0
        );
    }

    proptest! {
        #[test]
        fn fields_are_their_bits(
            mut data in proptest::collection::vec(any::<u8>(), 24),
            (signed, width) in (any::<bool>(), 1u32..=63),
            offset in 0u64..128,
            value: i64,
        ) {
            let field = BitfieldType { signed, width };
            let mut expected = data.clone();
            for bit in 0..u64::from(width) {
                setbit(&mut expected, offset + bit, value >> (u64::from(width) - 1 - bit) & 1 == 1);
            }
            set(&mut data, field, offset, value);
            prop_assert_eq!(&data, &expected);
            let raw = (0..u64::from(width)).fold(0i128, |raw, bit| raw << 1 | i128::from(getbit(&data, offset + bit)));
            let negative = signed && getbit(&data, offset);
            prop_assert_eq!(i128::from(get(&data, field, offset)), if negative { raw - (1 << width) } else { raw });
        }
    }
}
