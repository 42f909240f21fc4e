//! Bytes that a client keeps and gives back: opaque to it, and valid for one purpose.
//!
//! ```text
//! in hexadecimal digits:
//! version  check  the bytes
//! 01       8      the check is of the rest and of what the token is for
//! ```
//!
//! The check detects tokens of something else, and cut or mistyped ones. It is no signature.

use crate::rdb::checksum::checksum;

const VERSION: u8 = 1;

/// The bytes are no token of this: they are damaged, of something else, or not a token at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAToken;

fn check(of: &[u8], bytes: &[u8]) -> [u8; 8] {
    let all = [&[VERSION], of, bytes].concat();
    checksum(&all).to_be_bytes()
}

/// A token for `of`, which must not be the beginning of another one's.
pub fn seal(of: &[u8], bytes: &[u8]) -> Vec<u8> {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
    let check = check(of, bytes);
    let all = [VERSION].into_iter().chain(check);
    all.chain(bytes.iter().copied())
        .flat_map(|b| [digit(b >> 4), digit(b)])
        .collect()
}

/// The bytes of a token for `of` with at most this number of digits.
pub fn open(of: &[u8], token: &[u8], most_digits: usize) -> Result<Vec<u8>, NotAToken> {
    if token.len() > most_digits || !token.len().is_multiple_of(2) {
        return Err(NotAToken);
    }
    let half = |digit: u8| (digit as char).to_digit(16).map(|half| half as u8);
    let pairs = token.chunks(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| Some(half(pair[0])? << 4 | half(pair[1])?))
        .collect();
    let bytes = bytes.ok_or(NotAToken)?;
    let (head, rest) = bytes.split_at_checked(9).ok_or(NotAToken)?;
    let is_one = head[0] == VERSION && head[1..] == check(of, rest);
    is_one.then(|| rest.to_vec()).ok_or(NotAToken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::rng::Rng;

    #[test]
    fn any_bytes_may_come() {
        let token = seal(b"here", b"what it is");
        assert_eq!(open(b"here", &token, 100), Ok(b"what it is".to_vec()));
        assert_eq!(open(b"there", &token, 100), Err(NotAToken));
        assert_eq!(open(b"here", &token, token.len() - 1), Err(NotAToken));
        for cut in 0..token.len() {
            assert_eq!(open(b"here", &token[..cut], 100), Err(NotAToken));
        }
        let mut rng = Rng::new(1);
        for _ in 0..2000 {
            let mut other = token.clone();
            let at = rng.below(other.len() as u64) as usize;
            other[at] = rng.below(256) as u8;
            let is_same = other.eq_ignore_ascii_case(&token);
            assert_eq!(open(b"here", &other, 100).is_ok(), is_same);
        }
    }
}
