//! A client's context of a key with causal order, as the client keeps it: opaque to the client, and not valid for
//! another key.
//!
//! ```text
//! in hexadecimal digits:
//! version  check  what was seen
//! 01       8      a version vector and a stamp; the check is of the rest, the database and the key
//! ```
//!
//! The check detects tokens of other keys, and cut or mistyped ones. It is no signature: a client that may write a
//! key may also claim to have seen its values. A claim to have seen future writes is cut off when the token is used.

use crate::rdb::checksum::checksum;
use rufous_lattice::{Coded, Seen};

const VERSION: u8 = 1;

/// Digits of the largest token, which has an entry for each replica.
const MOST_DIGITS: usize = 16 << 10;

/// The bytes are no token of this key: they are damaged, of another key, or not a token at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAToken;

fn check(db: u8, key: &[u8], seen: &[u8]) -> [u8; 8] {
    let mut all = vec![VERSION, db];
    all.extend_from_slice(&(key.len() as u64).to_be_bytes());
    all.extend_from_slice(key);
    all.extend_from_slice(seen);
    checksum(&all).to_be_bytes()
}

pub fn encode(db: u8, key: &[u8], seen: &Seen) -> Vec<u8> {
    let seen = seen.encoded();
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&check(db, key, &seen));
    bytes.extend_from_slice(&seen);
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(*b)])
        .collect()
}

/// Decodes a token; an empty one means that nothing was seen.
pub fn decode(db: u8, key: &[u8], token: &[u8]) -> Result<Seen, NotAToken> {
    if token.is_empty() {
        return Ok(Seen::default());
    }
    if token.len() > MOST_DIGITS || !token.len().is_multiple_of(2) {
        return Err(NotAToken);
    }
    let half = |digit: u8| (digit as char).to_digit(16).map(|half| half as u8);
    let bytes: Option<Vec<u8>> = token
        .chunks(2)
        .map(|pair| Some(half(pair[0])? << 4 | half(pair[1])?))
        .collect();
    let bytes = bytes.ok_or(NotAToken)?;
    let (head, seen) = bytes.split_at_checked(9).ok_or(NotAToken)?;
    if head[0] != VERSION || head[1..] != check(db, key, seen) {
        return Err(NotAToken);
    }
    Seen::decode(seen).map_err(|_| NotAToken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::rng::Rng;
    use rufous_lattice::Stamp;

    fn seen() -> Seen {
        let mut seen = Seen::default();
        for replica in 0..3 {
            seen.all.raise(Stamp {
                time: 1 << 60 | u64::from(replica),
                replica,
                step: 2,
            });
        }
        seen
    }

    #[test]
    fn tokens_are_of_one_key() {
        let token = encode(0, b"k", &seen());
        assert_eq!(decode(0, b"k", &token), Ok(seen()));
        assert_eq!(decode(0, b"k", &token.to_ascii_uppercase()), Ok(seen()));
        assert_eq!(decode(1, b"k", &token), Err(NotAToken));
        assert_eq!(decode(0, b"kk", &token), Err(NotAToken));
        assert_eq!(decode(0, b"k", b""), Ok(Seen::default()));
        let nothing = encode(0, b"k", &Seen::default());
        assert_eq!(decode(0, b"k", &nothing), Ok(Seen::default()));
    }

    #[test]
    fn any_bytes_may_come() {
        let token = encode(0, b"k", &seen());
        for cut in 1..token.len() {
            assert_eq!(decode(0, b"k", &token[..cut]), Err(NotAToken));
        }
        let mut rng = Rng::new(1);
        for _ in 0..2000 {
            let mut other = token.clone();
            let at = rng.below(other.len() as u64) as usize;
            other[at] = rng.below(256) as u8;
            let is_same = other.eq_ignore_ascii_case(&token);
            assert_eq!(decode(0, b"k", &other).is_ok(), is_same);
        }
        // A valid check does not make the rest a valid vector.
        for seen in [&[0xff; 9][..], &[1], &[]] {
            let mut bytes = vec![VERSION];
            bytes.extend_from_slice(&check(0, b"k", seen));
            bytes.extend_from_slice(seen);
            let token: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(decode(0, b"k", token.as_bytes()), Err(NotAToken));
        }
        assert_eq!(decode(0, b"k", &vec![b'0'; 1 << 20]), Err(NotAToken));
    }
}
