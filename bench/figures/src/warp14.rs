//! Transactions of eight writes over 4 to 256 servers in one process: the heads and origins are those of the server, their
//! messages take a server's time at each end [Warp §5, Figure 14].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rufous_base::limits::SLOTS;
use rufous_base::rng::Rng;
use rufous_base::slot::slot_of;
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::stats::Target;
use rufous_bench::table::Table;
use rufous_linear::{
    Access, Book, Head, Later, Message, Origin, Outcome, Output, Part, Stamp, State, To,
    Transaction, TxnId,
};
use serde_json::json;

use super::callers::key;
use super::lines::{Line, LineChart};
use super::options::{Common, rufous};

const SERVERS: [usize; 7] = [4, 8, 16, 32, 64, 128, 256];
const QUICK: [usize; 2] = [4, 8];
/// Operations of a transaction.
const SIZE: usize = 8;
/// Clients of each server, with one transaction under way each.
const CLIENTS: usize = 64;
/// Keys for each server: the paper's clients draw from all keys of a cluster that grows.
const KEYS: u64 = 100_000;
/// A message is so long under way.
const LINK_US: f64 = 50.0;
/// What transactions a second keep of a straight line through zero.
const STRAIGHT: Target = Target::AtLeast(0.95);

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// CPU time of a server for each end of a message, in µs, with what the message brings about
    #[arg(long, default_value_t = 8.0)]
    pub message_us: f64,
    /// Transactions for each server that are counted [default: 400, quick 20]
    #[arg(long)]
    pub transactions: Option<usize>,
}

/// Keys of which only the order of transactions matters.
struct Keys;

impl State<Access> for Keys {
    fn version(&self, _: &[u8]) -> Option<Stamp> {
        None
    }

    fn is_apart(&mut self, _: &Transaction<Access>) -> bool {
        true
    }

    fn apply(&mut self, _: &Transaction<Access>, _: u16, _: Stamp, _: Later<'_>) -> Vec<u8> {
        b"+OK\r\n".to_vec()
    }
}

/// The head of a slot, and what waits for its copy.
struct Seat {
    head: Head<Access>,
    /// Records so far, and how many the copy has.
    records: u64,
    kept: u64,
    gated: VecDeque<(u64, To, Message<Access>)>,
}

/// What arrives at a server.
enum Arrival {
    /// For the head of a slot, from one, or from the node of a client.
    Slot(u16, Option<u16>, Message<Access>),
    /// For the node of a client, from the head of a slot.
    Origin(u16, Message<Access>),
    /// A record of a slot, for its copy.
    Record(u16),
    /// The copy has one more.
    Kept(u16),
}

struct Event {
    server: usize,
    arrival: Arrival,
}

/// All servers, and time.
struct World {
    servers: usize,
    message_us: f64,
    rng: Rng,
    seats: BTreeMap<u16, Seat>,
    origins: Vec<Origin<Access>>,
    /// Until when each server has something to do.
    busy_us: Vec<f64>,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    said: u64,
    /// Time that each server has spent.
    spent_us: Vec<f64>,
    numbers: u64,
    done: u64,
    now_us: f64,
}

/// Of one number of servers.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Row {
    servers: usize,
    /// Transactions a second.
    rate: f64,
    /// Messages between servers for a transaction.
    messages: f64,
    /// Part of their time in which servers have something to do, and in which the busiest one has.
    busy: f64,
    busiest: f64,
}

impl World {
    fn new(servers: usize, message_us: f64) -> Self {
        Self {
            servers,
            message_us,
            rng: Rng::new(servers as u64),
            seats: BTreeMap::new(),
            origins: (0..servers).map(|no| Origin::new(no as u16, 1)).collect(),
            busy_us: vec![0.0; servers],
            due: BinaryHeap::new(),
            events: BTreeMap::new(),
            said: 0,
            spent_us: vec![0.0; servers],
            numbers: 0,
            done: 0,
            now_us: 0.0,
        }
    }

