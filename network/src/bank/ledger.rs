//! What clients of the bank have paid, and whether receipts and balances agree with it.

use std::time::Duration;

/// Accounts that anyone may overdraw.
pub const ACCOUNTS: usize = 16;
/// Cards, which no purchase may overdraw.
pub const CARDS: usize = 4;
/// Accounts that purchases are paid to.
pub const MERCHANTS: usize = 4;
/// All of them: accounts, then cards, then merchants.
pub const ALL: usize = ACCOUNTS + CARDS + MERCHANTS;

/// Cents of an account in the beginning.
const OF_ACCOUNT: i64 = 100_000;
/// Cents of a card in the beginning: a few purchases.
const OF_CARD: i64 = 5_000;

/// What no client of a bank may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// An acknowledged payment is gone.
    Lost,
    /// A part of a payment was executed without the rest.
    Torn,
    /// A payment was refused, and executed.
    Undue,
    /// An audit or a balance shows too much or too little money.
    Unbalanced,
    /// A purchase was made that its card does not cover.
    Overdrawn,
    /// A request waited longer than documented.
    Late,
    /// Transactions stay open although no client waits for one.
    Unsettled,
    /// The history of lists is not strictly serializable.
    Disordered,
}

/// What its client knows of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Done,
    Refused,
    Unknown,
}

/// Money that moves between accounts in one transaction.
#[derive(Clone, Debug)]
pub struct Payment {
    pub id: String,
    /// What each account gains, in cents: none twice, together 0.
    pub parts: Vec<(usize, i64)>,
    pub came: Came,
    pub error: Option<String>,
    pub node: usize,
    /// Since the beginning.
    pub asked: Duration,
    /// Until it ended, and a rest after an error.
    pub took: Duration,
}

/// The balances in the beginning.
pub fn opening() -> Vec<i64> {
    let of = |account| match account {
        account if account < ACCOUNTS => OF_ACCOUNT,
        account if is_card(account) => OF_CARD,
        _ => 0,
    };
    (0..ALL).map(of).collect()
}

pub fn is_card(account: usize) -> bool {
    (ACCOUNTS..ACCOUNTS + CARDS).contains(&account)
}

/// Each account has a slot of its own, with its receipts.
pub fn balance_key(account: usize) -> String {
    format!("{{bank:{account}}}balance")
}

pub fn receipt_key(account: usize, id: &str) -> String {
    format!("{{bank:{account}}}receipt:{id}")
}

/// What an audit shows that it must not.
pub fn judge_audit(balances: &[i64]) -> Option<(Wrong, String)> {
    let (is, must) = (balances.iter().sum::<i64>(), opening().iter().sum::<i64>());
    if is != must {
        let words = format!("{is} cents, not {must}: {balances:?}");
        return Some((Wrong::Unbalanced, words));
    }
    let mut overdrawn = balances.iter().enumerate();
    let (card, cents) = overdrawn.find(|(account, cents)| is_card(*account) && **cents < 0)?;
    Some((Wrong::Overdrawn, format!("card {card} has {cents} cents")))
}

/// Compares payments with their receipts, one for each part, and with the balances before and after
/// them. A receipt shows that the part was executed: it is in the slot of the account.
pub fn judge(
    payments: &[(Payment, Vec<Option<i64>>)],
    before: &[i64],
    after: &[i64],
) -> Vec<(Wrong, String)> {
    let mut wrong = Vec::new();
    let mut expected = before.to_vec();
    for (payment, receipts) in payments {
        for ((account, _), receipt) in payment.parts.iter().zip(receipts) {
            expected[*account] += receipt.unwrap_or(0);
        }
        if let Some(found) = judge_one(payment, receipts) {
            wrong.push((found, format!("{payment:?}: receipts {receipts:?}")));
        }
    }
    for (account, (is, must)) in after.iter().zip(&expected).enumerate() {
        if is != must {
            let words = format!("account {account} has {is} cents, by its receipts {must}");
            wrong.push((Wrong::Unbalanced, words));
        }
    }
    wrong.extend(judge_audit(after));
    wrong
}

fn judge_one(payment: &Payment, receipts: &[Option<i64>]) -> Option<Wrong> {
    let parts = payment.parts.iter().zip(receipts);
    let is_whole = parts
        .into_iter()
        .all(|((_, cents), receipt)| *receipt == Some(*cents));
    let is_absent = receipts.iter().all(Option::is_none);
    match (payment.came, is_whole, is_absent) {
        (Came::Done, _, true) => Some(Wrong::Lost),
        (_, false, false) => Some(Wrong::Torn),
        (Came::Refused, true, _) => Some(Wrong::Undue),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payment(came: Came) -> Payment {
        Payment {
            id: "1".to_owned(),
            parts: vec![(0, -30), (1, 10), (ACCOUNTS, 20)],
            came,
            error: None,
            node: 1,
            asked: Duration::ZERO,
            took: Duration::ZERO,
        }
    }

    const WHOLE: [Option<i64>; 3] = [Some(-30), Some(10), Some(20)];
    const ABSENT: [Option<i64>; 3] = [None; 3];

    #[track_caller]
    fn check(expected: &[Wrong], came: Came, receipts: [Option<i64>; 3], paid: [i64; 3]) {
        let mut after = opening();
        for (account, cents) in [0, 1, ACCOUNTS].into_iter().zip(paid) {
            after[account] += cents;
        }
        let payments = [(payment(came), receipts.to_vec())];
        let wrong = judge(&payments, &opening(), &after);
        let kinds: Vec<_> = wrong.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, expected, "{wrong:?}");
    }

    #[test]
    fn an_acknowledged_payment_has_all_receipts_and_moved_money() {
        check(&[], Came::Done, WHOLE, [-30, 10, 20]);
        check(&[Wrong::Lost], Came::Done, ABSENT, [0, 0, 0]);
        // Receipts without the money, and the money without receipts.
        let each = [Wrong::Unbalanced; 3];
        check(&each, Came::Done, WHOLE, [0, 0, 0]);
        check(&each, Came::Unknown, ABSENT, [-30, 10, 20]);
    }

    #[test]
    fn a_refused_payment_left_nothing() {
        check(&[], Came::Refused, ABSENT, [0, 0, 0]);
        check(&[Wrong::Undue], Came::Refused, WHOLE, [-30, 10, 20]);
    }

    #[test]
    fn a_payment_without_an_outcome_is_whole_or_absent() {
        check(&[], Came::Unknown, ABSENT, [0, 0, 0]);
        check(&[], Came::Unknown, WHOLE, [-30, 10, 20]);
        let torn = [Some(-30), None, Some(20)];
        let wrong = [Wrong::Torn, Wrong::Unbalanced];
        check(&wrong, Came::Unknown, torn, [-30, 0, 20]);
        let twice = [Some(-30), Some(10), Some(40)];
        check(&wrong, Came::Done, twice, [-30, 10, 40]);
    }

    #[test]
    fn an_audit_is_exact_and_shows_no_overdrawn_card() {
        let kind = |balances: &[i64]| judge_audit(balances).map(|(kind, _)| kind);
        let mut balances = opening();
        assert_eq!(kind(&balances), None);
        balances[0] -= 200_000;
        assert_eq!(kind(&balances), Some(Wrong::Unbalanced));
        balances[1] += 200_000;
        assert_eq!(kind(&balances), None);
        balances[ACCOUNTS] -= 5_001;
        balances[1] += 5_001;
        assert_eq!(kind(&balances), Some(Wrong::Overdrawn));
    }
}
