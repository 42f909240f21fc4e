//! What clients do next.

use super::{Event, World};
use crate::engine::Fault;
use crate::replicas::client::{Transaction, level, name_of, text_of, value_of};
use crate::replicas::history::{Event as Asked, Outcome, What};
use crate::replicas::node::{Reply, Said};
use crate::replicas::plan::Mode;
use rufous_kernel::replicate::session::Seen;
use rufous_kernel::replicate::transaction::{Runs, Transaction as Open};

impl World {
    pub(super) fn on_client(&mut self, client: usize) {
        if self.clients[client].left == 0 || self.clients[client].waits {
            return;
        }
        if !self.serving {
            self.after(1_000, Event::Client(client));
            return;
        }
        self.clients[client].waits = true;
        if self.plan.mode.has_transactions() {
            self.go_on_with_transaction(client);
            return;
        }
        self.clients[client].left -= 1;
        let home = self.home(client);
        if self.plan.mode == Mode::Shared {
            let session = self.clients[client].session;
            let owner =
                |node: &crate::replicas::node::Node, key: &[u8]| node.placement.owner(key).index();
            let (us, life) = (self.engine.now_us, self.life);
            let by = (session, life, us);
            let (at, event) = self
                .shared
                .act(&mut self.nodes, home, owner, by, &mut self.random);
            let text = format_args!("{}", self.shared.tell(event));
            self.engine.note(at, text);
            self.say(at, Said::Reply(Reply::Shared(event)));
            return;
        }
        self.operate(client, home);
    }

    /// The node that the client talks to.
    fn home(&mut self, client: usize) -> usize {
        match self.plan.stay {
            true => self.clients[client].home,
            false => self.random.index(self.plan.nodes),
        }
    }

    fn owner(&self, home: usize, key: usize) -> usize {
        self.nodes[home].placement.owner(&name_of(key)).index()
    }

    /// One read or write of a session.
    fn operate(&mut self, client: usize, home: usize) {
        let key = self.random.index(self.plan.keys);
        let (at, name) = (self.owner(home, key), name_of(key));
        self.arrive(client, home);
        let least = self.nodes[at].replicas.least();
        let keeps = &mut self.clients[client].keeps;
        keeps.prune(self.nodes[at].replicas.horizon());
        match keeps.before(0, &name, least) {
            Err(_) => {
                // Sessions that have seen so much do not occur: values are short.
                unreachable!("a session keeps all it has seen");
            }
            Ok(Some(state)) => self.nodes[at].take_in(self.engine.now_us, &name, &state),
            Ok(None) => {}
        }
        let only_reads = self.plan.places.get(client).is_some_and(|(_, only)| *only);
        let writes = self.random.chance(0.5) && !only_reads;
        let floor = self.clients[client].keeps.floor();
        let mut written = 0;
        let what = match writes {
            true => {
                let value = self.history.new_value();
                written = self.set(at, key, value, floor, None).time;
                What::Write(value)
            }
            false => What::Read(self.read(at, key)),
        };
        if let Some(state) = self.nodes[at].show(self.engine.now_us, &name) {
            let seen = Seen {
                db: 0,
                key: &name,
                newest: state.newest,
            };
            let keeps = &mut self.clients[client].keeps;
            match writes {
                true => keeps.after_write(seen, written),
                false => keeps.after_read(seen),
            }
        }
        let event = self.ask(client, key, what, None, at);
        self.say(at, Said::Reply(Reply::Event(event)));
    }

    /// A session that goes from one node to another takes along what it knows.
    fn arrive(&mut self, client: usize, home: usize) {
        let Self {
            clients,
            nodes,
            engine,
            ..
        } = self;
        let us = &engine.now_us;
        let left = clients[client].last.replace(home);
        let Some(left) = left.filter(|&left| left != home) else {
            return;
        };
        clients[client].keeps.leave(|_, name| {
            let at = nodes[left].placement.owner(name).index();
            nodes[at].show(*us, name)
        });
    }

    fn read(&mut self, at: usize, key: usize) -> Option<u64> {
        let text = self.nodes[at].text(self.engine.now_us, &name_of(key));
        text.and_then(|text| value_of(&text))
    }

