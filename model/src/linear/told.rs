//! What slots tell clients, and whether it is what clients get.

use super::ops::Keys;
use super::world::{Client, World};
use rufous_linear::{Outcome, TxnId};

/// What a slot tells of a transaction; `detail`: what was found there.
pub(super) fn piece(slot: u16, txn: TxnId, detail: &str) -> Vec<u8> {
    format!("{}{detail};", head(slot, txn)).into()
}

/// Why a slot refuses a transaction.
pub(super) fn refusal(slot: u16, txn: TxnId) -> Vec<u8> {
    format!("{}refused;", head(slot, txn)).into()
}

fn head(slot: u16, txn: TxnId) -> String {
    format!("{slot}/{}.{}.{}/", txn.node, txn.start, txn.number)
}

impl World {
    pub(super) fn check_told(&self) -> Result<(), String> {
        for (id, client) in &self.clients {
            let right = match client.ended {
                None => true,
                Some((_, Outcome::Committed)) => self.is_told(*id, client),
                Some((_, Outcome::Aborted)) => self.is_reason(*id, client),
            };
            if !right {
                let told = String::from_utf8_lossy(&client.told);
                return Err(format!("{id:?}, {:?}, was told {told}", client.ended));
            }
        }
        Ok(())
    }

    /// Each slot's piece, once and in order: of the state that is left, unless that had to be made again.
    fn is_told(&self, id: TxnId, client: &Client) -> bool {
        let slots = client.txn.slots();
        if self.has_lost {
            let mut pieces = client.told.split_inclusive(|byte| *byte == b';');
            let all = slots.iter().all(|slot| {
                let piece = pieces.next();
                piece.is_some_and(|piece| piece.starts_with(head(*slot, id).as_bytes()))
            });
            return all && pieces.next().is_none();
        }
        let keys = |slot: &u16| &self.slots[usize::from(*slot)].keys;
        let all: Vec<&[u8]> = slots.iter().map(|slot| told(keys(slot), id)).collect();
        client.told[..] == all.concat()
    }

    /// One slot's refusal; or nothing, where a version was expected or an end was lost.
    fn is_reason(&self, id: TxnId, client: &Client) -> bool {
        let mut slots = client.txn.slots().iter();
        if client.told[..] == *rufous_linear::OTHER_ORDER {
            return self.bounds.orders;
        }
        if client.told.is_empty() {
            let expects = client.txn.parts().iter().any(|part| part.expects.is_some());
            return expects || self.has_restarted_lossy;
        }
        self.bounds.refusals && slots.any(|slot| client.told[..] == refusal(*slot, id))
    }
}

fn told(keys: &Keys, id: TxnId) -> &[u8] {
    keys.told.get(&id).map_or(&[], |told| &told[..])
}
