//! A node that is none: a test that is a member of a cluster and says to the others
//! what it likes. It leads, so that mappings are its own as well.

use crate::node::{Node, settings};
use crate::plain::resp;
use rufous_base::slot::slot_of;
use rufous_coordinator::{Coordinator, Proposed, meeting::Attendee, meeting::Meeting};
use rufous_mapping::planner::{self, Limits, Seen};
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use rufous_server::cluster::Settings;
use rufous_wire::message::{Copied, Heartbeat, Replies, Reply, Request, Requests};
use rufous_wire::{Body, Class, Envelope, Event, Local, Peers, Session};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(100);

/// How long nothing must happen to be taken for never.
const BEAT: Duration = Duration::from_millis(100);

pub(crate) struct Fake {
    attendee: Attendee,
    me: Member,
    listener: Option<TcpListener>,
    link: Option<Link>,
    pub(crate) mapping: Mapping,
    /// By which it claims to act.
    pub(crate) epoch: u64,
}

struct Link {
    stream: TcpStream,
    session: Session,
    peers: Peers,
    heard: VecDeque<Envelope>,
    /// Slots whose copies the other node has said to have.
    acknowledged: BTreeSet<u32>,
    is_up: bool,
    is_over: bool,
}

/// A node of this process and one that is none; each has half of the slots.
pub(crate) fn with_fake(workers: usize) -> (Node, Fake) {
    let meeting = Meeting::default();
    let mut fake = Fake::join(&meeting);
    let settings = Settings {
        id: Some([1; 20]),
        ..settings(&meeting)
    };
    let mut node = Node::start(workers, settings);
    fake.found(2);
    node.until("it has a mapping", |info| info["cluster_epoch"] == "1");
    (node, fake)
}

