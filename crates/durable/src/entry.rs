//! The entries of a frame's payload: effects, and other records of a log.
//!
//! Each worker logs its part of a command over several workers as a piece; the command is valid
//! only if all of its pieces exist. An entry is a tag byte and its parts; tags below 0x40 are
//! reserved for effects.

use rufous_store::effect::{Effect, NotAnEffect, byte, put_varint, repeated, slice, varint, word};

/// The id of a command over several workers: unique over all starts of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId {
    /// Increases with every start.
    pub run: u64,
    /// The coordinator.
    pub worker: u16,
    /// The number of the command at its coordinator in this run.
    pub n: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Effect(Effect<'a>),
    /// An effect whose value stands earlier in the frame. Its bytes mean nothing elsewhere.
    Repeated(Effect<'a>),
    /// This worker's part of a command over several workers.
    Piece {
        txn: TxnId,
        participants: Participants<'a>,
        effects: Effects<'a>,
    },
    /// All participants have logged their pieces.
    Done {
        txn: TxnId,
    },
    /// The node was shut down in order: this run wrote nothing more.
    CleanEnd,
    /// The snapshot is complete, with this many keys in this many frames before this one.
    SnapshotEnd {
        keys: u64,
        frames: u64,
    },
}

const PIECE: u8 = 0x40;
const DONE: u8 = 0x41;
const CLEAN_END: u8 = 0x42;
const SNAPSHOT_END: u8 = 0x43;

impl<'a> Entry<'a> {
    /// Decodes one entry from the front of `from`, and advances `from` past it. One that refers to others is refused.
    pub fn decode(from: &mut &'a [u8]) -> Result<Self, NotAnEffect> {
        let frame = *from;
        Self::decode_in(frame, from)
    }

    /// Decodes one entry of a frame, of which `from` is the rest.
    pub fn decode_in(frame: &'a [u8], from: &mut &'a [u8]) -> Result<Self, NotAnEffect> {
        match from.first() {
            Some(&repeated::REPEATED) => repeated::decode(frame, from).map(Entry::Repeated),
            Some(&PIECE) => {
                byte(from)?;
                let txn = txn(from)?;
                let count = varint(from)?;
                let participants = slice(from, count.checked_mul(2).ok_or(NotAnEffect)?)?;
                let participants = Participants(participants);
                if count == 0 || !participants.iter().is_sorted_by(|a, b| a < b) {
                    return Err(NotAnEffect);
                }
                let len = varint(from)?;
                Ok(Entry::Piece {
                    txn,
                    participants,
                    effects: Effects(slice(from, len)?),
                })
            }
            Some(&DONE) => {
                byte(from)?;
                Ok(Entry::Done { txn: txn(from)? })
            }
            Some(&CLEAN_END) => {
                byte(from)?;
                Ok(Entry::CleanEnd)
            }
            Some(&SNAPSHOT_END) => {
                byte(from)?;
                Ok(Entry::SnapshotEnd {
                    keys: word(from)?,
                    frames: word(from)?,
                })
            }
            _ => Effect::decode(from).map(Entry::Effect),
        }
    }
}

/// The entries of a payload, up to the first invalid one.
pub fn entries(payload: &[u8]) -> impl Iterator<Item = Result<Entry<'_>, NotAnEffect>> {
    decoded(payload, |rest| Entry::decode_in(payload, rest))
}

/// The participating workers, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participants<'a>(&'a [u8]);

impl<'a> Participants<'a> {
    pub fn iter(&self) -> impl Iterator<Item = u16> + use<'a> {
        let (pairs, _) = self.0.as_chunks::<2>();
        pairs.iter().map(|pair| u16::from_le_bytes(*pair))
    }
}

/// A sequence of effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects<'a>(&'a [u8]);

impl<'a> Effects<'a> {
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The effects up to the first invalid one.
    pub fn iter(&self) -> impl Iterator<Item = Result<Effect<'a>, NotAnEffect>> + use<'a> {
        decoded(self.0, Effect::decode)
    }
}

fn decoded<'a, T>(
    mut rest: &'a [u8],
    decode: impl Fn(&mut &'a [u8]) -> Result<T, NotAnEffect>,
) -> impl Iterator<Item = Result<T, NotAnEffect>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let next = decode(&mut rest);
        if next.is_err() {
            rest = &[];
        }
        Some(next)
    })
}

