//! Clients that read a reply before they send the next request, in a thread each, and the cluster under them: how
//! transactions end, and how long requests take that are sent at fixed times.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;

use rufous_bench::client::{Client, Reply, encode};
use rufous_bench::loadgen::latency::Latency;
use rufous_bench::nodes::{Nodes, Program};
use rufous_bench::sections;

/// The log as it is everywhere here.
pub(crate) const LOG: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];
/// Errors that say that nothing was done, and that the request can be sent again.
const REFUSED: [&str; 3] = ["TRYAGAIN", "CLUSTERDOWN", "EXECABORT"];
/// The error of a transaction that may still be executed.
const UNKNOWN: &str = "UNKNOWNRESULT";

/// Starts a cluster with its log on, and tells the version of its nodes.
pub(crate) fn cluster(
    program: &Program,
    nodes: usize,
    workers: usize,
    copies: usize,
) -> Result<(Nodes, String)> {
    let mut all = Nodes::new(program.plan(workers, copies)?.with(&LOG))?;
    for _ in 0..nodes {
        all.start()?;
    }
    all.until_whole()?;
    let info = all.running()[0].client()?.call(&["INFO", "server"])?;
    let version = sections::version(&info.text()?);
    Ok((all, version))
}

/// The plain ports of all nodes.
pub(crate) fn plain(nodes: &Nodes) -> Vec<SocketAddr> {
    nodes.running().iter().map(|node| node.plain).collect()
}

/// See the module's description.
pub(crate) struct Callers {
    clients: Vec<Client>,
}

impl Callers {
    /// So many clients at each of these servers.
    pub(crate) fn connect(servers: &[SocketAddr], each: usize) -> Result<Self> {
        let at = servers.iter().flat_map(|at| std::iter::repeat_n(*at, each));
        let clients: Result<_> = at.map(Client::connect).collect();
        Ok(Self { clients: clients? })
    }

    pub(crate) fn count(&self) -> usize {
        self.clients.len()
    }

    /// What each client comes to, all at once; `call` is told the client's number.
    pub(crate) fn run<T: Send>(
        &mut self,
        call: impl Fn(usize, &mut Client) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let call = &call;
        std::thread::scope(|scope| {
            let clients = self.clients.iter_mut().enumerate();
            let threads: Vec<_> = clients
                .map(|(no, client)| scope.spawn(move || call(no, client)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|result| result.map_err(|_| anyhow!("a client panicked"))?)
                .collect()
        })
    }
}

/// Sends commands in one write, and receives their replies.
pub(crate) fn exchange(client: &mut Client, commands: &[&[&[u8]]]) -> Result<Vec<Reply>> {
    let mut out = Vec::new();
    for words in commands {
        encode(&mut out, words);
    }
    client.send(&out)?;
    commands.iter().map(|_| client.receive()).collect()
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ended {
    Committed,
    /// Another client has changed what it read.
    Aborted,
    /// The cluster was not ready for it, and nothing was done.
    Refused,
    /// The client does not know.
    InDoubt,
}

impl Ended {
    /// By the reply of `EXEC` or `COMMIT`.
    pub(crate) fn of(reply: &Reply) -> Result<Self> {
        match reply {
            Reply::Array(replies) => match replies.iter().find_map(refusal) {
                None => Ok(Self::Committed),
                Some(text) => bail!("in a transaction the server answered: {text}"),
            },
            Reply::Nil => Ok(Self::Aborted),
            Reply::Error(text) if text.starts_with(UNKNOWN) => Ok(Self::InDoubt),
            Reply::Error(text) if is_refusal(text) => Ok(Self::Refused),
            other => bail!("a transaction ended with {other:?}"),
        }
    }
}

fn refusal(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(text) => Some(text),
        _ => None,
    }
}

fn is_refusal(text: &str) -> bool {
    REFUSED.iter().any(|code| text.starts_with(code))
}

/// Whether none of the replies is an error; fails where one is other than a refusal.
pub(crate) fn are_answered(replies: &[Reply]) -> Result<bool> {
    let errors: Vec<&str> = replies.iter().filter_map(refusal).collect();
    match errors.iter().find(|text| !is_refusal(text)) {
        Some(text) => bail!("the server answered: {text}"),
        None => Ok(errors.is_empty()),
    }
}

/// Transactions by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Counts {
    pub committed: u64,
    pub aborted: u64,
    pub refused: u64,
    pub in_doubt: u64,
}

impl Counts {
    pub(crate) fn count(&mut self, ended: Ended) {
        *match ended {
            Ended::Committed => &mut self.committed,
            Ended::Aborted => &mut self.aborted,
            Ended::Refused => &mut self.refused,
            Ended::InDoubt => &mut self.in_doubt,
        } += 1;
    }

