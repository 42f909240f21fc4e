//! Transactions of many clients at once, with messages between workers delivered in every possible
//! order.

use crate::front::testing::{Client, Rig};
use rufous_base::rng::Rng;

const ACCOUNTS: u64 = 5;
const START: i64 = 100;

/// A client with its requests; the next is sent when the last is answered.
struct Actor {
    client: Client,
    /// The received part of the pending reply.
    received: String,
    /// The number of lines of that reply.
    lines: usize,
    kind: Kind,
    left: usize,
    counted: usize,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Mover,
    Reader,
    Counter,
    Noise,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Idle,
    Transaction,
    /// `WATCH` and `GET` were sent.
    Looking,
}

struct World {
    rig: Rig,
    rng: Rng,
    actors: Vec<Actor>,
    /// Consistent states that readers saw.
    seen: usize,
    /// `EXEC`s that did nothing because of a touched key.
    missed: usize,
    /// With `WATCH` left out.
    blind: bool,
    /// With `MULTI` and `EXEC` left out.
    loose: bool,
    torn: usize,
}

impl World {
    fn new(seed: u64, workers: usize) -> World {
        let mut rig = Rig::new(workers);
        for account in 0..ACCOUNTS {
            rig.run(&format!("SET account{account} {START}"));
        }
        let kinds = [
            Kind::Mover,
            Kind::Mover,
            Kind::Reader,
            Kind::Reader,
            Kind::Counter,
            Kind::Counter,
            Kind::Counter,
            Kind::Noise,
        ];
        let actors = kinds.iter().enumerate().map(|(i, &kind)| Actor {
            client: rig.connect(i % workers),
            received: String::new(),
            lines: 0,
            kind,
            left: 12,
            counted: 0,
            stage: Stage::Idle,
        });
        let actors = actors.collect();
        World {
            rig,
            rng: Rng::new(seed),
            actors,
            seen: 0,
            missed: 0,
            blind: false,
            loose: false,
            torn: 0,
        }
    }

    /// Runs until all clients are done.
    fn run(&mut self) {
        for _ in 0..100_000 {
            let who = self.rng.below(self.actors.len() as u64) as usize;
            if self.rng.below(3) > 0 {
                let mut rng = self.rng.clone();
                self.rig.deliver_any(&mut rng);
                self.rng = rng;
            } else if self.is_answered(who) {
                self.next(who);
            }
            if self
                .actors
                .iter()
                .all(|a| a.left == 0 && a.stage == Stage::Idle)
            {
                return;
            }
        }
        panic!("somebody is never answered");
    }

    fn is_answered(&mut self, who: usize) -> bool {
        let actor = &mut self.actors[who];
        actor.received += &self.rig.take(actor.client);
        actor.received.matches("\r\n").count() >= actor.lines
    }

    fn send(&mut self, who: usize, requests: &str, lines: usize, stage: Stage) {
        let actor = &mut self.actors[who];
        actor.received.clear();
        actor.lines = lines;
        actor.stage = stage;
        self.rig.send_only(actor.client, requests.as_bytes());
    }

