//! The encoding of messages between workers of different nodes: kind, stream, and content. Received data is not
//! trusted.

use super::{Differ, Peer};
use rufous_base::limits::SLOTS;
use rufous_store::effect::{NotAnEffect, byte, put_varint, varint};

const HELLO: u8 = 1;
const TAKEN: u8 = 2;
const PIECE: u8 = 3;
const SUMS: u8 = 4;
const DIFFER: u8 = 5;

impl Peer {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        let mut head = |kind: u8, stream: u64| {
            out.push(kind);
            put_varint(&mut out, stream);
        };
        match self {
            Peer::Hello {
                stream,
                next,
                table,
            } => {
                head(HELLO, *stream);
                put_varint(&mut out, *next);
                out.extend_from_slice(&table.to_le_bytes());
            }
            Peer::Taken {
                stream,
                next,
                is_new,
            } => {
                head(TAKEN, *stream);
                put_varint(&mut out, *next);
                out.push(u8::from(*is_new));
            }
            Peer::Piece {
                stream,
                number,
                more,
                bytes,
            } => {
                head(PIECE, *stream);
                put_varint(&mut out, *number);
                out.push(u8::from(*more));
                out.extend_from_slice(bytes);
            }
            Peer::Sums { stream, sums } => {
                head(SUMS, *stream);
                sums.iter().for_each(|sum| out.extend(sum.to_le_bytes()));
            }
            Peer::Differ { stream, slots } => {
                head(DIFFER, *stream);
                let words = slots.words().iter();
                words.for_each(|word| out.extend(word.to_le_bytes()));
            }
        }
        out
    }

    pub fn decode(mut bytes: &[u8]) -> Result<Self, NotAnEffect> {
        let from = &mut bytes;
        let kind = byte(from)?;
        let stream = varint(from)?;
        Ok(match kind {
            HELLO => {
                let next = varint(from)?;
                let &[table] = &words(from, 1)?[..] else {
                    return Err(NotAnEffect);
                };
                Peer::Hello {
                    stream,
                    next,
                    table,
                }
            }
            TAKEN => {
                let next = varint(from)?;
                let is_new = flag(from)?;
                if !from.is_empty() {
                    return Err(NotAnEffect);
                }
                Peer::Taken {
                    stream,
                    next,
                    is_new,
                }
            }
            PIECE => Peer::Piece {
                stream,
                number: varint(from)?,
                more: flag(from)?,
                bytes: (*from).into(),
            },
            SUMS => Peer::Sums {
                stream,
                sums: words(from, SLOTS)?.into(),
            },
            DIFFER => Peer::Differ {
                stream,
                slots: Differ::from_words(words(from, SLOTS / 64)?).ok_or(NotAnEffect)?,
            },
            _ => return Err(NotAnEffect),
        })
    }
}

fn flag(from: &mut &[u8]) -> Result<bool, NotAnEffect> {
    match byte(from)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(NotAnEffect),
    }
}

/// Exactly this many words, without trailing bytes.
fn words(from: &[u8], count: usize) -> Result<Vec<u64>, NotAnEffect> {
    let (words, rest) = from.as_chunks();
    if words.len() != count || !rest.is_empty() {
        return Err(NotAnEffect);
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples() -> Vec<Peer> {
        let mut words = vec![0; SLOTS / 64];
        words[3] = 5;
        vec![
            Peer::Hello {
                stream: 300,
                next: 2,
                table: 0x0102_0304_0506_0708,
            },
            Peer::Taken {
                stream: u64::MAX,
                next: 9,
                is_new: true,
            },
            Peer::Piece {
                stream: 1,
                number: 200,
                more: false,
                bytes: (*b"bytes").into(),
            },
            Peer::Sums {
                stream: 7,
                sums: (0..SLOTS as u64).collect(),
            },
            Peer::Differ {
                stream: 7,
                slots: Differ::from_words(words).expect("of all slots"),
            },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        for peer in samples() {
            let bytes = peer.encode();
            assert_eq!(Peer::decode(&bytes), Ok(peer.clone()));
            let is_piece = matches!(peer, Peer::Piece { .. });
            for len in 0..bytes.len().min(40) {
                let cut = Peer::decode(&bytes[..len]);
                assert!(is_piece || cut.is_err(), "{peer:?} of {len} bytes");
            }
            let longer = Peer::decode(&[&bytes[..], &[0]].concat());
            assert!(is_piece || longer.is_err());
        }
    }

    #[test]
    fn golden_bytes() {
        let samples = samples();
        assert_eq!(
            samples[0].encode(),
            [1, 0xac, 0x02, 2, 8, 7, 6, 5, 4, 3, 2, 1]
        );
        let all = [0xff; 9];
        assert_eq!(samples[1].encode(), [&[2][..], &all, &[1, 9, 1]].concat());
        assert_eq!(
            samples[2].encode(),
            [&[3, 1, 0xc8, 1, 0][..], b"bytes"].concat()
        );
        let sums = samples[3].encode();
        assert_eq!(
            sums[..18],
            [4, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(sums.len(), 2 + SLOTS * 8);
        let differ = samples[4].encode();
        assert_eq!((differ[0], differ[2 + 3 * 8]), (5, 5));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(peer) = Peer::decode(&bytes) {
                prop_assert_eq!(Peer::decode(&peer.encode()), Ok(peer));
            }
        }
    }
}
