//! One payment in each way, and the book that a client keeps of its own.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use rufous_base::rng::Rng;
use serde::Serialize;

use super::callers::{Ended, are_answered, exchange};
use rufous_bench::client::{Client, Reply};

/// What each card has at first, in cents.
const OPENING: i64 = 10_000_000;
/// The most that is paid at once.
const MOST: u64 = 10_000;
/// A client waits a random time below this before it begins a payment again, and below twice as long each
/// further time.
const PAUSE: Duration = Duration::from_micros(500);
const MOST_DOUBLINGS: u32 = 6;

/// How a payment is made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// `GET`s, then `SET`s.
    Plain,
    /// `WATCH` and `GET`s, then `MULTI`, `SET`s, `EXEC`; again if that replies nil.
    Watched,
    /// `MULTI`, `INCRBY`s, `EXEC`: nothing is read.
    Increments,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Watched, Self::Increments];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "GET, SET",
            Self::Watched => "WATCH, GET, MULTI, SET, EXEC",
            Self::Increments => "MULTI, INCRBY, EXEC",
        }
    }
}

/// Cards, and after them merchants, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accounts {
    pub cards: u64,
    pub merchants: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Payment {
    card: usize,
    merchant: usize,
    amount: i64,
}

impl Accounts {
    pub(crate) fn count(&self) -> usize {
        (self.cards + self.merchants) as usize
    }

    pub(crate) fn opening(&self, at: usize) -> i64 {
        if (at as u64) < self.cards { OPENING } else { 0 }
    }

    pub(crate) fn key(&self, at: usize) -> String {
        match (at as u64).checked_sub(self.cards) {
            None => format!("card:{at}"),
            Some(merchant) => format!("merchant:{merchant}"),
        }
    }

    /// From any card to any merchant.
    pub(crate) fn payment(&self, rng: &mut Rng) -> Payment {
        Payment {
            card: rng.below(self.cards) as usize,
            merchant: (self.cards + rng.below(self.merchants)) as usize,
            amount: 1 + rng.below(MOST) as i64,
        }
    }
}

/// What one client did, or several.
pub(crate) struct Book {
    accounts: Accounts,
    /// Every balance, as the acknowledged payments have it.
    pub expected: Vec<i64>,
    pub payments: u64,
    pub retries: u64,
    pub in_doubt: u64,
}

impl Book {
    pub(crate) fn new(accounts: &Accounts) -> Self {
        Self {
            accounts: *accounts,
            expected: vec![0; accounts.count()],
            payments: 0,
            retries: 0,
            in_doubt: 0,
        }
    }

    /// Those of all clients, on top of what accounts had at first.
    pub(crate) fn sum(accounts: &Accounts, books: &[Self]) -> Self {
        let mut sum = Self::new(accounts);
        for (at, expected) in sum.expected.iter_mut().enumerate() {
            let changes = books.iter().map(|book| book.expected[at]);
            *expected = accounts.opening(at) + changes.sum::<i64>();
        }
        for book in books {
            sum.payments += book.payments;
            sum.retries += book.retries;
            sum.in_doubt += book.in_doubt;
        }
        sum
    }