    /// The servers that have a slot: its head, and its copy.
    fn places(&self, slot: u16) -> [usize; 2] {
        let mut rng = Rng::new(u64::from(slot) ^ 0x510_7510);
        let head = usize::from(slot) * self.servers / SLOTS;
        let copy = (head + 1 + rng.below(self.servers as u64 - 1) as usize) % self.servers;
        [head, copy]
    }

    /// A server says something to another one, or to itself.
    fn say(&mut self, from: usize, to: usize, arrival: Arrival) {
        let mut at_us = self.now_us;
        if from != to {
            self.said += 1;
            self.busy_us[from] += self.message_us;
            self.spent_us[from] += self.message_us;
            at_us = self.busy_us[from] + LINK_US;
        }
        self.numbers += 1;
        self.due.push(Reverse((at_us as u64, self.numbers)));
        let server = to;
        self.events.insert(self.numbers, Event { server, arrival });
    }

    fn submit(&mut self, server: usize) -> Result<()> {
        let keys = KEYS * self.servers as u64;
        let parts = (0..SIZE).map(|_| {
            let name = key(self.rng.below(keys));
            Part {
                slot: slot_of(name.as_bytes()),
                key: name.as_bytes().into(),
                ops: vec![Access::Write],
                expects: None,
            }
        });
        let id = self.origins[server].next_id();
        let txn = Transaction::new(id, parts.collect(), Arc::default()).context("parts")?;
        let txn = txn.ordered(1, |slot| self.places(slot)[0]);
        let mut out = Vec::new();
        self.origins[server].on_submit(Arc::new(txn), &mut out);
        self.origin_says(server, out);
        Ok(())
    }

    fn origin_says(&mut self, server: usize, out: Vec<Output<Access>>) {
        for output in out {
            if let Output::Send(To::Slot(slot), message) = output {
                let head = self.places(slot)[0];
                self.say(server, head, Arrival::Slot(slot, None, message));
            }
        }
    }

    /// The head of a slot acts; then those beside it that it hands something to.
    fn act(&mut self, slot: u16, act: impl FnOnce(&mut Head<Access>, &mut Vec<Output<Access>>)) {
        let mut beside = self.act_alone(slot, act);
        while let Some((slot, ahead)) = beside.pop_front() {
            beside.extend(self.act_alone(slot, |head, out| head.on_ahead(ahead, &mut Keys, out)));
        }
    }

    fn act_alone(
        &mut self,
        slot: u16,
        act: impl FnOnce(&mut Head<Access>, &mut Vec<Output<Access>>),
    ) -> VecDeque<(u16, rufous_linear::Ahead<Access>)> {
        let [head, copy] = self.places(slot);
        let mut seat = self.seats.remove(&slot).unwrap_or_else(|| Seat {
            head: Head::apart(Book::new(slot)),
            records: 0,
            kept: 0,
            gated: VecDeque::new(),
        });
        let (mut out, mut beside) = (Vec::new(), VecDeque::new());
        act(&mut seat.head, &mut out);
        for output in out {
            match output {
                Output::Record(_) => {
                    seat.records += 1;
                    self.say(head, copy, Arrival::Record(slot));
                }
                Output::Send(to, message) | Output::SendSynced(to, message) => {
                    seat.gated.push_back((seat.records, to, message));
                }
                Output::Beside(next, ahead) if self.places(next)[0] == head => {
                    beside.push_back((next, ahead));
                }
                Output::Beside(..) => {}
            }
        }
        self.release(slot, &mut seat);
        if !seat.head.is_idle() || seat.kept < seat.records {
            self.seats.insert(slot, seat);
        }
        beside
    }

    /// Messages leave that wait for no record any more.
    fn release(&mut self, slot: u16, seat: &mut Seat) {
        let head = self.places(slot)[0];
        while let Some((_, to, message)) = seat.gated.pop_front_if(|(at, ..)| *at <= seat.kept) {
            match to {
                To::Slot(next) => {
                    let there = self.places(next)[0];
                    self.say(head, there, Arrival::Slot(next, Some(slot), message));
                }
                To::Origin { node, .. } => {
                    self.say(head, usize::from(node), Arrival::Origin(slot, message));
                }
            }
        }
    }