impl Fake {
    fn join(meeting: &Meeting) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let me = Member {
            // The last of all, so that it is dialled.
            id: NodeId([0xee; 20]),
            incarnation: 1,
            peer: listener.local_addr().expect("an address").to_string(),
            plain: "fake:1".into(),
            cluster: String::new(),
            zone: String::new(),
            weight: 100,
            workers: 1,
            drains: false,
            folder: Default::default(),
        };
        let member = rufous_coordinator::Member {
            id: me.id,
            incarnation: 1,
            after: 0,
            about: rufous_wire::mapping::encode_member(&me),
        };
        Self {
            attendee: meeting.join(member).expect("joined"),
            me,
            listener: Some(listener),
            link: None,
            mapping: Mapping::new(1),
            epoch: 1,
        }
    }

    /// Proposes the first mapping when so many are there.
    fn found(&mut self, count: usize) {
        let begun = Instant::now();
        loop {
            let alive: BTreeMap<NodeId, Member> = self
                .attendee
                .view()
                .borrow()
                .members
                .values()
                .filter_map(|node| rufous_wire::mapping::decode_member(&node.about).ok())
                .map(|member| (member.id, member))
                .collect();
            if alive.len() == count {
                let seen = Seen {
                    alive,
                    ..Seen::default()
                };
                let first = planner::next(&self.mapping, &seen, &Limits::default());
                return self.propose(first.expect("a change"));
            }
            assert!(begun.elapsed() < PATIENCE, "nobody comes");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn propose(&mut self, mapping: Mapping) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let bytes = rufous_wire::mapping::encode(&mapping);
        let proposing = self.attendee.propose(mapping.epoch - 1, bytes);
        let proposed = runtime.expect("a runtime").block_on(proposing);
        assert!(matches!(proposed, Ok(Proposed::Taken)), "{proposed:?}");
        self.mapping = mapping;
    }

    /// Gives all slots to the node, as is done with slots that move: it learns them
    /// first. There is nothing in them.
    pub(crate) fn give_all_away(&mut self) {
        let (node, own) = (NodeNo(0), self.number());
        for (members, learner) in [
            (vec![own], Some(node)),
            (vec![own, node], None),
            (vec![node], None),
        ] {
            let mut next = self.mapping.clone();
            next.epoch += 1;
            let ranges = self.mapping.chains.ranges().map(|(slots, chain)| {
                let is_own = chain.members.contains(&own);
                let moved = Chain {
                    members: Members::of(&members).expect("a chain"),
                    learner,
                    since: next.epoch,
                    phase: Default::default(),
                    ..*chain
                };
                (slots, if is_own { moved } else { *chain })
            });
            next.chains = Chains::of_ranges(ranges).expect("chains");
            self.propose(next);
            if learner.is_some() {
                let count = self.own_slots();
                let link = self.link();
                link.until("learnt", |link| link.acknowledged.len() == count);
            }
        }
    }

    /// Takes part in the chains of the node's slots, of which it never says anything: the node
    /// is their head, and may not answer for them.
    pub(crate) fn share_silently(&mut self) {
        let (node, own) = (NodeNo(0), self.number());
        self.rearrange(&[node], Some(own));
        self.rearrange(&[node, own], None);
    }

    /// Is the head of these slots' chains now.
    pub(crate) fn take_over(&mut self) {
        let (node, own) = (NodeNo(0), self.number());
        self.rearrange(&[own, node], None);
    }

    /// Gives the node's slots another chain.
    fn rearrange(&mut self, members: &[NodeNo], learner: Option<NodeNo>) {
        let mut next = self.mapping.clone();
        next.epoch += 1;
        let ranges = self.mapping.chains.ranges().map(|(slots, chain)| {
            let moved = Chain {
                members: Members::of(members).expect("a chain"),
                learner,
                since: next.epoch,
                phase: Default::default(),
                ..*chain
            };
            let is_its = chain.members.contains(&NodeNo(0));
            (slots, if is_its { moved } else { *chain })
        });
        next.chains = Chains::of_ranges(ranges).expect("chains");
        self.propose(next);
    }

    fn own_slots(&self) -> usize {
        let ranges = self.mapping.chains.ranges();
        let own = ranges.filter(|(_, chain)| chain.members.contains(&self.number()));
        own.map(|(slots, _)| slots.len()).sum()
    }

    fn number(&self) -> NodeNo {
        self.mapping.number_of(self.me.id).expect("a member")
    }

    /// Keys that it has, or that the other has.
    pub(crate) fn keys(&self, own: bool, count: usize) -> Vec<String> {
        let is_own = |key: &String| {
            let head = self.mapping.chains.of(slot_of(key.as_bytes())).head();
            (head == Some(self.number())) == own
        };
        let all = (0..).map(|n| format!("key:{n}"));
        all.filter(is_own).take(count).collect()
    }

    /// Waits for the other node to come, or to come again.
    pub(crate) fn accept(&mut self) {
        let listener = self.listener.as_ref().expect("it listens");
        let (stream, _) = listener.accept().expect("somebody comes");
        stream.set_read_timeout(Some(BEAT)).expect("set");
        let local = Local {
            cluster: "birds".into(),
            id: self.me.id.0,
            incarnation: 1,
            start: 7,
            oldest: 1,
            newest: rufous_wire::version::NEWEST,
            program: "9.8, or,so\r\n".to_owned(),
        };
        let mut link = Link {
            stream,
            session: Session::new(local, None, 1),
            peers: Peers::default(),
            heard: VecDeque::new(),
            acknowledged: BTreeSet::new(),
            is_up: false,
            is_over: false,
        };
        link.until("up", |link| link.is_up);
        self.link = Some(link);
    }

    /// Nobody can connect to it any more.
    pub(crate) fn listen_no_more(&mut self) {
        self.listener = None;
    }

    /// Ends the session.
    pub(crate) fn hang_up(&mut self) {
        self.link = None;
    }

    fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("a session")
    }

    /// The next message that the other node sends.
    pub(crate) fn next(&mut self) -> Envelope {
        let link = self.link();
        link.until("heard", |link| !link.heard.is_empty());
        link.heard.pop_front().expect("a message")
    }

    /// What the other node asks next, and which of its workers.
    pub(crate) fn asked(&mut self) -> (u32, Requests) {
        let envelope = self.next();
        match envelope.body {
            Some(Body::Requests(requests)) => (envelope.from, requests),
            other => panic!("{other:?}"),
        }
    }

    /// So many requests, with their numbers, in one message or in several.
    pub(crate) fn asked_for(&mut self, count: usize) -> Vec<Asked> {
        let all = self.asked_for_at_least(count);
        assert_eq!(all.len(), count, "{all:?}");
        all
    }

    fn asked_for_at_least(&mut self, count: usize) -> Vec<Asked> {
        let mut all = Vec::new();
        while all.len() < count {
            let (worker, requests) = self.asked();
            let round = requests.round;
            for (number, request) in (requests.first..).zip(requests.requests) {
                let words = String::from_utf8_lossy(&request.words).into_owned();
                let words = words.lines().skip(2).step_by(2);
                let words: Vec<_> = words.map(str::to_owned).collect();
                all.push(Asked {
                    worker,
                    number,
                    round,
                    words: words.join(" "),
                });
            }
        }
        all
    }

    /// What comes in one message.
    pub(crate) fn asked_for_some(&mut self) -> Vec<Asked> {
        self.asked_for_at_least(1)
    }

    /// Whether anything is asked within that time.
    pub(crate) fn is_asked(&mut self, within: Duration) -> bool {
        let begun = Instant::now();
        while self.link().heard.is_empty() && begun.elapsed() < within {
            self.link().turn();
        }
        !self.link().heard.is_empty()
    }

    /// Checks that nothing is asked for a while.
    pub(crate) fn is_asked_nothing(&mut self, during: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < during {
            self.link().turn();
        }
        let heard = self.link().heard.front();
        assert!(heard.is_none(), "{heard:?}");
    }

    pub(crate) fn say(&mut self, to: u32, body: Body) {
        let class = match body {
            Body::Requests(_) | Body::EndWaits(_) => Class::Request,
            _ => Class::Reply,
        };
        let envelope = Envelope {
            epoch: self.epoch,
            from: 0,
            to,
            body: Some(body),
        };
        let link = self.link();
        link.session.send(class, &envelope).expect("a message");
        link.turn();
    }

    pub(crate) fn answer(&mut self, asked: &Asked, reply: &str) {
        self.reply(asked.worker, asked.number, reply, false);
    }

    /// To be sent with what comes next.
    pub(crate) fn answer_soon(&mut self, asked: &Asked, reply: &str) {
        let reply = Reply {
            number: asked.number,
            bytes: reply.as_bytes().to_vec().into(),
            ..Reply::default()
        };
        let replies = vec![reply];
        let envelope = Envelope {
            epoch: self.epoch,
            from: 0,
            to: asked.worker,
            body: Some(Body::Replies(Replies { replies })),
        };
        let link = self.link();
        link.session
            .send(Class::Reply, &envelope)
            .expect("a message");
    }

    pub(crate) fn turn_away(&mut self, asked: &Asked) {
        self.reply(asked.worker, asked.number, "", true);
    }

    fn reply(&mut self, worker: u32, number: u64, reply: &str, not_here: bool) {
        let reply = Reply {
            number,
            bytes: reply.as_bytes().to_vec().into(),
            not_here,
            ..Reply::default()
        };
        let replies = vec![reply];
        self.say(worker, Body::Replies(Replies { replies }));
    }

    /// Asks the other node for something.
    pub(crate) fn ask(&mut self, first: u64, round: u64, requests: &[&[&str]]) {
        let words = requests.iter().map(|words| resp(words));
        self.ask_bytes(first, round, words.collect());
    }

    pub(crate) fn ask_bytes(&mut self, first: u64, round: u64, requests: Vec<Vec<u8>>) {
        let request = |words: Vec<u8>| Request {
            words: words.into(),
            ..Request::default()
        };
        let requests = Requests {
            first,
            requests: requests.into_iter().map(request).collect(),
            round,
        };
        self.say(0, Body::Requests(requests));
    }

    /// What the other node answers, by numbers; nothing: not there.
    pub(crate) fn answers(&mut self, count: usize) -> BTreeMap<u64, Option<String>> {
        let mut all = BTreeMap::new();
        while all.len() < count {
            let Some(Body::Replies(replies)) = self.next().body else {
                panic!("no replies");
            };
            for reply in replies.replies {
                let waits = ["", "waits"][usize::from(reply.waits)];
                let text = waits.to_owned() + &String::from_utf8_lossy(&reply.bytes);
                all.insert(reply.number, (!reply.not_here).then_some(text));
            }
        }
        all
    }

    /// Waits until the other node has ended the session.
    pub(crate) fn is_refused(&mut self) {
        self.link().until("refused", |link| link.is_over);
        self.link = None;
    }
}