    pub(crate) fn sum<'c>(all: impl IntoIterator<Item = &'c Self>) -> Self {
        all.into_iter().fold(Self::default(), |sum, one| Self {
            committed: sum.committed + one.committed,
            aborted: sum.aborted + one.aborted,
            refused: sum.refused + one.refused,
            in_doubt: sum.in_doubt + one.in_doubt,
        })
    }

    /// Aborted of those that were committed or aborted, in percent.
    pub(crate) fn aborted_percent(&self) -> f64 {
        let ended = self.committed + self.aborted;
        self.aborted as f64 * 100.0 / ended.max(1) as f64
    }
}

/// When the clients of a fixed rate send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// Requests a second, of all clients together.
    pub rate: f64,
    pub time: Duration,
}

impl Schedule {
    /// How often each of so many clients sends.
    fn interval(&self, clients: usize) -> Duration {
        Duration::from_secs_f64(clients as f64 / self.rate.max(1e-3))
    }

    /// Sends at the times of client `no` of so many. A request that is late since the one before it took
    /// longer than the interval counts from the time at which it was due. `call` tells whether its request counts.
    pub(crate) fn keep(
        &self,
        (no, clients): (usize, usize),
        began: Instant,
        mut call: impl FnMut() -> Result<bool>,
    ) -> Result<Latency> {
        let (interval, mut latency) = (self.interval(clients), Latency::new()?);
        let offset = interval.mul_f64(no as f64 / clients as f64);
        let mut due = offset;
        while due < self.time {
            let early = due.checked_sub(began.elapsed());
            std::thread::sleep(early.unwrap_or_default());
            if call()? {
                latency.record(began.elapsed().saturating_sub(due), 1);
            }
            due += interval;
        }
        Ok(latency)
    }
}

/// All of them in one.
pub(crate) fn merged(all: &[Latency]) -> Result<Latency> {
    let mut sum = Latency::new()?;
    for one in all {
        sum.merge(one)?;
    }
    Ok(sum)
}

/// Writes keys `k00000000` and on, with this value.
pub(crate) fn fill(client: &mut Client, keys: u64, value: &[u8]) -> Result<()> {
    for from in (0..keys).step_by(500) {
        let (mut out, some) = (Vec::new(), from..keys.min(from + 500));
        for number in some.clone() {
            encode(&mut out, &[b"SET", key(number).as_bytes(), value]);
        }
        client.send(&out)?;
        for _ in some {
            client.receive()?.text().context("writing keys")?;
        }
    }
    Ok(())
}

pub(crate) fn key(number: u64) -> String {
    format!("k{number:08}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_end_as_their_last_reply_says() {
        let error = |text: &str| Reply::Error(text.into());
        let of = |reply: &Reply| Ended::of(reply).ok();
        let done = Reply::Array(vec![Reply::Simple("OK".into())]);
        assert_eq!(of(&done), Some(Ended::Committed));
        assert_eq!(of(&Reply::Nil), Some(Ended::Aborted));
        assert_eq!(of(&error("TRYAGAIN a slot moves")), Some(Ended::Refused));
        assert_eq!(of(&error("UNKNOWNRESULT late")), Some(Ended::InDoubt));
        assert_eq!(of(&error("ERR no")), None);
        assert_eq!(of(&Reply::Array(vec![error("WRONGTYPE")])), None);
        assert_eq!(are_answered(std::slice::from_ref(&done)).ok(), Some(true));
        assert_eq!(are_answered(&[error("TRYAGAIN")]).ok(), Some(false));
        assert!(are_answered(&[done, error("ERR no")]).is_err());
    }

    #[test]
    fn only_transactions_with_an_end_count_for_the_rate() {
        let mut counts = Counts::default();
        assert_eq!(counts.aborted_percent(), 0.0);
        let ends = [Ended::Committed, Ended::Committed, Ended::Committed];
        ends.into_iter().for_each(|ended| counts.count(ended));
        counts.count(Ended::Aborted);
        counts.count(Ended::Refused);
        assert_eq!(counts.aborted_percent(), 25.0);
        let twice = Counts::sum([&counts, &counts]);
        assert_eq!((twice.committed, twice.refused), (6, 2));
    }

    #[test]
    fn late_requests_count_from_the_time_at_which_they_were_due() {
        let schedule = Schedule {
            rate: 1000.0,
            time: Duration::from_millis(10),
        };
        assert_eq!(schedule.interval(2), Duration::from_millis(2));
        let (began, mut calls) = (Instant::now(), 0);
        let latency = schedule.keep((1, 2), began, || {
            calls += 1;
            // The first takes as long as all others together.
            std::thread::sleep(Duration::from_millis(if calls == 1 { 10 } else { 0 }));
            Ok(calls != 3)
        });
        let latency = latency.unwrap();
        // At 1, 3, 5, 7 and 9 ms; one does not count.
        assert_eq!((calls, latency.count()), (5, 4));
        assert!(latency.percentile_ms(50.0) >= 3.9 && latency.max_ms() >= 9.9);
    }
}