    fn ask(
        &mut self,
        client: usize,
        key: usize,
        what: What,
        transaction: Option<usize>,
        at: usize,
    ) -> usize {
        let session = self.clients[client].session;
        let text =
            format_args!("session {session}, transaction {transaction:?}: {what:?} at key {key}");
        self.engine.note(at, text);
        self.history.ask(Asked {
            session,
            transaction,
            key,
            what,
            replied: false,
        })
    }

    fn go_on_with_transaction(&mut self, client: usize) {
        let mut open = match self.clients[client].transaction.take() {
            Some(open) => open,
            None => self.begin(client),
        };
        if open.left > 0 {
            open.left -= 1;
            self.step(client, &mut open);
            self.clients[client].transaction = Some(open);
            return;
        }
        self.clients[client].left -= 1;
        let (number, at) = (open.number, open.at);
        let rolls_back = self.plan.mode != Mode::ReadUncommitted && self.random.chance(0.25);
        self.nodes[at].replicas.redeem(number as u64);
        if rolls_back {
            self.history.transactions[number] = Outcome::RolledBack;
            let text = format_args!("transaction {number} rolled back");
            self.engine.note(at, text);
            self.clients[client].waits = false;
            let think = self.random.between(1, self.plan.think_us);
            self.after(think, Event::Client(client));
            return;
        }
        let mut stamp = None;
        for (key, value) in std::mem::take(&mut open.kept) {
            stamp = Some(self.set(at, key, value, 0, stamp));
        }
        self.engine
            .note(at, format_args!("transaction {number} commits"));
        self.clients[client].transaction = Some(open);
        self.say(at, Said::Reply(Reply::Commit(number)));
    }

    /// All of a transaction happens at one node.
    fn begin(&mut self, client: usize) -> Transaction {
        let at = self.home(client);
        let number = self.history.transactions.len();
        self.history.transactions.push(Outcome::Open);
        let now = self.nodes[at].now(self.engine.now_us);
        let mut stamp = None;
        if self.plan.mode == Mode::ReadUncommitted {
            self.nodes[at].replicas.promise(now, number as u64);
            let all = self.fault != Fault::StampPerWrite;
            stamp = all.then(|| self.nodes[at].replicas.stamp(now));
        }
        Transaction {
            number,
            at,
            left: self.random.between(2, 6),
            stamp,
            open: Open::new(level(self.plan.mode), self.nodes[at].copies(), now),
            kept: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// An operation runs where the level says.
    fn step(&mut self, client: usize, open: &mut Transaction) {
        let key = self.random.index(self.plan.keys);
        let (at, number) = (open.at, Some(open.number));
        let name = (0, name_of(key).into());
        if self.random.chance(0.5) {
            let value = match open.open.runs(false, std::slice::from_ref(&name)) {
                Runs::OnCopies => {
                    let text =
                        self.nodes[at].on_copies(self.engine.now_us, &mut open.open, name, None);
                    text.and_then(|text| value_of(&text))
                }
                _ => self.read(at, key),
            };
            let event = self.ask(client, key, What::Read(value), number, at);
            return self.say(at, Said::Reply(Reply::Event(event)));
        }
        let value = self.history.new_value();
        let event = self.ask(client, key, What::Write(value), number, at);
        let runs = open.open.runs(true, std::slice::from_ref(&name));
        if runs == Runs::UnderStamp || self.fault == Fault::WritesAtOnce {
            let next = self.set(at, key, value, 0, open.stamp);
            open.stamp = open.stamp.map(|_| next);
            return self.say(at, Said::Reply(Reply::Event(event)));
        }
        let text = text_of(value);
        let after = self.nodes[at].on_copies(self.engine.now_us, &mut open.open, name, Some(&text));
        assert_eq!(after.as_ref(), Some(&text), "it sees its own writes");
        open.kept.push((key, value));
        open.pending.push(event);
        self.clients[client].waits = false;
        let think = self.random.between(1, self.plan.think_us);
        self.after(think, Event::Client(client));
    }
}