    /// Makes a payment, however often it has to be begun again.
    pub(crate) fn pay(
        &mut self,
        client: &mut Client,
        way: Way,
        payment: &Payment,
        rng: &mut Rng,
    ) -> Result<()> {
        let names = [payment.card, payment.merchant].map(|at| self.accounts.key(at));
        for tries in 0u32.. {
            match attempt(client, way, &names, payment.amount)? {
                Ended::Committed => {
                    self.enter(payment);
                    break;
                }
                Ended::InDoubt => {
                    self.in_doubt += 1;
                    break;
                }
                Ended::Aborted | Ended::Refused => {
                    self.retries += 1;
                    let longest = PAUSE * 2u32.pow(tries.min(MOST_DOUBLINGS));
                    std::thread::sleep(longest.mul_f64(rng.unit()));
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, payment: &Payment) {
        self.expected[payment.card] -= payment.amount;
        self.expected[payment.merchant] += payment.amount;
        self.payments += 1;
    }
}

fn attempt(
    client: &mut Client,
    way: Way,
    [card, merchant]: &[String; 2],
    amount: i64,
) -> Result<Ended> {
    let keys = [card.as_bytes(), merchant.as_bytes()];
    let gets: [&[&[u8]]; 2] = [&[b"GET", keys[0]], &[b"GET", keys[1]]];
    match way {
        Way::Plain => {
            let read = exchange(client, &gets)?;
            if !are_answered(&read)? {
                return Ok(Ended::Refused);
            }
            let [from, to] = changed(&read, amount)?;
            let sets: [&[&[u8]]; 2] = [
                &[b"SET", keys[0], from.as_bytes()],
                &[b"SET", keys[1], to.as_bytes()],
            ];
            if are_answered(&exchange(client, &sets)?)? {
                Ok(Ended::Committed)
            } else {
                // The other write may have been done.
                Ok(Ended::InDoubt)
            }
        }
        Way::Watched => {
            let watch: &[&[u8]] = &[b"WATCH", keys[0], keys[1]];
            let read = exchange(client, &[watch, gets[0], gets[1]])?;
            if !are_answered(&read)? {
                exchange(client, &[&[b"UNWATCH"]])?;
                return Ok(Ended::Refused);
            }
            let [from, to] = changed(&read[1..], amount)?;
            let sets: [&[&[u8]]; 2] = [
                &[b"SET", keys[0], from.as_bytes()],
                &[b"SET", keys[1], to.as_bytes()],
            ];
            let replies = exchange(client, &[&[b"MULTI"], sets[0], sets[1], &[b"EXEC"]])?;
            Ended::of(&replies[3])
        }
        Way::Increments => {
            let (minus, plus) = ((-amount).to_string(), amount.to_string());
            let debit: &[&[u8]] = &[b"INCRBY", keys[0], minus.as_bytes()];
            let credit: &[&[u8]] = &[b"INCRBY", keys[1], plus.as_bytes()];
            let replies = exchange(client, &[&[b"MULTI"], debit, credit, &[b"EXEC"]])?;
            Ended::of(&replies[3])
        }
    }
}

/// The balances after a payment, of those that were read.
fn changed(read: &[Reply], amount: i64) -> Result<[String; 2]> {
    let balance = |reply: &Reply| -> Result<i64> {
        match reply {
            Reply::Bulk(text) => {
                let text = std::str::from_utf8(text)?;
                text.parse().context("a balance")
            }
            other => bail!("a balance is {other:?}"),
        }
    };
    match read {
        [from, to] => {
            let (from, to) = (balance(from)? - amount, balance(to)? + amount);
            Ok([from.to_string(), to.to_string()])
        }
        others => bail!("{} balances", others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payments_take_from_a_card_and_give_to_a_merchant() {
        let accounts = Accounts {
            cards: 3,
            merchants: 2,
        };
        assert_eq!(accounts.key(2), "card:2");
        assert_eq!(accounts.key(3), "merchant:0");
        let mut rng = Rng::new(1);
        let mut books = [Book::new(&accounts), Book::new(&accounts)];
        let mut paid = 0;
        for at in 0..100 {
            let payment = accounts.payment(&mut rng);
            assert!(payment.card < 3 && (3..5).contains(&payment.merchant));
            assert!(payment.amount >= 1 && payment.amount <= MOST as i64);
            books[at % 2].enter(&payment);
            paid += payment.amount;
        }
        let all = Book::sum(&accounts, &books);
        assert_eq!(all.payments, 100);
        // What cards have lost is what merchants have.
        assert_eq!(all.expected[3..].iter().sum::<i64>(), paid);
        assert_eq!(all.expected.iter().sum::<i64>(), 3 * OPENING);
    }

    #[test]
    fn balances_are_changed_by_the_amount() {
        let read = [Reply::Bulk(b"100".to_vec()), Reply::Bulk(b"-5".to_vec())];
        assert_eq!(changed(&read, 30).unwrap(), ["70", "25"]);
        assert!(changed(&[Reply::Nil, Reply::Nil], 1).is_err());
    }
}
