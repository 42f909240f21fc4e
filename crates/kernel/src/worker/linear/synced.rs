//! Letters that wait until the log is synced. What they say lets other slots forget a transaction: after that, a slot that
//! loses the end of its log can learn of it from none.

use super::letter::Letter;
use std::collections::VecDeque;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    /// Each with the position that has to be synced, and the slot of its sender.
    letters: VecDeque<(u64, u16, Letter)>,
}

impl Unsynced {
    pub(super) fn push(&mut self, position: u64, slot: u16, letter: Letter) {
        self.letters.push_back((position, slot, letter));
    }

    /// The next letter that may leave. `synced`: up to where the log is, or `None` where letters do not wait for that.
    #[inline]
    pub(super) fn pop(&mut self, synced: Option<u64>) -> Option<(u16, Letter)> {
        let is_due = |(position, ..): &mut (u64, u16, Letter)| {
            synced.is_none_or(|synced| *position <= synced)
        };
        let (_, slot, letter) = self.letters.pop_front_if(is_due)?;
        Some((slot, letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::linear::letter::Place;
    use rufous_linear::{Message, TxnId};

    fn letter(number: u64) -> Letter {
        let txn = TxnId {
            number,
            ..TxnId::default()
        };
        Letter {
            from: Place::Origin,
            to: Place::Origin,
            message: Message::Safe { txn },
        }
    }

    #[test]
    fn letters_leave_in_order_when_the_log_is_synced() {
        let mut unsynced = Unsynced::default();
        for number in 1..=3 {
            unsynced.push(number * 10, number as u16, letter(number));
        }
        assert!(unsynced.pop(Some(9)).is_none());
        assert_eq!(unsynced.pop(Some(25)).map(|(slot, _)| slot), Some(1));
        assert_eq!(unsynced.pop(Some(25)).map(|(slot, _)| slot), Some(2));
        assert!(unsynced.pop(Some(25)).is_none());
        // The setting has changed.
        assert_eq!(unsynced.pop(None).map(|(slot, _)| slot), Some(3));
        assert!(unsynced.pop(None).is_none());
    }
}