    fn hear(&mut self, server: usize, arrival: Arrival) -> Result<()> {
        match arrival {
            Arrival::Slot(slot, from, message) => {
                self.act(slot, |head, out| {
                    head.on_message(from, message, &mut Keys, out);
                });
            }
            Arrival::Record(slot) => {
                let head = self.places(slot)[0];
                self.say(server, head, Arrival::Kept(slot));
            }
            Arrival::Kept(slot) => {
                if let Some(mut seat) = self.seats.remove(&slot) {
                    seat.kept += 1;
                    self.release(slot, &mut seat);
                    if !seat.head.is_idle() || seat.kept < seat.records {
                        self.seats.insert(slot, seat);
                    }
                }
            }
            Arrival::Origin(slot, Message::Outcome { txn, outcome, told }) => {
                self.on_outcome(server, slot, (txn, outcome, told))?;
            }
            Arrival::Origin(..) => {}
        }
        Ok(())
    }

    fn on_outcome(
        &mut self,
        server: usize,
        slot: u16,
        outcome: (TxnId, Outcome, Arc<[u8]>),
    ) -> Result<()> {
        let mut out = Vec::new();
        let ended = self.origins[server].on_outcome(outcome, slot, &mut out);
        self.origin_says(server, out);
        if let Some(ended) = ended {
            ensure!(
                ended.outcome == Outcome::Committed,
                "a transaction was aborted"
            );
            self.done += 1;
            self.submit(server)?;
        }
        Ok(())
    }

    /// Goes on until so many transactions are done.
    fn run(&mut self, done: u64) -> Result<()> {
        while self.done < done {
            let Reverse((at_us, number)) = self.due.pop().context("nothing is under way")?;
            let Event { server, arrival } = self.events.remove(&number).context("an event")?;
            // It is heard when the server has done everything before it.
            self.now_us = (at_us as f64).max(self.busy_us[server]) + self.message_us;
            self.busy_us[server] = self.now_us;
            self.spent_us[server] += self.message_us;
            self.hear(server, arrival)?;
        }
        Ok(())
    }
}

