//! What the cluster has when no client works: open transactions, receipts, balances.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rufous_bench::client::{Client, Reply, encode};

use super::clients::{cents, words};
use super::ledger::{ALL, Payment, balance_key, opening, receipt_key};

/// A healthy cluster answers within so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Without clients all transactions have to be over within so long: longer than any that waits.
const SETTLES: Duration = Duration::from_secs(20);
/// Between two looks. What one node has sent is at another one by then.
const LOOKS: Duration = Duration::from_millis(200);
/// Keys that are read at once.
const AT_ONCE: usize = 64;

/// Writes the balances of the beginning.
pub fn open(at: SocketAddr) -> Result<()> {
    for (account, cents) in opening().iter().enumerate() {
        let command = words(&["SET", &balance_key(account), &cents.to_string()]);
        until_answered(at, &[command])?;
    }
    Ok(())
}

/// How long it took until no node had an open transaction, or what nodes have.
pub fn until_settled(nodes: &[SocketAddr]) -> Result<Result<Duration, String>> {
    let since = Instant::now();
    let mut free = 0;
    loop {
        let of = |at: &SocketAddr| Ok((*at, open_transactions(*at)?));
        let open: Vec<(SocketAddr, u64)> = nodes.iter().map(of).collect::<Result<_>>()?;
        let none = open.iter().all(|(_, count)| *count == 0);
        // A letter that was under way at the first look has come at the second.
        free = if none { free + 1 } else { 0 };
        if free == 2 {
            return Ok(Ok(since.elapsed()));
        }
        if since.elapsed() > SETTLES && !none {
            return Ok(Err(format!("open transactions of nodes: {open:?}")));
        }
        sleep(LOOKS);
    }
}

/// Those of which a node has an entry or an origin.
fn open_transactions(at: SocketAddr) -> Result<u64> {
    let replies = until_answered(at, &[words(&["INFO", "cluster"])])?;
    let info = replies.into_iter().next().context("no reply")?.text()?;
    let fields = [
        "cluster_transactions_open:",
        "cluster_transactions_waiting:",
    ];
    let values = fields.map(|field| {
        let value = info.lines().find_map(|line| line.strip_prefix(field));
        value.with_context(|| format!("INFO cluster has no {field}"))
    });
    values.into_iter().try_fold(0, |sum, value| {
        let count: u64 = value?.trim().parse().context("a count")?;
        Ok(sum + count)
    })
}

pub fn balances(at: SocketAddr) -> Result<Vec<i64>> {
    let keys: Vec<_> = (0..ALL).map(balance_key).collect();
    let read = read(at, &keys)?;
    ensure!(read.iter().all(Option::is_some), "balances: {read:?}");
    Ok(read.into_iter().flatten().collect())
}

/// Payments with their receipts, as nodes in turn show them.
pub fn receipts(
    nodes: &[SocketAddr],
    payments: Vec<Payment>,
) -> Result<Vec<(Payment, Vec<Option<i64>>)>> {
    let keys: Vec<_> = { payments.iter() }
        .flat_map(|payment| {
            let keys = payment.parts.iter();
            keys.map(|(account, _)| receipt_key(*account, &payment.id))
        })
        .collect();
    let mut read_all = Vec::new();
    for (turn, keys) in keys.chunks(AT_ONCE).enumerate() {
        read_all.extend(read(nodes[turn % nodes.len()], keys)?);
    }
    let mut read_all = read_all.into_iter();
    let of = |payment: Payment| {
        let receipts = read_all.by_ref().take(payment.parts.len()).collect();
        (payment, receipts)
    };
    Ok(payments.into_iter().map(of).collect())
}

fn read(at: SocketAddr, keys: &[String]) -> Result<Vec<Option<i64>>> {
    let commands: Vec<_> = keys.iter().map(|key| words(&["GET", key])).collect();
    let replies = until_answered(at, &commands)?;
    replies
        .iter()
        .zip(keys)
        .map(|(reply, key)| match reply {
            Reply::Nil => Ok(None),
            reply => { cents(reply).map(Some) }.with_context(|| format!("{key}: {reply:?}")),
        })
        .collect()
}

/// Sends commands that may be executed twice until none is answered with an error.
fn until_answered(at: SocketAddr, commands: &[Vec<String>]) -> Result<Vec<Reply>> {
    let since = Instant::now();
    loop {
        let replies = once(at, commands);
        let error = match &replies {
            Ok(replies) => { replies.iter() }.find(|reply| matches!(reply, Reply::Error(_))),
            Err(_) => None,
        };
        if let (Ok(_), None) = (&replies, error) {
            return replies;
        }
        if since.elapsed() > PATIENCE {
            bail!("{at} answered {:?}: {error:?}", commands.first());
        }
        sleep(LOOKS);
    }
}

fn once(at: SocketAddr, commands: &[Vec<String>]) -> Result<Vec<Reply>> {
    let mut client = Client::connect_within(at, PATIENCE)?;
    let mut bytes = Vec::new();
    for words in commands {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        encode(&mut bytes, &words);
    }
    client.send(&bytes)?;
    commands.iter().map(|_| client.receive()).collect()
}