    /// Checks the reply, then sends the next request.
    fn next(&mut self, who: usize) {
        let Actor {
            kind, stage, left, ..
        } = self.actors[who];
        let reply = std::mem::take(&mut self.actors[who].received);
        match (kind, stage) {
            (Kind::Reader, Stage::Transaction) => self.check_sum(&reply),
            (Kind::Counter, Stage::Looking) => return self.count(who, &reply),
            (Kind::Counter, Stage::Transaction) if reply.ends_with("*-1\r\n") => self.missed += 1,
            (Kind::Counter, Stage::Transaction) => self.actors[who].counted += 1,
            _ => {}
        }
        self.actors[who].lines = 0;
        self.actors[who].stage = Stage::Idle;
        if left == 0 {
            return;
        }
        self.actors[who].left -= 1;
        let (begin, end) = match self.loose {
            true => ("", ""),
            false => ("MULTI\r\n", "EXEC\r\n"),
        };
        match kind {
            Kind::Mover => {
                let (from, to) = (self.rng.below(ACCOUNTS), self.rng.below(ACCOUNTS));
                let amount = self.rng.below(9);
                let moved =
                    format!("DECRBY account{from} {amount}\r\nINCRBY account{to} {amount}\r\n");
                let lines = if self.loose { 2 } else { 6 };
                self.send(
                    who,
                    &format!("{begin}{moved}{end}"),
                    lines,
                    Stage::Transaction,
                );
            }
            Kind::Reader => {
                let gets: String = (0..ACCOUNTS)
                    .map(|a| format!("GET account{a}\r\n"))
                    .collect();
                let n = ACCOUNTS as usize;
                let lines = if self.loose { 2 * n } else { 2 + 3 * n };
                self.send(
                    who,
                    &format!("{begin}{gets}{end}"),
                    lines,
                    Stage::Transaction,
                );
            }
            Kind::Counter if self.blind => {
                self.send(who, "PING\r\nGET counter\r\n", 2, Stage::Looking);
            }
            Kind::Counter => self.send(who, "WATCH counter\r\nGET counter\r\n", 2, Stage::Looking),
            Kind::Noise => {
                let account = self.rng.below(ACCOUNTS);
                let noise = match self.rng.below(4) {
                    0 => format!("APPEND account{account} \"\"\r\n"),
                    1 => "MSET x 1 y 2 z 3\r\n".to_owned(),
                    2 => "RENAME x y\r\n".to_owned(),
                    _ => "SWAPDB 4 5\r\n".to_owned(),
                };
                self.send(who, &noise, 1, Stage::Transaction);
            }
        }
    }

    /// A counter has read the value and now sets the next one.
    fn count(&mut self, who: usize, reply: &str) {
        // A reply with a value has one line more than a null reply.
        let value: i64 = match reply.contains("$-1") {
            true => 0,
            false if reply.matches("\r\n").count() < 3 => {
                self.actors[who].received = reply.to_owned();
                return;
            }
            false => reply
                .lines()
                .last()
                .and_then(|line| line.parse().ok())
                .expect("a number"),
        };
        let other = self.rng.below(ACCOUNTS);
        let request = format!(
            "MULTI\r\nGET account{other}\r\nSET counter {}\r\nEXEC\r\n",
            value + 1
        );
        self.send(who, &request, 4, Stage::Transaction);
    }

    fn check_sum(&mut self, reply: &str) {
        let numbers = reply
            .split("\r\n")
            .skip_while(|line| !line.starts_with('$'));
        let sum: i64 = numbers
            .filter(|line| !line.starts_with(['$', '*']))
            .filter_map(|line| line.parse::<i64>().ok())
            .sum();
        if sum == START * ACCOUNTS as i64 {
            self.seen += 1;
        } else {
            self.torn += 1;
        }
    }

    fn counted(&mut self) -> (i64, usize) {
        self.rig.settle();
        let reply = self.rig.run("GET counter");
        let value = reply.lines().nth(1).and_then(|line| line.parse().ok());
        (
            value.unwrap_or(0),
            self.actors.iter().map(|a| a.counted).sum(),
        )
    }
}

const SEEDS: u64 = 60;

#[test]
fn transactions_are_atomic_and_isolated_and_increments_are_not_lost() {
    let (mut seen, mut missed) = (0, 0);
    for workers in 1..=4 {
        for seed in 0..SEEDS {
            let mut world = World::new(seed, workers);
            world.run();
            let (value, counted) = world.counted();
            assert_eq!(value, counted as i64, "seed {seed}, {workers} workers");
            assert_eq!(world.torn, 0, "seed {seed}, {workers} workers");
            assert!(world.rig.fronts.iter().all(|f| f.kernel.waiting() == 0));
            seen += world.seen;
            missed += world.missed;
        }
    }
    assert!(seen > 1000 && missed > 100, "{seen} sums, {missed} misses");
}

#[test]
fn the_same_schedules_show_what_goes_wrong_without_watches_or_transactions() {
    let (mut lost, mut torn) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, 3);
        world.blind = true;
        world.run();
        let (value, counted) = world.counted();
        lost += counted as i64 - value;
        let mut world = World::new(seed, 3);
        world.loose = true;
        world.run();
        torn += world.torn;
    }
    assert!(lost > 0, "no increment is lost without WATCH");
    assert!(torn > 0, "every sum is right without MULTI");
}
