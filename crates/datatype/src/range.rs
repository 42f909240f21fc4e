//! Which part of a sequence two indexes name, with Redis's treatment of negative and out-of-range indexes.

use std::ops::Range;

use crate::ValueError;

/// Moves a negative index, which counts from the end, to the front. Lengths never exceed `i64::MAX`.
fn from_front(index: i64, len: usize) -> i64 {
    if index < 0 {
        index.saturating_add_unsigned(len as u64)
    } else {
        index
    }
}

/// The bytes that `GETRANGE` (both ends inclusive) names in a string of `len` bytes.
///
/// Unlike with lists, an end before the first byte is pulled up to it: `GETRANGE abc 0 -100` is `a`. The exception is
/// a pair of negative indexes in the wrong order, which is empty.
pub fn string_range(start: i64, end: i64, len: usize) -> Range<usize> {
    if len == 0 || (start < 0 && end < 0 && start > end) {
        return 0..0;
    }
    let start = from_front(start, len).max(0) as usize;
    let end = (from_front(end, len).max(0) as usize).min(len - 1);
    if start > end { 0..0 } else { start..end + 1 }
}

/// The elements that `LRANGE`, `LTRIM` or `ZRANGE` by index (both ends inclusive) names among `len`.
pub fn list_range(start: i64, end: i64, len: usize) -> Range<usize> {
    let start = from_front(start, len).max(0);
    let end = from_front(end, len);
    if start > end || start as u64 >= len as u64 {
        return 0..0;
    }
    start as usize..(end as usize).min(len - 1) + 1
}

/// Whether a string of `len` bytes may grow by `added`, as `APPEND` and `SETRANGE` ask.
pub fn check_string_len(len: u64, added: u64, max_len: u64) -> Result<(), ValueError> {
    match len.checked_add(added) {
        Some(total) if total <= max_len => Ok(()),
        _ => Err(ValueError::StringTooLong),
    }
}

/// Where `SETRANGE` writes `added` bytes, after its limits were checked. Nothing is written if `added` is 0, and then
/// only a negative offset is refused.
pub fn setrange_offset(offset: i64, added: usize, max_len: u64) -> Result<usize, ValueError> {
    let offset = u64::try_from(offset).map_err(|_| ValueError::OffsetOutOfRange)?;
    if added > 0 {
        check_string_len(offset, added as u64, max_len)?;
    }
    usize::try_from(offset).map_err(|_| ValueError::StringTooLong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_MAX_BULK_LEN as MAX;
    use proptest::prelude::*;

    #[test]
    fn strings() {
        let check = |start, end, expected: &str| {
            assert_eq!(
                &"abc"[string_range(start, end, 3)],
                expected,
                "{start} {end}"
            );
        };
        check(0, -1, "abc");
        check(-3, -2, "ab");
        check(-100, -1, "abc");
        check(0, -100, "a");
        check(-200, -100, "a");
        check(-100, -200, "");
        check(2, 1, "");
        check(5, 6, "");
        check(1, i64::MAX, "bc");
        check(i64::MIN, i64::MIN, "a");
        assert_eq!(string_range(0, -1, 0), 0..0);
    }

    #[test]
    fn lists() {
        let check = |start, end, expected: Range<usize>| {
            assert_eq!(list_range(start, end, 3), expected, "{start} {end}");
        };
        check(0, -1, 0..3);
        check(-100, 100, 0..3);
        check(-2, -1, 1..3);
        check(0, -100, 0..0);
        check(0, -4, 0..0);
        check(3, 5, 0..0);
        check(2, 1, 0..0);
        check(i64::MIN, i64::MAX, 0..3);
        assert_eq!(list_range(0, -1, 0), 0..0);
    }

    #[test]
    fn limits() {
        assert_eq!(
            setrange_offset(-1, 0, MAX),
            Err(ValueError::OffsetOutOfRange)
        );
        assert_eq!(
            setrange_offset(i64::MAX, 1, MAX),
            Err(ValueError::StringTooLong)
        );
        assert_eq!(setrange_offset(536870911, 1, MAX), Ok(536870911));
        assert_eq!(
            setrange_offset(536870912, 1, MAX),
            Err(ValueError::StringTooLong)
        );
        assert_eq!(setrange_offset(536870912, 0, MAX), Ok(536870912));
        assert_eq!(
            check_string_len(u64::MAX, 1, u64::MAX),
            Err(ValueError::StringTooLong)
        );
    }

    proptest! {
        #[test]
        fn a_list_range_holds_the_indexes_between(start in -8i64..8, end in -8i64..8, len in 0usize..6) {
            let place = |index: i64| if index < 0 { index + len as i64 } else { index };
            let expected: Vec<usize> =
                (0..len).filter(|&i| (place(start)..=place(end)).contains(&(i as i64))).collect();
            prop_assert_eq!(list_range(start, end, len).collect::<Vec<_>>(), expected);
        }
    }
}
