//! The longest common subsequence of two strings: the string itself, its length, or the ranges that match.
//!
//! Redis fills a table of 32-bit lengths. Only the differences between neighbours in a row matter, and they are 0 or
//! 1, so here a cell is one bit, 64 cells are one addition (Hyyrö, "Bit-parallel LCS-length computation revisited",
//! 2004), and the table is 1/32 of Redis's; for the length alone there is none. Inputs are refused by the size that
//! Redis's table would have, so that the answers agree.

use crate::ValueError;

/// One run of bytes that both strings share; all bounds inclusive, as in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcsMatch {
    /// First and last byte in the first string.
    pub a: (usize, usize),
    /// First and last byte in the second string.
    pub b: (usize, usize),
}

impl LcsMatch {
    /// The number that `WITHMATCHLEN` adds.
    pub fn match_len(&self) -> usize {
        self.a.1 - self.a.0 + 1
    }
}

/// The reply of `LCS … IDX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LcsIndex {
    /// From the last match to the first.
    pub matches: Vec<LcsMatch>,
    /// Length of the whole subsequence, whatever the least match length.
    pub len: usize,
}

/// `LCS a b LEN`
pub fn lcs_len(a: &[u8], b: &[u8], max_bulk_len: u64) -> Result<usize, ValueError> {
    check_size(a, b, max_bulk_len)?;
    Ok(fill(a, b, |_, _| ()))
}

/// `LCS a b`: the subsequence itself.
pub fn lcs(a: &[u8], b: &[u8], max_bulk_len: u64) -> Result<Vec<u8>, ValueError> {
    check_size(a, b, max_bulk_len)?;
    let (table, len) = Table::new(a, b);
    let mut result = Vec::with_capacity(len);
    table.trace(a, b, |i, _| result.push(a[i]));
    result.reverse();
    Ok(result)
}

/// `LCS a b IDX`, leaving out matches shorter than `min_match_len` (negative means 0).
pub fn lcs_index(
    a: &[u8],
    b: &[u8],
    min_match_len: i64,
    max_bulk_len: u64,
) -> Result<LcsIndex, ValueError> {
    check_size(a, b, max_bulk_len)?;
    let (table, len) = Table::new(a, b);
    let mut matches: Vec<LcsMatch> = Vec::new();
    let long_enough = |found: &LcsMatch| found.match_len() as i64 >= min_match_len;
    table.trace(a, b, |i, j| match matches.last_mut() {
        Some(last) if last.a.0 == i + 1 && last.b.0 == j + 1 => {
            last.a.0 = i;
            last.b.0 = j;
        }
        last => {
            if last.is_some_and(|last| !long_enough(last)) {
                matches.pop();
            }
            matches.push(LcsMatch {
                a: (i, i),
                b: (j, j),
            });
        }
    });
    if matches.last().is_some_and(|last| !long_enough(last)) {
        matches.pop();
    }
    Ok(LcsIndex { matches, len })
}

/// Refuses what Redis refuses: its table has a row and a column more than the strings have bytes, four bytes a cell.
fn check_size(a: &[u8], b: &[u8], max_bulk_len: u64) -> Result<(), ValueError> {
    let longest = a.len().max(b.len()) as u64;
    if longest >= u64::from(u32::MAX) - 1 {
        return Err(ValueError::LcsStringTooLong);
    }
    let cells = (a.len() as u128 + 1) * (b.len() as u128 + 1);
    if cells * 4 > u128::from(max_bulk_len) {
        return Err(ValueError::LcsTooLarge);
    }
    Ok(())
}

/// Computes the differences column block by column block, 64 bytes of `b` at a time, and calls `row(bits, width)` for
/// every byte of `a` in each block. A *zero* bit j says that the subsequence of `a[..=i]` and `b[..=j]` is longer than
/// that of `a[..=i]` and `b[..j]`. Returns the length of the whole subsequence.
fn fill(a: &[u8], b: &[u8], mut row: impl FnMut(u64, u32)) -> usize {
    // What the additions of each row carry from one block into the next.
    let mut carries = vec![0u64; a.len().div_ceil(64)];
    let mut len = 0;
    for block in b.chunks(64) {
        let mut positions = [0u64; 256];
        for (j, &byte) in block.iter().enumerate() {
            positions[usize::from(byte)] |= 1 << j;
        }
        let mut bits = u64::MAX;
        for (i, &byte) in a.iter().enumerate() {
            let matching = positions[usize::from(byte)];
            let (word, bit) = (&mut carries[i / 64], 1u64 << (i % 64));
            let (sum, first) = bits.overflowing_add(bits & matching);
            let (sum, second) = sum.overflowing_add(u64::from(*word & bit != 0));
            *word = if first || second {
                *word | bit
            } else {
                *word & !bit
            };
            bits = sum | (bits & !matching);
            row(bits, block.len() as u32);
        }
        let unused = u64::MAX.checked_shl(block.len() as u32).unwrap_or(0);
        len += (bits | unused).count_zeros() as usize;
    }
    len
}

/// All differences, block after block as [`fill`] yields them, each row of a block packed to the block's width.
struct Table {
    words: Vec<u64>,
    rows: usize,
    columns: usize,
}

