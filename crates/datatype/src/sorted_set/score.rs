//! Scores as numbers and as bytes, both in the order of scores.
//!
//! A score's *rank* is a number: its bits, turned so that greater scores have greater ranks. Items begin with it in
//! a shorter form, as most scores are integers or have few digits:
//!
//! ```text
//! 80                    0
//! 82..fd  2 to 7 bytes  exponents -61 to 62; the mantissa's bits, as many as it needs
//! 81 | fe  8 bytes      other exponents; the rank's low 63 bits
//! ```
//!
//! The mantissa's 52 bits come 15, 15, 15 and 7 at a time. Each 15 end with a bit that says whether any of the rest
//! are not zero; if not, nothing follows. The first byte of the last 7 ends with a zero. Below zero, all bits of the
//! form are turned. So integers below 2^16 take 3 bytes, below 2^31 (and floats of 4 bytes) 5, below 2^46 7.
//!
//! Forms have the order of their ranks, and none is the beginning of another.

/// The longest form.
pub(super) const SHORT_BYTES: usize = 9;

const ZERO: u8 = 0x80;
/// The first byte of the least exponent, and that exponent as doubles have it.
const FIRST: u8 = 0x82;
const LEAST: u64 = 1023 - 61;
const GREATEST: u64 = 1023 + 62;
const TINY: u8 = 0x81;
const HUGE: u8 = 0xFE;

const SIGN: u64 = 1 << 63;
/// In a form of up to eight bytes: whether more bits follow after the first 15, 30 and 45.
const MORE: [u64; 3] = [1 << 40, 1 << 24, 1 << 8];

/// A number that is less where the score is. The two zeros are one.
#[inline]
pub(crate) fn rank_of(score: f64) -> u64 {
    // Makes -0.0 a positive zero and leaves all others as they are.
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | SIGN }
}

/// The score of a number that [`rank_of`] gave.
#[inline]
pub(super) fn score_of(rank: u64) -> f64 {
    f64::from_bits(if rank >> 63 == 1 { rank & !SIGN } else { !rank })
}

/// Whether [`rank_of`] gives this number for some score.
pub(super) fn is_rank(rank: u64) -> bool {
    let score = score_of(rank);
    !score.is_nan() && rank_of(score) == rank
}

/// All ones below zero, where bits are turned.
#[inline]
fn turn(is_negative: bool) -> u64 {
    0_u64.wrapping_sub(u64::from(is_negative))
}

/// The short form of any rank, also of one that no score has, and how many of the bytes it takes.
#[inline]
pub(super) fn write_score(rank: u64) -> ([u8; SHORT_BYTES], usize) {
    let turn = turn(rank < SIGN);
    let bits = (rank ^ turn) & !SIGN;
    let (exponent, mantissa) = (bits >> 52, bits & ((1 << 52) - 1));
    let mut form = [0; SHORT_BYTES];
    if !(LEAST..=GREATEST).contains(&exponent) {
        form[0] = match bits {
            0 => ZERO,
            _ if exponent < LEAST => TINY,
            _ => HUGE,
        } ^ turn as u8;
        form[1..].copy_from_slice(&(bits ^ turn).to_be_bytes());
        return (form, if bits == 0 { 1 } else { SHORT_BYTES });
    }
    let mut word = (exponent - LEAST + u64::from(FIRST)) << 56
        | mantissa >> 37 << 41
        | (mantissa >> 22 & 0x7FFF) << 25
        | (mantissa >> 7 & 0x7FFF) << 9
        | (mantissa & 0x7F) << 1;
    let mut len = 3;
    for (more, (left, longer)) in MORE.into_iter().zip([(37, 5), (22, 7), (7, 8)]) {
        if mantissa & ((1 << left) - 1) != 0 {
            word |= more;
            len = longer;
        }
    }
    form[..8].copy_from_slice(&(word ^ turn).to_be_bytes());
    (form, len)
}

/// The first eight bytes of an item, with zeros where there are fewer: where they differ, items do.
#[inline]
pub(super) fn word_of(item: &[u8]) -> u64 {
    match item.first_chunk() {
        Some(&first) => u64::from_be_bytes(first),
        None => padded(item),
    }
}

