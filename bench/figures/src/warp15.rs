//! Payments by card [Warp §5, Fig. 15]: each takes an amount from a card's account and gives it to a merchant's, by clients
//! that read balances, change them, and write them. In the end every balance is compared with the payments that were
//! acknowledged.

use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use rufous_base::rng::Rng;
use serde::Serialize;

use super::callers::{self, Callers};
use super::options::Common;
use super::warp15_pages;
use super::warp15_payments::{Accounts, Book, Way};
use rufous_bench::nodes::Program;
use rufous_bench::options::peer;
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;
use rufous_bench::sections;
use rufous_bench::servers::{Server, on_path};

pub(crate) const NODES: usize = 3;
pub(crate) const COPIES: usize = 2;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Payments in each row; 1200000 are those of the paper [default: 30000, quick 600]
    #[arg(long)]
    pub payments: Option<u64>,
    /// Cards [default: 10000, quick 100]
    #[arg(long)]
    pub cards: Option<u64>,
    /// Merchants [default: 100, quick 10]
    #[arg(long)]
    pub merchants: Option<u64>,
    /// Clients at each node; Redis has as many as all nodes
    #[arg(long, default_value_t = 8)]
    pub clients: usize,
    /// Leave Redis out
    #[arg(long)]
    pub no_peers: bool,
    #[command(flatten)]
    pub program: Program,
}

impl Options {
    pub(crate) fn payments(&self) -> u64 {
        self.common.pick(self.payments, 30_000, 600).max(1)
    }

    pub(crate) fn accounts(&self) -> Accounts {
        Accounts {
            cards: self.common.pick(self.cards, 10_000, 100).max(1),
            merchants: self.common.pick(self.merchants, 100, 10).max(1),
        }
    }
}

/// Payments in one way at one store, and what the balances are in the end.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub store: &'static str,
    pub way: Way,
    pub payments: u64,
    pub seconds: f64,
    /// Payments that were begun again, each time that they were.
    pub retries: u64,
    /// The client does not know whether they were made.
    pub in_doubt: u64,
    pub audit: Audit,
}

/// What the balances differ from those that the acknowledged payments come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Audit {
    pub accounts: u64,
    /// Balances that differ.
    pub wrong: u64,
    /// What was taken from cards too little, and what was given to merchants too little.
    pub not_debited: i64,
    pub not_credited: i64,
}

impl Audit {
    fn of(accounts: &Accounts, expected: &[i64], actual: &[i64]) -> Self {
        let mut audit = Self {
            accounts: expected.len() as u64,
            ..Self::default()
        };
        let cards = accounts.cards as usize;
        for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
            let differs = actual - expected;
            audit.wrong += u64::from(differs != 0);
            if at < cards {
                audit.not_debited += differs;
            } else {
                audit.not_credited -= differs;
            }
        }
        audit
    }
}

/// Runs it, prints it, and writes the pages where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let (mut nodes, version) = callers::cluster(&options.program, NODES, 1, COPIES)?;
    let progress = Progress::new("payments", 5);
    let clients = options.clients.max(1);
    let mut bench = Bench {
        options,
        store: "Rufous, 3 nodes with 2 copies",
        callers: Callers::connect(&callers::plain(&nodes), clients)?,
        progress: &progress,
    };
    let mut rows = Vec::new();
    for way in Way::ALL {
        rows.push(bench.row(way)?);
    }
    nodes.all_run()?;
    drop((bench, nodes));
    let mut versions = vec![("rufous".to_owned(), version)];
    if !options.no_peers && on_path("redis-server").is_some() {
        let redis = peer("redis", "redis-server", "").with(&callers::LOG);
        let server = Server::start(&redis)?;
        let info = server.client()?.call(&["INFO", "server"])?.text()?;
        versions.push(("redis".to_owned(), sections::version(&info)));
        let mut bench = Bench {
            options,
            store: "Redis, one",
            callers: Callers::connect(&[server.addr], clients * NODES)?,
            progress: &progress,
        };
        for way in [Way::Plain, Way::Watched] {
            rows.push(bench.row(way)?);
        }
    }
    let report = warp15_pages::report(options, &rows);
    let charts = [("warp-15.svg", warp15_pages::chart(&rows).svg()?)];
    let common = &options.common;
    common.publish(&machine, versions, &[report], &charts)
}

/// A store under clients.
struct Bench<'o> {
    options: &'o Options,
    store: &'static str,
    callers: Callers,
    progress: &'o Progress,
}

impl Bench<'_> {
    fn row(&mut self, way: Way) -> Result<Row> {
        self.progress
            .doing(&format!("{}: {}", self.store, way.name()));
        let (accounts, payments) = (self.options.accounts(), self.options.payments());
        self.open(&accounts)?;
        let (clients, began) = (self.callers.count() as u64, Instant::now());
        let books = self.callers.run(|no, client| {
            let no = no as u64;
            let mut book = Book::new(&accounts);
            let mut rng = Rng::new(no);
            // As many as the others, or one more.
            for _ in (no..payments).step_by(clients as usize) {
                let payment = accounts.payment(&mut rng);
                book.pay(client, way, &payment, &mut rng)?;
            }
            Ok(book)
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let all = Book::sum(&accounts, &books);
        let actual = self.balances(&accounts)?;
        self.progress.advance(1);
        Ok(Row {
            store: self.store,
            way,
            payments: all.payments,
            seconds,
            retries: all.retries,
            in_doubt: all.in_doubt,
            audit: Audit::of(&accounts, &all.expected, &actual),
        })
    }

    /// Every account with its balance at the start; each client writes some.
    fn open(&mut self, accounts: &Accounts) -> Result<()> {
        let clients = self.callers.count();
        self.callers.run(|no, client| {
            for at in (no..accounts.count()).step_by(clients) {
                let balance = accounts.opening(at).to_string();
                client.call(&["SET", &accounts.key(at), &balance])?.text()?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn balances(&mut self, accounts: &Accounts) -> Result<Vec<i64>> {
        let clients = self.callers.count();
        let read = self.callers.run(|no, client| {
            let mine = (no..accounts.count()).step_by(clients);
            mine.map(|at| {
                let balance = client.call(&["GET", &accounts.key(at)])?.text()?;
                let balance: i64 = balance.parse().context("a balance")?;
                Ok((at, balance))
            })
            .collect::<Result<Vec<_>>>()
        })?;
        let mut balances = vec![0; accounts.count()];
        for (at, balance) in read.into_iter().flatten() {
            balances[at] = balance;
        }
        Ok(balances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_are_compared_by_what_is_lost_on_each_side() {
        let accounts = Accounts {
            cards: 2,
            merchants: 1,
        };
        let expected = [100, 200, 50];
        let exact = Audit::of(&accounts, &expected, &expected);
        assert_eq!((exact.accounts, exact.wrong), (3, 0));
        // The second card lost a debit of 7, the merchant a credit of 9.
        let audit = Audit::of(&accounts, &expected, &[100, 207, 41]);
        let lost = (audit.wrong, audit.not_debited, audit.not_credited);
        assert_eq!(lost, (2, 7, 9));
    }
}