impl Table {
    fn new(a: &[u8], b: &[u8]) -> (Self, usize) {
        let mut words = Vec::with_capacity((a.len() * b.len()).div_ceil(64));
        let (mut pending, mut used) = (0u64, 0);
        let len = fill(a, b, |bits, width| {
            let bits = bits & (u64::MAX >> (64 - width));
            pending |= bits << used;
            if used + width >= 64 {
                words.push(pending);
                pending = bits.checked_shr(64 - used).unwrap_or(0);
            }
            used = (used + width) % 64;
        });
        if used > 0 {
            words.push(pending);
        }
        (
            Self {
                words,
                rows: a.len(),
                columns: b.len(),
            },
            len,
        )
    }

    /// Whether byte j of the second string makes the subsequence with the first i + 1 bytes of the first longer.
    fn grows(&self, i: usize, j: usize) -> bool {
        let block = j / 64;
        let width = (self.columns - block * 64).min(64);
        let bit = block * 64 * self.rows + i * width + j % 64;
        self.words[bit / 64] >> (bit % 64) & 1 == 0
    }

    /// Walks from the ends to the front and reports each pair of bytes of the subsequence.
    ///
    /// Redis's choice where several are longest: equal bytes are always taken; otherwise it gives up a byte of `a`
    /// only if giving up one of `b` would cost length, which is what a difference of 1 says.
    fn trace(&self, a: &[u8], b: &[u8], mut pair: impl FnMut(usize, usize)) {
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                pair(i, j);
            } else if self.grows(i - 1, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_MAX_BULK_LEN as MAX;
    use proptest::prelude::*;

    #[test]
    fn known_answers() {
        let (a, b) = (b"ohmytext", b"mynewtext");
        assert_eq!(lcs(a, b, MAX), Ok(b"mytext".to_vec()));
        assert_eq!(lcs_len(a, b, MAX), Ok(6));
        let (text, my) = (
            LcsMatch {
                a: (4, 7),
                b: (5, 8),
            },
            LcsMatch {
                a: (2, 3),
                b: (0, 1),
            },
        );
        assert_eq!(
            lcs_index(a, b, 0, MAX),
            Ok(LcsIndex {
                matches: vec![text, my],
                len: 6
            })
        );
        assert_eq!(
            lcs_index(a, b, 4, MAX),
            Ok(LcsIndex {
                matches: vec![text],
                len: 6
            })
        );
        assert_eq!(
            lcs_index(a, b, -1, MAX).map(|index| index.matches.len()),
            Ok(2)
        );
        assert_eq!(text.match_len(), 4);
        assert_eq!(lcs(b"", b"abc", MAX), Ok(Vec::new()));
        assert_eq!(lcs_len(b"abc", b"", MAX), Ok(0));
        assert_eq!(
            lcs_index(b"abc", b"def", 0, MAX),
            Ok(LcsIndex {
                matches: Vec::new(),
                len: 0
            })
        );
    }

    #[test]
    fn size_is_bounded_before_anything_is_allocated() {
        let side = |len: usize| vec![b'a'; len];
        assert_eq!(lcs_len(&side(9), &side(9), 400), Ok(9));
        assert_eq!(
            lcs_len(&side(9), &side(9), 399),
            Err(ValueError::LcsTooLarge)
        );
        assert_eq!(
            lcs(&side(20_000), &side(20_000), MAX),
            Err(ValueError::LcsTooLarge)
        );
        assert_eq!(
            lcs_index(&side(20_000), &side(20_000), 0, MAX),
            Err(ValueError::LcsTooLarge)
        );
    }

    /// The plain table, traced back with Redis's choices.
    fn naive(a: &[u8], b: &[u8]) -> (usize, Vec<(usize, usize)>) {
        let mut table = vec![vec![0u32; b.len() + 1]; a.len() + 1];
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                table[i][j] = if a[i - 1] == b[j - 1] {
                    table[i - 1][j - 1] + 1
                } else {
                    table[i - 1][j].max(table[i][j - 1])
                };
            }
        }
        let (mut i, mut j, mut pairs) = (a.len(), b.len(), Vec::new());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                pairs.push((i, j));
            } else if table[i - 1][j] > table[i][j - 1] {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        (table[a.len()][b.len()] as usize, pairs)
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(b'a'..b'e', 0..200)
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_table(a in text(), b in text(), least in 0i64..4) {
            let (len, pairs) = naive(&a, &b);
            prop_assert_eq!(lcs_len(&a, &b, MAX), Ok(len));
            let subsequence: Vec<u8> = pairs.iter().rev().map(|&(i, _)| a[i]).collect();
            prop_assert_eq!(lcs(&a, &b, MAX), Ok(subsequence));
            let index = lcs_index(&a, &b, least, MAX).unwrap();
            prop_assert_eq!(index.len, len);
            let runs = pairs.chunk_by(|x, y| x.0 == y.0 + 1 && x.1 == y.1 + 1);
            let expected: Vec<LcsMatch> = runs
                .map(|run| (run[run.len() - 1], run[0]))
                .map(|(first, last)| LcsMatch { a: (first.0, last.0), b: (first.1, last.1) })
                .filter(|found| found.match_len() as i64 >= least)
                .collect();
            prop_assert_eq!(index.matches, expected);
        }
    }
}
