//! A rig for tests of the front and of the server's commands: the fronts of a node stepped by hand
//! through virtual time, without sockets or threads.
//!
//! It keeps the guarantees of a driver (see `rufous_base::actor`), and no others: messages wait
//! until they are delivered, so that a test can check the state in between.

use super::{Front, Message};
use crate::cluster::Cluster;
use crate::config::{Config, DebugCommand};
use crate::front::shared::Shared;
use rufous_base::rng::Rng;
use rufous_base::{
    Actor, Args, Close, ConnId, ConnInfo, Effects, Input, NodeEffect, Now, Origin, Output, Read,
    WorkerId,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A client of the rig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client(usize);

struct Link {
    worker: usize,
    id: ConnId,
    info: ConnInfo,
    received: Vec<u8>,
    closed: Option<Close>,
    /// Bytes sent while the front did not read.
    kept_back: Vec<u8>,
    held: bool,
}

pub(crate) struct Rig {
    pub(crate) fronts: Vec<Front>,
    pub(crate) now: Now,
    /// All effects that were requested of the node.
    pub(crate) node_effects: Vec<NodeEffect>,
    links: Vec<Link>,
    pub(super) messages: VecDeque<(WorkerId, WorkerId, Message)>,
    wakes: Vec<Option<u64>>,
    slots: Vec<u32>,
    default_client: Option<Client>,
}

impl Rig {
    pub(crate) fn new(workers: usize) -> Rig {
        Rig::with_config(workers, Config::in_memory())
    }

    /// With DEBUG enabled, which tests use to look inside.
    pub(crate) fn with_config(workers: usize, config: Config) -> Rig {
        let enable_debug_command = DebugCommand::Yes;
        Self::exactly(
            workers,
            Config {
                enable_debug_command,
                ..config
            },
        )
    }

    pub(crate) fn exactly(workers: usize, config: Config) -> Rig {
        let now = Now {
            mono_us: 1_000_000,
            unix_us: 1_700_000_000_000_000,
        };
        let run_id = "0123456789".repeat(4);
        let mut shared = Shared::new(workers, 1, run_id, now.unix_us, config.port);
        shared.cluster = config.cluster.clone().map(|settings| {
            let local = rufous_wire::Local {
                cluster: settings.name.clone(),
                id: settings.id.unwrap_or([1; 20]),
                incarnation: 1,
                start: 1,
                oldest: 1,
                newest: 1,
                program: String::new(),
            };
            Arc::new(Cluster::new(settings, local))
        });
        let shared = Arc::new(shared);
        shared.process.pid.store(4711, Ordering::Relaxed);
        let config = Arc::new(Config { workers, ..config });
        let front = |w| {
            let mut front =
                Front::new(WorkerId(w as u16), Arc::clone(&shared), Arc::clone(&config));
            front.begin_without_disk();
            front
        };
        Rig {
            fronts: (0..workers).map(front).collect(),
            now,
            node_effects: Vec::new(),
            links: Vec::new(),
            messages: VecDeque::new(),
            wakes: vec![None; workers],
            slots: vec![0; workers],
            default_client: None,
        }
    }

    /// A client on this machine.
    pub(crate) fn connect(&mut self, worker: usize) -> Client {
        let peer = format!("127.0.0.1:{}", 50_000 + self.links.len());
        let local = "127.0.0.1:6379".into();
        self.connect_as(
            worker,
            ConnInfo {
                peer,
                local,
                is_local: true,
                origin: Origin::Client,
                certificate: None,
            },
        )
    }

    pub(crate) fn connect_as(&mut self, worker: usize, info: ConnInfo) -> Client {
        let id = ConnId {
            slot: self.slots[worker],
            generation: 1,
        };
        self.slots[worker] += 1;
        self.links.push(Link {
            worker,
            id,
            info: info.clone(),
            received: Vec::new(),
            closed: None,
            kept_back: Vec::new(),
            held: false,
        });
        self.step(worker, Input::Opened { conn: id, info }, &[]);
        Client(self.links.len() - 1)
    }

    pub(crate) fn peer(&self, client: Client) -> String {
        self.links[client.0].info.peer.clone()
    }

    pub(crate) fn is_closed(&self, client: Client) -> bool {
        self.links[client.0].closed.is_some()
    }

    /// A thread that is no worker sends a message to all workers.
    pub(crate) fn tell_all(&mut self, message: impl Fn() -> Message) {
        for worker in 0..self.fronts.len() {
            self.step(worker, Input::Told { message: message() }, &[]);
        }
        self.settle();
    }

    /// The client disconnects.
    pub(crate) fn close(&mut self, client: Client) {
        let link = &mut self.links[client.0];
        let (worker, conn) = (link.worker, link.id);
        link.closed = Some(Close::Now);
        self.step(worker, Input::Closed { conn }, &[]);
        self.settle();
    }

    /// What the client has received since the last call.
    pub(crate) fn take(&mut self, client: Client) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.links[client.0].received)).into_owned()
    }

    /// Sends bytes and lets the node process everything that follows.
    pub(crate) fn send(&mut self, client: Client, bytes: &[u8]) {
        self.send_only(client, bytes);
        self.settle();
    }

    /// Sends bytes; messages between workers are not delivered.
    pub(crate) fn send_only(&mut self, client: Client, bytes: &[u8]) {
        let link = &mut self.links[client.0];
        if link.closed.is_some() {
            return;
        }
        link.kept_back.extend_from_slice(bytes);
        if link.held {
            return;
        }
        let bytes = std::mem::take(&mut link.kept_back);
        let (worker, conn) = (link.worker, link.id);
        let reads = [Read {
            conn,
            start: 0,
            end: bytes.len(),
        }];
        self.step(
            worker,
            Input::Received {
                bytes: &bytes,
                reads: &reads,
            },
            &bytes,
        );
    }

    /// Several clients of one worker send in the same turn.
    pub(crate) fn send_together(&mut self, sends: &[(Client, &[u8])]) {
        let (mut bytes, mut reads) = (b"junk".to_vec(), Vec::new());
        let worker = self.links[sends[0].0.0].worker;
        for (client, part) in sends {
            let start = bytes.len();
            bytes.extend_from_slice(part);
            reads.push(Read {
                conn: self.links[client.0].id,
                start,
                end: bytes.len(),
            });
        }
        self.step(
            worker,
            Input::Received {
                bytes: &bytes,
                reads: &reads,
            },
            &bytes,
        );
        self.settle();
    }

    /// Delivers the oldest message between workers. False if none waits.
    pub(crate) fn deliver_one(&mut self) -> bool {
        let Some((from, to, message)) = self.messages.pop_front() else {
            return false;
        };
        self.step(to.index(), Input::Message { from, message }, &[]);
        true
    }

    /// Delivers one of the messages that may arrive next: those from one worker to another keep
    /// their order. False if none waits.
    pub(crate) fn deliver_any(&mut self, rng: &mut Rng) -> bool {
        let mut pairs = Vec::new();
        let mut firsts = Vec::new();
        for (index, (from, to, _)) in self.messages.iter().enumerate() {
            if !pairs.contains(&(*from, *to)) {
                pairs.push((*from, *to));
                firsts.push(index);
            }
        }
        if firsts.is_empty() {
            return false;
        }
        let index = firsts[rng.below(firsts.len() as u64) as usize];
        if let Some((from, to, message)) = self.messages.remove(index) {
            self.step(to.index(), Input::Message { from, message }, &[]);
        }
        true
    }

    /// The node stops.
    pub(crate) fn stop(&mut self) {
        for worker in 0..self.fronts.len() {
            self.step(worker, Input::Stop, &[]);
        }
        self.settle();
    }

    /// The client disconnects.
    pub(crate) fn disconnect(&mut self, client: Client) {
        let link = &mut self.links[client.0];
        link.closed = Some(Close::Now);
        let (worker, conn) = (link.worker, link.id);
        self.step(worker, Input::Closed { conn }, &[]);
        self.settle();
    }

    /// Delivers messages until none is left, and what clients sent meanwhile.
    pub(crate) fn settle(&mut self) {
        loop {
            while self.deliver_one() {}
            let ready = |l: &Link| !l.held && !l.kept_back.is_empty() && l.closed.is_none();
            let Some(index) = self.links.iter().position(ready) else {
                break;
            };
            self.send_only(Client(index), &[]);
        }
    }

    /// Advances the time; ticks run when they are due.
    pub(crate) fn advance_ms(&mut self, ms: u64) {
        let until = self.now.mono_us + ms * 1000;
        loop {
            let due = |w: &(usize, u64)| w.1 <= until;
            let wakes = self
                .wakes
                .iter()
                .enumerate()
                .filter_map(|(w, at)| Some((w, (*at)?)));
            let Some((worker, at)) = wakes.filter(due).min_by_key(|w| w.1) else {
                break;
            };
            self.set_time(at.max(self.now.mono_us));
            self.wakes[worker] = None;
            self.step(worker, Input::Tick, &[]);
            self.settle();
        }
        self.set_time(until);
    }

    /// The wall clock jumps.
    pub(crate) fn jump_s(&mut self, seconds: i64) {
        self.now.unix_us = self.now.unix_us.saturating_add_signed(seconds * 1_000_000);
    }

    fn set_time(&mut self, mono_us: u64) {
        self.now.unix_us += mono_us - self.now.mono_us;
        self.now.mono_us = mono_us;
    }

    /// One turn: a step, as many more as the actor wants, then the effects.
    fn step(&mut self, worker: usize, input: Input<'_, Message>, bytes: &[u8]) {
        let mut fx = Effects::default();
        self.fronts[worker].step(self.now, input, &mut fx);
        let mut turns = 0;
        while fx.more {
            self.fronts[worker].step(self.now, Input::Resume { bytes }, &mut fx);
            turns += 1;
            assert!(turns < 1_000_000, "the front never rests");
        }
        self.fronts[worker].end_turn(self.now, &mut fx);
        assert!(
            fx.gate.is_none() && fx.disk.is_empty(),
            "there is no disk here"
        );
        self.carry_out(worker, fx);
    }

    pub(crate) fn carry_out(&mut self, worker: usize, fx: Effects<Message>) {
        for write in &fx.writes {
            let mut part = Output::default();
            part.append_range(&fx.output, write.start, write.end);
            if let Some(link) = self.link(worker, write.conn) {
                link.received.extend_from_slice(&part.to_vec());
            }
        }
        let from = WorkerId(worker as u16);
        self.messages.extend(
            fx.messages
                .into_iter()
                .map(|(to, message)| (from, to, message)),
        );
        self.node_effects.extend(fx.node);
        for (conn, held) in fx.holds {
            if let Some(link) = self.link(worker, conn) {
                link.held = held;
            }
        }
        for conn in fx.drains {
            if self.link(worker, conn).is_some() {
                self.step(worker, Input::Drained { conn }, &[]);
            }
        }
        if fx.wake_at_us.is_some() {
            self.wakes[worker] = fx.wake_at_us;
        }
        let idle = fx.idle_closes.into_iter();
        let idle = idle.map(|conn| (conn, Close::AfterReplies));
        for (conn, close) in fx.closes.into_iter().chain(idle) {
            if let Some(link) = self.link(worker, conn) {
                link.closed = Some(close);
                self.step(worker, Input::Closed { conn }, &[]);
            }
        }
    }

    fn link(&mut self, worker: usize, conn: ConnId) -> Option<&mut Link> {
        self.links
            .iter_mut()
            .find(|l| l.worker == worker && l.id == conn && l.closed.is_none())
    }

    fn default_client(&mut self) -> Client {
        if let Some(client) = self.default_client {
            return client;
        }
        let client = self.connect(0);
        self.default_client = Some(client);
        client
    }

    /// Sends a request of words separated by blanks (`""` is the empty word) and returns the reply.
    pub(crate) fn run_on(&mut self, client: Client, request: &str) -> String {
        let words: Vec<_> = request
            .split(' ')
            .map(|w| if w == "\"\"" { "" } else { w })
            .collect();
        let mut bytes = Vec::new();
        rufous_resp::encode::request(&mut bytes, &words);
        self.send(client, &bytes);
        self.take(client)
    }

    pub(crate) fn run(&mut self, request: &str) -> String {
        let client = self.default_client();
        self.run_on(client, request)
    }

    pub(crate) fn run_words(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let client = self.default_client();
        let mut bytes = Vec::new();
        rufous_resp::encode::request(&mut bytes, words);
        self.send(client, &bytes);
        std::mem::take(&mut self.links[client.0].received)
    }

    #[track_caller]
    pub(crate) fn check_on(&mut self, client: Client, request: &str, reply: &str) {
        assert_eq!(self.run_on(client, request), reply, "{request}");
    }

    #[track_caller]
    pub(crate) fn check(&mut self, request: &str, reply: &str) {
        assert_eq!(self.run(request), reply, "{request}");
    }
}

/// Calls `f` with these arguments.
pub(crate) fn with_args<T>(words: &[&[u8]], f: impl FnOnce(&Args<'_>) -> T) -> T {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    f(&Args::new(&bytes, &spans, &mut []))
}

pub(crate) fn id(slot: u32, generation: u32) -> ConnId {
    ConnId { slot, generation }
}

/// A client on this machine.
pub(crate) fn info() -> ConnInfo {
    ConnInfo {
        peer: String::new(),
        local: String::new(),
        is_local: true,
        origin: Origin::Client,
        certificate: None,
    }
}
