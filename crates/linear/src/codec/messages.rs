//! Messages as bytes.

use super::{Coded, all, put_all};
use crate::message::Message;
use crate::txn::TxnId;
use std::sync::Arc;

impl<O> Message<O> {
    /// Never used again for another one.
    fn kind(&self) -> u8 {
        match self {
            Self::Forward { .. } => 1,
            Self::Backward { .. } => 2,
            Self::Undo { .. } => 3,
            Self::Ask { .. } => 4,
            Self::Later { .. } => 5,
            Self::Settled { .. } => 6,
            Self::Safe { .. } => 7,
            Self::Forget { .. } => 8,
            Self::Unknown { .. } => 9,
            Self::Gone { .. } => 11,
            Self::Outcome { .. } => 12,
            Self::Heard { .. } => 13,
            Self::IsPrepared { .. } => 19,
            Self::Unprepared { .. } => 20,
            Self::IsApplied { .. } => 21,
            Self::Proposed { .. } => 22,
            Self::Read { .. } => 23,
            Self::Values { .. } => 24,
            Self::Survey { .. } => 25,
            Self::Surveyed { .. } => 26,
            Self::Recall { .. } => 27,
            Self::Recalled { .. } => 28,
        }
    }
}

/// One after the other.
macro_rules! put {
    ($out:expr, $($field:expr),+) => { { $($field.encode($out);)+ } };
}

impl<O: Coded> Coded for Message<O> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind());
        match self {
            Self::Forward { txn, max } => put!(out, txn, max),
            Self::Backward {
                txn,
                stamp,
                after,
                told,
            } => {
                put!(out, txn, stamp);
                put_all(out, after);
                told.encode(out);
            }
            Self::Undo { txn, told } => put!(out, txn, told),
            Self::Ask { txn, before } => put!(out, txn, before),
            Self::Later { stamp } => stamp.encode(out),
            Self::Settled { txn }
            | Self::Safe { txn }
            | Self::Unknown { txn }
            | Self::Gone { txn }
            | Self::Heard { txn }
            | Self::IsPrepared { txn }
            | Self::Unprepared { txn }
            | Self::IsApplied { txn } => txn.encode(out),
            Self::Forget { txn, slots } => {
                txn.encode(out);
                put_all(out, slots);
            }
            Self::Outcome { txn, outcome, told } => put!(out, txn, outcome, told),
            Self::Proposed { txn, max } => put!(out, txn, max),
            Self::Read {
                txn,
                keys,
                known,
                body,
            } => put!(out, txn, keys, known, body),
            Self::Values { txn, seen, told } => put!(out, txn, seen, told),
            Self::Survey {
                round,
                epoch,
                lost,
                slots,
            } => put!(out, round, epoch, lost, slots),
            Self::Surveyed {
                round,
                covers,
                found,
            } => put!(out, round, covers, found),
            Self::Recall {
                round,
                epoch,
                lost,
                found,
            } => put!(out, round, epoch, lost, found),
            Self::Recalled { round, id, txn, at } => put!(out, round, id, txn, at),
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let kind = u8::decode(from)?;
        let id = |from: &mut &[u8]| TxnId::decode(from);
        Some(match kind {
            1 => Self::Forward {
                txn: Arc::decode(from)?,
                max: u64::decode(from)?,
            },
            2 => Self::Backward {
                txn: id(from)?,
                stamp: Coded::decode(from)?,
                after: all(from)?,
                told: Arc::decode(from)?,
            },
            3 => Self::Undo {
                txn: id(from)?,
                told: Arc::decode(from)?,
            },
            4 => Self::Ask {
                txn: id(from)?,
                before: Coded::decode(from)?,
            },
            5 => Self::Later {
                stamp: Coded::decode(from)?,
            },
            6 => Self::Settled { txn: id(from)? },
            7 => Self::Safe { txn: id(from)? },
            8 => Self::Forget {
                txn: id(from)?,
                slots: slots(from)?,
            },
            9 => Self::Unknown { txn: id(from)? },
            11 => Self::Gone { txn: id(from)? },
            12 => Self::Outcome {
                txn: id(from)?,
                outcome: Coded::decode(from)?,
                told: Arc::decode(from)?,
            },
            13 => Self::Heard { txn: id(from)? },
            25..=28 => return survey(kind, from),
            19 => Self::IsPrepared { txn: id(from)? },
            20 => Self::Unprepared { txn: id(from)? },
            21 => Self::IsApplied { txn: id(from)? },
            22 => Self::Proposed {
                txn: id(from)?,
                max: u64::decode(from)?,
            },
            23 => Self::Read {
                txn: id(from)?,
                keys: all(from)?,
                known: all(from)?,
                body: Arc::decode(from)?,
            },
            24 => Self::Values {
                txn: id(from)?,
                seen: all(from)?,
                told: Arc::decode(from)?,
            },
            _ => return None,
        })
    }
}

fn survey<O: Coded>(kind: u8, from: &mut &[u8]) -> Option<Message<O>> {
    let round = u64::decode(from)?;
    Some(match kind {
        25 => Message::Survey {
            round,
            epoch: u64::decode(from)?,
            lost: u64::decode(from)?,
            slots: all(from)?,
        },
        26 => Message::Surveyed {
            round,
            covers: all(from)?,
            found: all(from)?,
        },
        27 => Message::Recall {
            round,
            epoch: u64::decode(from)?,
            lost: u64::decode(from)?,
            found: all(from)?,
        },
        28 => Message::Recalled {
            round,
            id: TxnId::decode(from)?,
            txn: Coded::decode(from)?,
            at: all(from)?,
        },
        _ => return None,
    })
}

/// In their order.
fn slots(from: &mut &[u8]) -> Option<Arc<[u16]>> {
    let slots: Vec<u16> = all(from)?;
    let mut sorted = slots.clone();
    sorted.sort_unstable();
    let are_slots = !slots.is_empty() && sorted.is_sorted_by(|a, b| a < b);
    are_slots.then(|| slots.into())
}