/// Appends a piece; `participants` are ascending, `effects` are encoded effects.
pub fn put_piece(out: &mut Vec<u8>, txn: TxnId, participants: &[u16], effects: &[u8]) {
    debug_assert!(!participants.is_empty() && participants.is_sorted_by(|a, b| a < b));
    out.push(PIECE);
    put_txn(out, txn);
    put_varint(out, participants.len() as u64);
    for worker in participants {
        out.extend_from_slice(&worker.to_le_bytes());
    }
    put_varint(out, effects.len() as u64);
    out.extend_from_slice(effects);
}

pub fn put_done(out: &mut Vec<u8>, txn: TxnId) {
    out.push(DONE);
    put_txn(out, txn);
}

pub fn put_clean_end(out: &mut Vec<u8>) {
    out.push(CLEAN_END);
}

pub fn put_snapshot_end(out: &mut Vec<u8>, keys: u64, frames: u64) {
    out.push(SNAPSHOT_END);
    out.extend_from_slice(&keys.to_le_bytes());
    out.extend_from_slice(&frames.to_le_bytes());
}

fn put_txn(out: &mut Vec<u8>, txn: TxnId) {
    put_varint(out, txn.run);
    put_varint(out, u64::from(txn.worker));
    put_varint(out, txn.n);
}

fn txn(from: &mut &[u8]) -> Result<TxnId, NotAnEffect> {
    Ok(TxnId {
        run: varint(from)?,
        worker: u16::try_from(varint(from)?).map_err(|_| NotAnEffect)?,
        n: varint(from)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TXN: TxnId = TxnId {
        run: 3,
        worker: 300,
        n: 1 << 40,
    };

    fn samples() -> Vec<Vec<u8>> {
        let mut effects = Vec::new();
        Effect::Delete { db: 0, key: b"k" }.encode(&mut effects);
        Effect::FlushDb { db: 1 }.encode(&mut effects);
        let mut all = vec![effects.clone(); 4];
        put_piece(&mut all[0], TXN, &[0, 7, 255], &effects);
        put_done(&mut all[1], TXN);
        put_clean_end(&mut all[2]);
        put_snapshot_end(&mut all[3], 5, 6);
        for bytes in &mut all {
            bytes.drain(..effects.len());
        }
        all
    }

    #[test]
    fn what_is_encoded_decodes_and_no_part_of_it_does() {
        for bytes in samples() {
            let mut rest = &bytes[..];
            assert!(Entry::decode(&mut rest).is_ok() && rest.is_empty());
            for cut in 0..bytes.len() {
                assert_eq!(Entry::decode(&mut &bytes[..cut]), Err(NotAnEffect));
            }
        }
        let all = samples().concat();
        let decoded: Vec<_> = entries(&all).map(Result::unwrap).collect();
        let Entry::Piece {
            txn,
            participants,
            effects,
        } = decoded[0]
        else {
            panic!("{decoded:?}");
        };
        assert_eq!(txn, TXN);
        assert_eq!(participants.iter().collect::<Vec<_>>(), [0, 7, 255]);
        assert_eq!(effects.iter().filter(Result::is_ok).count(), 2);
        assert_eq!(decoded[1], Entry::Done { txn: TXN });
        assert_eq!(decoded[2], Entry::CleanEnd);
        assert_eq!(decoded[3], Entry::SnapshotEnd { keys: 5, frames: 6 });
    }

    #[test]
    fn the_bytes_stay_as_they_are() {
        let hex: String = samples()[0].iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "4003ac02808080808020030000".to_owned() + "0700ff0006" + "0400016b" + "0901"
        );
        let hex: String = samples()[1..]
            .concat()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(
            hex,
            "4103ac02808080808020".to_owned() + "42" + "4305000000000000000600000000000000"
        );
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let mut unsorted = Vec::new();
        unsorted.extend_from_slice(&[PIECE, 1, 1, 1, 2, 5, 0, 5, 0, 0]);
        let nobody = [PIECE, 1, 1, 1, 0, 0];
        let worker_too_high = [DONE, 1, 0x80, 0x80, 4, 1];
        let cases: [&[u8]; 4] = [&unsorted, &nobody, &worker_too_high, &[0x44]];
        for case in cases {
            assert_eq!(Entry::decode(&mut &case[..]), Err(NotAnEffect), "{case:?}");
        }
        let mut end = entries(&[CLEAN_END, 0xFF, CLEAN_END]);
        assert_eq!(end.next(), Some(Ok(Entry::CleanEnd)));
        assert_eq!(end.next(), Some(Err(NotAnEffect)));
        assert_eq!(end.next(), None);
    }
}
