//! Clients of a bank, each at the plain port of one node: transfers, purchases by card, audits.

use std::thread::sleep;
use std::time::Duration;

use rufous_bench::client::Reply;
use rufous_sim::engine::random::Random;

use super::ledger::{
    ACCOUNTS, ALL, CARDS, Came, MERCHANTS, Payment, Wrong, balance_key, is_card, judge_audit,
    receipt_key,
};
use super::teller::{Answer, Bound, Outcome, Teller, code};
use super::till::Till;

/// Between two payments of a client.
const PAUSE: Duration = Duration::from_millis(5);
/// Between two audits of a client.
const REST: Duration = Duration::from_millis(20);
/// After an error.
const AGAIN: Duration = Duration::from_millis(50);
/// Cents of a transfer to one account at most.
const TRANSFER: u64 = 500;
/// Cents of a purchase at most: cards are short of money at times, as few transfers bring them some.
const PURCHASE: u64 = 800;

pub type Words = Vec<String>;

pub fn words(words: &[&str]) -> Words {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The cents that a reply to `GET` shows.
pub fn cents(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Makes transfers between two to four accounts until the demonstration ends.
pub fn transfer(till: &Till, mut teller: Teller<'_>, (name, mut random): (String, Random)) {
    let mut number = 0_u64;
    while !till.has_ended() {
        number += 1;
        let parts = parts(&mut random);
        let order = Order {
            kind: Kind::Transfer,
            id: format!("{name}:{number}"),
            parts,
        };
        {
            let _entered = till.enter();
            let since = till.now();
            let answer = teller.ask(&order.commands(), Bound::Transaction);
            order.note(till, &teller, (since, answer));
        }
        sleep(PAUSE);
    }
}

/// One account pays, which is no card; any others gain.
fn parts(random: &mut Random) -> Vec<(usize, i64)> {
    let mut others: Vec<usize> = (0..ALL).collect();
    let payers: Vec<usize> = (0..ALL).filter(|account| !is_card(*account)).collect();
    let payer = *random.pick(&payers);
    others.retain(|account| *account != payer);
    let count = random.between(1, 3) as usize;
    let mut parts = vec![(payer, 0)];
    for _ in 0..count {
        let other = others.swap_remove(random.index(others.len()));
        let cents = random.between(1, TRANSFER) as i64;
        parts[0].1 -= cents;
        parts.push((other, cents));
    }
    // Slots are visited in their order, whatever the order of commands.
    parts.rotate_left(random.index(count + 1));
    parts
}

/// Buys by card until the demonstration ends: reads what the card has, and pays only if that covers
/// the price and the card has not changed since.
pub fn buy(till: &Till, mut teller: Teller<'_>, (name, mut random): (String, Random)) {
    let mut number = 0_u64;
    while !till.has_ended() {
        number += 1;
        let card = ACCOUNTS + random.index(CARDS);
        let merchant = ACCOUNTS + CARDS + random.index(MERCHANTS);
        let price = random.between(1, PURCHASE) as i64;
        let order = Order {
            kind: Kind::Purchase,
            id: format!("{name}:{number}"),
            parts: vec![(card, -price), (merchant, price)],
        };
        {
            let _entered = till.enter();
            purchase(till, &mut teller, order);
        }
        sleep(PAUSE);
    }
}

fn purchase(till: &Till, teller: &mut Teller<'_>, order: Order) {
    let (card, price) = order.parts[0];
    let key = balance_key(card);
    let watched = teller.ask(&[words(&["WATCH", &key])], Bound::Transaction);
    if !is_fine(till, teller, &watched) {
        return;
    }
    let read = teller.go_on(&[words(&["GET", &key])], Bound::Key);
    if !is_fine(till, teller, &read) {
        // A watch that is left would refuse the next purchase.
        teller.go_on(&[words(&["UNWATCH"])], Bound::Transaction);
        return;
    }
    let balance = match &read {
        Answer::Replies(replies) => replies.first().and_then(cents),
        _ => None,
    };
    match balance {
        Some(balance) if balance + price >= 0 => {
            let since = till.now();
            let answer = teller.go_on(&order.commands(), Bound::Transaction);
            order.note(till, teller, (since, answer));
        }
        Some(_) => {
            till.on_declined();
            teller.go_on(&[words(&["UNWATCH"])], Bound::Transaction);
        }
        None => till.on_wrong(Wrong::Lost, format!("{key}: GET answered {read:?}")),
    }
}

/// Whether a request was answered without an error; counts errors.
fn is_fine(till: &Till, teller: &Teller<'_>, answer: &Answer) -> bool {
    let kind = match answer {
        Answer::Replies(replies) => match replies.first() {
            Some(Reply::Error(text)) => code(text),
            _ => return true,
        },
        Answer::Lost => "connection lost",
        Answer::NoConnection => "no connection",
    };
    till.on_error(teller.node(), kind);
    sleep(AGAIN);
    false
}

/// Audits until the demonstration ends: each time all balances in one transaction.
pub fn audit(till: &Till, mut teller: Teller<'_>) {
    let mut commands = vec![words(&["MULTI"])];
    commands.extend((0..ALL).map(|account| words(&["GET", &balance_key(account)])));
    commands.push(words(&["EXEC"]));
    while !till.has_ended() {
        {
            let _entered = till.enter();
            let outcome = Outcome::of(teller.ask(&commands, Bound::Transaction));
            audited(till, &teller, outcome);
        }
        sleep(REST);
    }
}

fn audited(till: &Till, teller: &Teller<'_>, outcome: Outcome) {
    let balances = match outcome {
        Outcome::Done(replies) => replies,
        Outcome::Changed => return till.on_error(teller.node(), "null without a watch"),
        Outcome::Refused(kind) | Outcome::Unknown(kind) => {
            till.on_error(teller.node(), &kind);
            return sleep(AGAIN);
        }
    };
    till.on_audit();
    let known: Vec<i64> = balances.iter().filter_map(cents).collect();
    let at = format!("audit at node {}, {:?}", teller.node(), till.now());
    if known.len() < ALL {
        till.on_wrong(Wrong::Torn, format!("{at}: {balances:?}"));
    } else if let Some((wrong, words)) = judge_audit(&known) {
        till.on_wrong(wrong, format!("{at}: {words}"));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Transfer,
    /// The card is watched.
    Purchase,
}

/// A payment before it is made.
struct Order {
    kind: Kind,
    id: String,
    parts: Vec<(usize, i64)>,
}

impl Order {
    fn commands(&self) -> Vec<Words> {
        let mut commands = vec![words(&["MULTI"])];
        for (account, cents) in &self.parts {
            let command = if *cents < 0 { "DECRBY" } else { "INCRBY" };
            let amount = cents.abs().to_string();
            commands.push(words(&[command, &balance_key(*account), &amount]));
        }
        for (account, cents) in &self.parts {
            let receipt = receipt_key(*account, &self.id);
            commands.push(words(&["SET", &receipt, &cents.to_string()]));
        }
        commands.push(words(&["EXEC"]));
        commands
    }

    fn note(self, till: &Till, teller: &Teller<'_>, (asked, answer): (Duration, Answer)) {
        let (came, error) = match Outcome::of(answer) {
            Outcome::Done(replies) => {
                let failed = |reply: &Reply| matches!(reply, Reply::Error(_));
                if replies.len() != 2 * self.parts.len() || replies.iter().any(failed) {
                    till.on_wrong(Wrong::Torn, format!("{} answered {replies:?}", self.id));
                }
                (Came::Done, None)
            }
            Outcome::Changed if self.kind == Kind::Purchase => {
                till.on_changed();
                (Came::Refused, None)
            }
            Outcome::Changed => (Came::Refused, Some("null without a watch".to_owned())),
            Outcome::Refused(kind) => (Came::Refused, Some(kind)),
            Outcome::Unknown(kind) => (Came::Unknown, Some(kind)),
        };
        if let Some(kind) = &error {
            till.on_error(teller.node(), kind);
            sleep(AGAIN);
        }
        till.on_payment(Payment {
            id: self.id,
            parts: self.parts,
            came,
            error,
            node: teller.node(),
            asked,
            took: till.now() - asked,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_move_money_between_two_to_four_accounts_and_take_none_from_cards() {
        let mut random = Random::new(1, "transfers");
        let mut sizes = std::collections::BTreeSet::new();
        for _ in 0..500 {
            let parts = parts(&mut random);
            sizes.insert(parts.len());
            assert_eq!(parts.iter().map(|(_, cents)| cents).sum::<i64>(), 0);
            let named: std::collections::BTreeSet<_> = parts.iter().map(|(no, _)| no).collect();
            assert_eq!(named.len(), parts.len());
            assert!(parts.iter().all(|(no, cents)| *cents > 0 || !is_card(*no)));
        }
        assert_eq!(sizes, [2, 3, 4].into());
    }
}