/// A request that came.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) worker: u32,
    pub(crate) number: u64,
    pub(crate) round: u64,
    pub(crate) words: String,
}

impl Link {
    /// Sends what there is to send, and reads what has come.
    fn turn(&mut self) {
        let mut out = Vec::new();
        self.session.transmit(&mut out, usize::MAX);
        if self.stream.write_all(&out).is_err() {
            self.is_over = true;
            return;
        }
        let mut bytes = vec![0; 1 << 16];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.is_over = true,
            Ok(read) => {
                let mut events = Vec::new();
                self.session
                    .receive(&bytes[..read], &self.peers, &mut events);
                events.into_iter().for_each(|event| self.take(event));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let beat = Envelope {
                    epoch: 1,
                    body: Some(Body::Heartbeat(Heartbeat {})),
                    ..Envelope::default()
                };
                let _not_up = self.session.send(Class::Control, &beat);
            }
            Err(_) => self.is_over = true,
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Up(_) => self.is_up = true,
            Event::Message {
                class,
                size,
                envelope,
            } => {
                self.session.take(class, size);
                match &envelope.body {
                    Some(Body::Requests(_) | Body::EndWaits(_)) => self.heard.push_back(envelope),
                    Some(Body::Replies(_)) => self.heard.push_back(envelope),
                    Some(Body::Learn(learn)) => self.give(learn.slot, learn.since, &envelope),
                    Some(Body::Ack(ack)) => drop(self.acknowledged.insert(ack.slot)),
                    _ => {}
                }
            }
            Event::Closed(_) => self.is_over = true,
        }
    }

    /// A copy of a slot that has nothing in it.
    fn give(&mut self, slot: u32, since: u64, asked: &Envelope) {
        let copied = Copied {
            slot,
            since,
            ..Copied::default()
        };
        let envelope = Envelope {
            epoch: asked.epoch,
            from: 0,
            to: asked.from,
            body: Some(Body::Copied(copied)),
        };
        let sent = self.session.send(Class::Learning, &envelope);
        sent.expect("a message");
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE, "never {what}");
            assert!(!self.is_over, "the session is over before it is {what}");
            self.turn();
        }
    }
}
