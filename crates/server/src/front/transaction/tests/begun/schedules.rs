//! Transactions of many clients at once, with messages between workers delivered in every possible
//! order.

use super::{assert_nothing_left, node};
use crate::front::testing::{Client, Rig};
use rufous_base::rng::Rng;
use std::collections::{BTreeSet, VecDeque};

/// Written together by all writers; strict, and of several workers.
const KEYS: [&str; 4] = ["x", "y", "z", "w"];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Writes all keys, and commits or rolls back.
    Writer,
    /// The same between `MULTI` and `EXEC`.
    Queuer,
    /// Reads all keys at once.
    Reader,
    /// Reads a key again and again in an item cut.
    Cutter,
}

struct Actor {
    client: Client,
    kind: Kind,
    script: VecDeque<String>,
    /// The pending request, the received part of its reply, and that reply's lines.
    sent: Option<String>,
    received: String,
    /// What it writes, and whether it will be committed.
    value: u64,
    commits: bool,
    /// The value that it read first.
    first: Option<String>,
    left: usize,
}

struct World {
    rig: Rig,
    rng: Rng,
    actors: Vec<Actor>,
    last: u64,
    /// Values that may be seen: `COMMIT` or `EXEC` was sent.
    committed: BTreeSet<u64>,
    reads: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rig = node(3);
        rig.check("MSET x 0 y 0 z 0 w 0", "+OK\r\n");
        let kinds = [
            Kind::Writer,
            Kind::Writer,
            Kind::Writer,
            Kind::Queuer,
            Kind::Reader,
            Kind::Reader,
            Kind::Cutter,
            Kind::Cutter,
        ];
        let actor = |(at, kind)| Actor {
            client: rig.connect(at % 3),
            kind,
            script: VecDeque::new(),
            sent: None,
            received: String::new(),
            value: 0,
            commits: false,
            first: None,
            left: 10,
        };
        let actors = kinds.into_iter().enumerate().map(actor).collect();
        World {
            rig,
            rng: Rng::new(seed),
            actors,
            last: 0,
            committed: BTreeSet::from([0]),
            reads: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..200_000 {
            if self.rng.below(3) > 0 {
                let mut rng = self.rng.clone();
                self.rig.deliver_any(&mut rng);
                self.rng = rng;
                continue;
            }
            let who = self.rng.below(self.actors.len() as u64) as usize;
            self.look(who);
            let actor = &self.actors[who];
            if actor.sent.is_none() {
                self.next(who);
            }
            let is_done = |a: &Actor| a.left == 0 && a.script.is_empty() && a.sent.is_none();
            if self.actors.iter().all(is_done) {
                return;
            }
        }
        panic!("somebody is never answered");
    }

    /// Takes a complete reply.
    fn look(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        actor.received += &self.rig.take(actor.client);
        let lines = match actor.sent.as_deref() {
            Some("MGET x y z w") => 1 + 2 * KEYS.len(),
            Some("COMMIT" | "EXEC") if actor.kind != Kind::Cutter => 1 + KEYS.len(),
            Some(request) if request.starts_with("GET") => 2,
            Some(_) => 1,
            None => return,
        };
        if actor.received.matches("\r\n").count() < lines {
            return;
        }
        let reply = std::mem::take(&mut actor.received);
        let request = actor.sent.take().expect("a request");
        assert!(!reply.starts_with('-'), "{request}: {reply}");
        self.judge(who, &request, &reply);
    }

    fn judge(&mut self, who: usize, request: &str, reply: &str) {
        let actor = &mut self.actors[who];
        let values: BTreeSet<u64> = reply.lines().filter_map(|line| line.parse().ok()).collect();
        if request.starts_with("MGET") {
            assert_eq!(values.len(), 1, "all keys are written as one: {reply}");
        }
        if !request.contains("GET") {
            return;
        }
        self.reads += 1;
        if actor.kind == Kind::Writer {
            assert_eq!(values, BTreeSet::from([actor.value]), "it sees its own");
            return;
        }
        assert!(
            values.is_subset(&self.committed),
            "{values:?} was never committed"
        );
        if actor.kind == Kind::Cutter {
            let first = actor.first.get_or_insert(reply.to_owned());
            assert_eq!(first, reply, "an item is the same again");
        }
    }

    fn next(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        if actor.script.is_empty() && actor.left > 0 {
            actor.left -= 1;
            actor.first = None;
            self.last += 1;
            actor.value = self.last;
            actor.commits = actor.kind == Kind::Queuer || self.rng.below(3) > 0;
            let level = if self.rng.below(2) == 0 {
                "read-committed"
            } else {
                "item-cut"
            };
            let value = actor.value;
            let all: Vec<String> = match actor.kind {
                Kind::Reader => vec!["MGET x y z w".into()],
                Kind::Cutter => {
                    let key = KEYS[self.rng.below(4) as usize];
                    let get = format!("GET {key}");
                    vec![
                        "BEGIN item-cut".into(),
                        get.clone(),
                        get.clone(),
                        get,
                        "COMMIT".into(),
                    ]
                }
                Kind::Queuer => {
                    let sets = KEYS.map(|key| format!("SET {key} {value}"));
                    [vec!["MULTI".into()], sets.to_vec(), vec!["EXEC".into()]].concat()
                }
                Kind::Writer => {
                    let mut all = vec![format!("BEGIN {level}")];
                    for key in KEYS {
                        all.push(format!("SET {key} {value}"));
                        all.push(format!("GET {key}"));
                    }
                    all.push(if actor.commits { "COMMIT" } else { "ROLLBACK" }.into());
                    all
                }
            };
            actor.script = all.into();
        }
        let Some(request) = actor.script.pop_front() else {
            return;
        };
        if matches!(request.as_str(), "COMMIT" | "EXEC") {
            self.committed.insert(actor.value);
        }
        let line = format!("{request}\r\n");
        actor.sent = Some(request);
        self.rig.send_only(self.actors[who].client, line.as_bytes());
    }
}

#[test]
fn whatever_order_messages_come_in() {
    let mut reads = 0;
    for seed in 0..60 {
        let mut world = World::new(seed);
        world.run();
        world.rig.settle();
        let both = world.rig.run("MGET x y z w");
        let values: BTreeSet<&str> = both.lines().skip(2).step_by(2).collect();
        assert_eq!(values.len(), 1, "seed {seed}: {both}");
        assert_nothing_left(&mut world.rig);
        reads += world.reads;
    }
    assert!(reads > 1000);
}
