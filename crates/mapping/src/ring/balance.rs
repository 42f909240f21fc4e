//! Surplus and deficit of the members at one place of a ring.

use super::{NOBODY, Ring, VIRTUAL};
use crate::member::NodeNo;
use rufous_base::limits::SLOTS;

/// One member's account.
#[derive(Clone, Copy, Default)]
struct Account {
    share: usize,
    fair: usize,
    /// Slots of one of its virtual nodes.
    piece: usize,
}

impl Account {
    /// The distance from the fair share beyond a twentieth of it.
    fn off(&self) -> usize {
        let difference = self.fair.abs_diff(self.share);
        difference.saturating_sub(1 + self.fair / 20)
    }
}

/// Accounts of members, by their numbers.
pub(super) struct Balance {
    accounts: Vec<Account>,
    /// Slots without an owner.
    pub(super) empty: usize,
}

impl Balance {
    pub(super) fn of(ring: &Ring, place: usize) -> Self {
        let highest = ring
            .members
            .last_key_value()
            .map_or(0, |(no, _)| usize::from(no.0));
        let mut balance = Self {
            accounts: vec![Account::default(); highest + 1],
            empty: 0,
        };
        for owners in &ring.slots {
            match balance.accounts.get_mut(usize::from(owners[place].0)) {
                Some(account) => account.share += 1,
                None => balance.empty += 1,
            }
        }
        let total: usize = ring.members.values().map(|m| usize::from(m.weight)).sum();
        let mut left = SLOTS;
        for (no, member) in &ring.members {
            let fair = SLOTS * usize::from(member.weight) / total.max(1);
            balance.accounts[usize::from(no.0)].fair = fair;
            left = left.saturating_sub(fair);
        }
        // Remainders of rounding stay with the members that have them.
        let mut order: Vec<NodeNo> = ring.members.keys().copied().collect();
        order.sort_by_key(|no| (balance.surplus(*no) == 0, *no));
        for no in order.into_iter().take(left) {
            balance.accounts[usize::from(no.0)].fair += 1;
        }
        for (no, member) in &ring.members {
            let virtual_nodes = (VIRTUAL * usize::from(member.weight) / 100).max(1);
            let account = &mut balance.accounts[usize::from(no.0)];
            account.piece = account.fair.div_ceil(virtual_nodes).max(1);
        }
        balance
    }

    /// Called only for members and for the empty place.
    fn account(&self, node: NodeNo) -> Account {
        self.accounts
            .get(usize::from(node.0))
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn surplus(&self, node: NodeNo) -> usize {
        match node {
            NOBODY => usize::MAX,
            node => {
                let account = self.account(node);
                account.share.saturating_sub(account.fair)
            }
        }
    }

    pub(super) fn lack(&self, node: NodeNo) -> usize {
        let account = self.account(node);
        account.fair.saturating_sub(account.share)
    }

    /// Slots that the first has too many and the second too few; with `roughly`, counting only what
    /// is beyond the tolerance.
    pub(super) fn wanted(&self, from: NodeNo, to: NodeNo, roughly: bool) -> usize {
        let all = self.surplus(from).min(self.lack(to));
        match roughly {
            true => all.min(self.account(from).off().max(self.account(to).off())),
            false => all,
        }
    }

    /// Whether a member has a twentieth too many or too few.
    pub(super) fn is_uneven(&self) -> bool {
        self.accounts.iter().any(|account| account.off() > 0)
    }

    /// Higher for a member that lacks more of its fair share.
    pub(super) fn rank(&self, node: NodeNo) -> i64 {
        let account = self.account(node);
        account.fair as i64 - account.share as i64
    }

    pub(super) fn piece(&self, node: NodeNo) -> usize {
        self.account(node).piece
    }

    /// The length of pieces in which an owner's runs are split: that of its virtual nodes.
    pub(super) fn longest(&self, node: NodeNo) -> usize {
        let account = self.account(node);
        if node == NOBODY {
            return SLOTS;
        }
        let pieces = account.fair / account.piece.max(1);
        account.share.div_ceil(pieces.max(1)).max(1)
    }

    pub(super) fn give(&mut self, from: NodeNo, to: NodeNo, slots: usize) {
        match self.accounts.get_mut(usize::from(from.0)) {
            Some(account) => account.share -= slots,
            None => self.empty -= slots,
        }
        if let Some(account) = self.accounts.get_mut(usize::from(to.0)) {
            account.share += slots;
        }
    }
}