#[cold]
fn padded(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    first[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(first)
}

/// The word of a form with its bits turned back, and what turned them.
#[inline]
fn straight(item: &[u8]) -> (u64, u64) {
    let word = word_of(item);
    let turn = turn(word < SIGN);
    (word ^ turn, turn)
}

/// How many bytes a form takes that begins with this word.
#[inline]
fn len_of(word: u64) -> usize {
    match (word >> 56) as u8 {
        ZERO => 1,
        FIRST..=0xFD if word & MORE[0] == 0 => 3,
        FIRST..=0xFD if word & MORE[1] == 0 => 5,
        FIRST..=0xFD if word & MORE[2] == 0 => 7,
        FIRST..=0xFD => 8,
        _ => SHORT_BYTES,
    }
}

/// How many bytes of an item are its score's.
#[inline]
pub(super) fn score_len(item: &[u8]) -> usize {
    len_of(straight(item).0)
}

/// The rank of the score that an item begins with.
#[inline]
pub(super) fn item_rank(item: &[u8]) -> u64 {
    let (word, turn) = straight(item);
    let len = len_of(word);
    let bits = if len == SHORT_BYTES {
        (word_of(item.get(1..).unwrap_or_default()) ^ turn) & !SIGN
    } else if len == 1 {
        0
    } else {
        let word = word & u64::MAX << (8 * (8 - len));
        let exponent = (word >> 56) - u64::from(FIRST) + LEAST;
        exponent << 52
            | (word >> 41 & 0x7FFF) << 37
            | (word >> 25 & 0x7FFF) << 22
            | (word >> 9 & 0x7FFF) << 7
            | (word & 0xFF) >> 1
    };
    (bits | SIGN) ^ turn
}

/// Score and member of an item.
#[inline]
pub(crate) fn parts(item: &[u8]) -> (f64, &[u8]) {
    (score_of(item_rank(item)), member_of(item))
}

#[inline]
pub(super) fn member_of(item: &[u8]) -> &[u8] {
    item.get(score_len(item)..).unwrap_or_default()
}

/// Whether foreign bytes are an item: a score in its one form, and a member.
pub(super) fn is_item(item: &[u8]) -> bool {
    let rank = item_rank(item);
    let (form, len) = write_score(rank);
    is_rank(rank) && item.starts_with(&form[..len])
}

/// Ranks whole, as tables have them.
#[inline]
pub(super) fn whole(rank: u64) -> [u8; 8] {
    rank.to_be_bytes()
}

/// The rank in what [`whole`] gave.
#[inline]
pub(super) fn whole_rank(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |&b| u64::from_be_bytes(b))
}

/// The score in what a large set's table has for a member.
pub(crate) fn kept_score(bytes: &[u8]) -> f64 {
    score_of(whole_rank(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    fn form(score: f64) -> Vec<u8> {
        let (form, len) = write_score(rank_of(score));
        form[..len].to_vec()
    }

    #[test]
    fn forms_are_what_the_documentation_says() {
        assert_eq!(form(0.0), [0x80]);
        assert_eq!(form(-0.0), [0x80]);
        assert_eq!(form(1.5), [0xbf, 0x80, 0]);
        assert_eq!(form(-1.5), [0x40, 0x7f, 0xff]);
        assert_eq!(form(999_999_937.0), [0xdc, 0xdc, 0xd7, 0x27, 0x04]);
        assert_eq!(form(f64::INFINITY), [0xfe, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0]);
        let long = |score: f64| form(score).len();
        assert_eq!([1.0, 65_535.0, 65_536.0, -65_535.0].map(long), [3; 4]);
        assert_eq!(
            [65_537.0, 2_147_483_647.0, f64::from(0.1_f32)].map(long),
            [5; 3]
        );
        assert_eq!([2_147_483_649.0, 10_000_000_000_001.0].map(long), [7; 2]);
        assert_eq!([0.1, 9_007_199_254_740_991.0].map(long), [8; 2]);
        assert_eq!([1e300, -1e-300].map(long), [9; 2]);
    }

    fn some() -> impl proptest::strategy::Strategy<Value = u64> {
        use proptest::strategy::Strategy;
        prop_oneof![
            any::<u64>(),
            any::<i64>().prop_map(|n| rank_of(n as f64)),
            any::<i16>().prop_map(|n| rank_of(f64::from(n) / 8.0)),
            any::<f32>().prop_map(|n| rank_of(f64::from(n))),
            (0_i64..5).prop_map(|n| (rank_of(0.0) as i64).wrapping_add(n - 2) as u64),
            (0_u64..4).prop_map(|n| n.wrapping_sub(2)),
        ]
    }

    proptest! {
        #[test]
        fn forms_have_the_order_of_ranks(a in some(), b in some(), x in any::<[u8; 3]>(), y in any::<[u8; 3]>()) {
            let item = |rank, member: &[u8]| {
                let (form, len) = write_score(rank);
                [&form[..len], member].concat()
            };
            let (one, other) = (item(a, &x), item(b, &y));
            prop_assert_eq!(one.cmp(&other), (a, x).cmp(&(b, y)));
            for item in [&one[..], &one[..one.len() - 3]] {
                prop_assert_eq!(item_rank(item), a);
                prop_assert_eq!(is_item(item), is_rank(a));
            }
            prop_assert_eq!(member_of(&one), &x);
        }

        #[test]
        fn foreign_bytes_are_refused_or_the_one_form(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let (rank, member) = (item_rank(&bytes), member_of(&bytes));
            if is_item(&bytes) {
                let (form, len) = write_score(rank);
                prop_assert!(bytes == [&form[..len], member].concat());
            }
        }
    }
}