fn measure(servers: usize, options: &Options) -> Result<Row> {
    let mut world = World::new(servers, options.message_us);
    for server in (0..servers).cycle().take(servers * CLIENTS) {
        world.submit(server)?;
    }
    let all = servers as u64;
    // What is under way at the beginning is not counted.
    world.run(all * CLIENTS as u64)?;
    let (began_us, said, done) = (world.now_us, world.said, world.done);
    let before = world.spent_us.clone();
    let count = options.common.pick(options.transactions, 400, 20) as u64;
    world.run(done + all * count)?;
    let took_us = world.now_us - began_us;
    let counted = (world.done - done) as f64;
    let spent = world.spent_us.iter().zip(&before);
    let busy: Vec<f64> = spent.map(|(now, then)| (now - then) / took_us).collect();
    Ok(Row {
        servers,
        rate: counted * 1e6 / took_us,
        messages: (world.said - said) as f64 / counted,
        busy: busy.iter().sum::<f64>() / servers as f64,
        busiest: busy.iter().copied().fold(0.0, f64::max),
    })
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let all: &[usize] = if options.common.quick {
        &QUICK
    } else {
        &SERVERS
    };
    let progress = Progress::new("servers", all.len() as u64);
    let mut rows = Vec::new();
    for &servers in all {
        progress.doing(&format!("{servers} servers"));
        rows.push(measure(servers, options)?);
        progress.advance(1);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let charts = [("warp-14.svg", chart(&rows).svg()?)];
    let reports = [report(&rows, options.message_us)];
    let common = &options.common;
    common.publish(&machine, rufous(version), &reports, &charts)
}

/// The rate of one server, as a part of what one of the first row's has.
fn straight(rows: &[Row], row: &Row) -> f64 {
    let each = |row: &Row| row.rate / row.servers as f64;
    each(row) / each(&rows[0])
}

fn report(rows: &[Row], message_us: f64) -> Report {
    let headers = "servers | transactions/s | for each server | of the first row's | messages for a transaction | busy, % | the busiest, % | target";
    let mut table = Table::new(0, headers);
    for row in rows {
        let part = straight(rows, row);
        table.row(vec![
            row.servers.to_string(),
            format!("{:.0}", row.rate),
            format!("{:.0}", row.rate / row.servers as f64),
            format!("{part:.3}"),
            format!("{:.1}", row.messages),
            format!("{:.0}", row.busy * 100.0),
            format!("{:.0}", row.busiest * 100.0),
            format!("{} {}", STRAIGHT.show(), STRAIGHT.verdict(part)),
        ]);
    }
    Report {
        slug: "warp-14",
        part_of: None,
        title: "Transactions of eight over 4 to 256 servers".into(),
        command: "cargo xtask figures warp14".into(),
        method: vec![
            format!(
                "Servers in one process, in virtual time. The heads of slots and the origins of transactions are those of the server \
                 (`rufous-linear`); chains have two copies, and a head's messages wait until the copy has what was recorded before them. \
                 {CLIENTS} clients at each server have one transaction of {SIZE} writes under way each, on keys drawn evenly from {KEYS} for each server."
            ),
            format!(
                "A server does one thing at a time: each end of a message costs it {message_us} µs, and a message between two slots of one server one end. That is the CPU time of a transaction \
                 of eight writes over three nodes ([warp-13](warp-13.md)), divided by the ends of its messages. A message is under way for {LINK_US:.0} µs. There are no faults, and no coordinator."
            ),
            "![Transactions a second](warp-14.svg)".into(),
        ],
        table,
        chart: None,
        notes: vec![
            "With four servers a quarter of the messages between slots stay on one server, with many hardly any, so a transaction costs a fifth more. From 32 servers on it costs the same."
                .into(),
            "Transactions visit slots in the order of servers. The first slot of a transaction has more to say than the others, and it is more often at a server with a low number: these are the first to be busy. What a server has to say is counted when it is decided, so the busiest may have a little more than 100 %."
                .into(),
        ],
        data: json!({ "rows": rows, "message_us": message_us }),
    }
}

fn chart(rows: &[Row]) -> LineChart {
    let line = |name: &str, of: &dyn Fn(&Row) -> f64| {
        let points: Vec<_> = rows
            .iter()
            .map(|row| (row.servers as f64, of(row)))
            .collect();
        Line {
            name: name.into(),
            curve: points.clone(),
            measured: points,
        }
    };
    let first = rows[0];
    LineChart {
        title: "Transactions of eight writes, two copies".into(),
        x_axis: "servers".into(),
        y_axis: "transactions/s".into(),
        lines: vec![
            line("simulated", &|row| row.rate),
            line("a straight line", &|row| {
                first.rate / first.servers as f64 * row.servers as f64
            }),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_transactions_are_committed_and_forgotten() {
        let mut world = World::new(4, 8.0);
        for server in 0..4 {
            world.submit(server).expect("submitted");
        }
        world.run(200).expect("goes on");
        // Each client has one under way, and few are not forgotten yet.
        let waiting: usize = world.origins.iter().map(|of| of.waiting().count()).sum();
        assert_eq!(waiting, 4);
        assert!(world.seats.len() < 20 * SIZE, "{}", world.seats.len());
    }

    #[test]
    fn more_servers_do_more() {
        let options = Options {
            common: Common {
                quick: true,
                out: None,
            },
            message_us: 8.0,
            transactions: None,
        };
        let [few, many] = [4, 16].map(|servers| measure(servers, &options).expect("measured"));
        assert!(many.rate > 3.0 * few.rate, "{few:?} {many:?}");
        assert!(few.busy > 0.5 && few.busy <= 1.0, "{few:?}");
    }
}
