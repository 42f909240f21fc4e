//! A client's context of a key with causal order, as the client keeps it: opaque to the client, and not valid for
//! another key.
//!
//! [Sealed](super::sealed): what was seen (a version vector and a stamp), for the database and the key.
//!
//! A client that may write a key may also claim to have seen its values. A claim to have seen future writes is cut off when the
//! token is used.

use super::sealed;
pub use super::sealed::NotAToken;
use rufous_lattice::{Coded, Seen};

/// Digits of the largest token, which has an entry for each replica.
const MOST_DIGITS: usize = 16 << 10;

fn name(db: u8, key: &[u8]) -> Vec<u8> {
    [&[db][..], &(key.len() as u64).to_be_bytes(), key].concat()
}

pub fn encode(db: u8, key: &[u8], seen: &Seen) -> Vec<u8> {
    sealed::seal(&name(db, key), &seen.encoded())
}

/// Decodes a token; an empty one means that nothing was seen.
pub fn decode(db: u8, key: &[u8], token: &[u8]) -> Result<Seen, NotAToken> {
    if token.is_empty() {
        return Ok(Seen::default());
    }
    let seen = sealed::open(&name(db, key), token, MOST_DIGITS)?;
    Seen::decode(&seen).map_err(|_| NotAToken)
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn a_valid_check_does_not_make_the_rest_a_valid_vector() {
        for seen in [&[0xff; 9][..], &[1], &[]] {
            let token = sealed::seal(&name(0, b"k"), seen);
            assert_eq!(decode(0, b"k", &token), Err(NotAToken));
        }
        assert_eq!(decode(0, b"k", &vec![b'0'; 1 << 20]), Err(NotAToken));
    }

    /// Clients keep tokens while a node gets another program.
    #[test]
    fn tokens_of_earlier_programs_are_valid() {
        let seen = seen().encoded();
        let all = [&[1, 3, 0, 0, 0, 0, 0, 0, 0, 1, b'k'][..], &seen].concat();
        let check = crate::rdb::checksum::checksum(&all).to_be_bytes();
        let bytes = [&[1][..], &check, &seen].concat();
        let token: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(token.as_bytes(), encode(3, b"k", &self::seen()));
    }
}
