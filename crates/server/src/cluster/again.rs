//! Requests that have to be sent again: those that the other node did not execute, and reads whose
//! session ended before the reply.
//!
//! They wait for a mapping, a session or some milliseconds, in their order, and are given up when
//! that takes too long. Their keys may move to this node meanwhile, and away again before they run
//! ([`super::returned`]).

use super::forward::Asked;
use super::way::{NoWay, Way};
use super::words;
use crate::front::{Front, Message, parse};
use rufous_base::limits::FORWARD_PATIENCE_US;
use rufous_base::{Args, ConnId, Effects, Now};
use rufous_command::Failure;
use rufous_kernel::planted::{self, Planted};
use rufous_mapping::NodeNo;
use std::collections::{BTreeMap, BTreeSet};

/// Attempts to find the node that executes a request.
const MAX_TRIES: u32 = 8;

/// Delay before the second attempt; doubled before each later one.
const PAUSE_US: u64 = 10_000;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// By their order.
    waiting: BTreeMap<u64, Waiting>,
    /// There may be requests to send.
    pub(super) look: bool,
}

#[derive(Debug)]
struct Waiting {
    asked: Asked,
    /// With earlier mappings it would go to the node that did not execute it.
    since_epoch: u64,
    due_us: u64,
}

impl Again {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

impl Front {
    /// Sends a request again when there is a reason to. `epoch`: that of the mapping by which it
    /// was not executed.
    pub(super) fn send_later(
        &mut self,
        now: Now,
        mut asked: Asked,
        epoch: u64,
        fx: &mut Effects<Message>,
    ) {
        if self.links().is_none_or(|links| links.is_stopping()) {
            return self.answer_failure(&asked.header, &STOPPING.into(), fx);
        }
        if asked.until_us == 0 {
            asked.until_us = now.mono_us + FORWARD_PATIENCE_US;
        }
        self.hold_up(asked.header.conn, fx);
        let own = self.links().map_or(0, |links| links.epoch());
        let pause = match asked.tries {
            0 => 0,
            // The other node has not received the mapping yet.
            tries if epoch <= own => PAUSE_US << tries.min(10),
            _ => 0,
        };
        let waiting = Waiting {
            since_epoch: epoch,
            due_us: now.mono_us + pause,
            asked,
        };
        let wake = waiting.due_us.min(waiting.asked.until_us);
        self.forward.wake_by(wake.max(now.mono_us + 1));
        self.forward.again.look |= pause == 0;
        let order = waiting.asked.order;
        self.forward.again.waiting.insert(order, waiting);
    }

    /// The session with a node has ended.
    pub(super) fn doubt(&mut self, now: Now, no: NodeNo, fx: &mut Effects<Message>) {
        let again = planted::is(Planted::DoubtAskedAgain);
        for (asked, was_sent) in self.forward.take_all(no) {
            match was_sent && asked.writes && !again {
                true => self.answer_in_doubt(no, &asked.header, fx),
                false => self.send_later(now, asked, 0, fx),
            }
        }
    }

    /// The node stops: no requests are forwarded any more.
    pub(crate) fn end_forwarding(&mut self, fx: &mut Effects<Message>) {
        for no in self.forward.nodes() {
            for (asked, was_sent) in self.forward.take_all(no) {
                match was_sent && asked.writes {
                    true => self.answer_in_doubt(no, &asked.header, fx),
                    false => self.answer_failure(&asked.header, &STOPPING.into(), fx),
                }
            }
        }
        for waiting in std::mem::take(&mut self.forward.again.waiting).into_values() {
            self.answer_failure(&waiting.asked.header, &STOPPING.into(), fx);
        }
    }

    /// Slots may have moved to other nodes. A connection with a pending request at a node that no
    /// longer has its key runs no new request until the reply: later requests would go to the new
    /// node, and could be executed first.
    pub(super) fn hold_up_misdirected(&mut self, fx: &mut Effects<Message>) {
        let is_right = |no: NodeNo, asked: &Asked| self.way_of_asked(asked) == Way::There(no);
        let wrong: BTreeSet<(u32, u32)> = self
            .forward
            .misdirected(is_right)
            .into_iter()
            .map(|conn| (conn.slot, conn.generation))
            .collect();
        for (slot, generation) in wrong {
            self.hold_up(ConnId { slot, generation }, fx);
        }
    }

    fn way_of_asked(&self, asked: &Asked) -> Way {
        if let Some(no) = asked.node {
            return self.way_to_node(no);
        }
        let Some(spans) = words::read(&asked.request.words) else {
            return Way::None(NoWay::Unmapped);
        };
        let args = Args::new(&asked.request.words, &spans, &mut []);
        let mut found = Vec::new();
        let spec = self.table.spec(asked.header.command);
        spec.keys.find(&args, asked.header.db, &mut found);
        let keyed = |(db, arg)| parse::parsed_key(&self.kernel, &args, db, arg);
        let keys: Vec<_> = found.into_iter().map(keyed).collect();
        self.way_to_keys(&keys, &args)
    }

    /// Sends requests again, in order: those behind one that has to wait also wait.
    #[inline]
    pub(crate) fn send_again(&mut self, now: Now, fx: &mut Effects<Message>) {
        if std::mem::take(&mut self.forward.again.look) {
            self.send_again_now(now, fx);
        }
    }

    #[cold]
    fn send_again_now(&mut self, now: Now, fx: &mut Effects<Message>) {
        let own = self.links().map_or(0, |links| links.epoch());
        self.forward.returned.forget_late(now);
        let mut stuck = BTreeSet::new();
        for (order, waiting) in std::mem::take(&mut self.forward.again.waiting) {
            let conn = waiting.asked.header.conn;
            let is_late = now.mono_us >= waiting.asked.until_us;
            let is_ready = own >= waiting.since_epoch && now.mono_us >= waiting.due_us;
            let way = self.way_of_asked(&waiting.asked);
            let goes = is_ready && !matches!(way, Way::None(_));
            if !stuck.contains(&(conn.slot, conn.generation)) {
                if is_late || waiting.asked.tries > MAX_TRIES {
                    let why = self.given_up(&way);
                    self.forward.figures.refused += 1;
                    self.answer_failure(&waiting.asked.header, &why, fx);
                    continue;
                }
                if goes {
                    self.go_again(now, way, waiting.asked, fx);
                    continue;
                }
            }
            stuck.insert((conn.slot, conn.generation));
            let due = match waiting.due_us > now.mono_us {
                true => waiting.due_us.min(waiting.asked.until_us),
                false => waiting.asked.until_us,
            };
            self.forward.wake_by(due.max(now.mono_us + 1000));
            self.forward.again.waiting.insert(order, waiting);
        }
    }

    fn given_up(&self, way: &Way) -> Failure {
        match (way, self.links()) {
            (Way::None(why), Some(links)) => why.text(links.routing().mapping).into(),
            _ => "TRYAGAIN The key is on its way from one node to another, and neither of them took the request: try again".into(),
        }
    }

    fn go_again(&mut self, now: Now, way: Way, asked: Asked, fx: &mut Effects<Message>) {
        self.forward.figures.retried += 1;
        match way {
            Way::There(no) => self.forward.push(no, asked),
            Way::Here => self.run_asked(now, &asked, fx),
            Way::Apart(_) | Way::All(_) | Way::None(_) => {
                self.answer_failure(&asked.header, &super::way::CROSSNODE.into(), fx);
            }
        }
    }

    /// Its keys are at this node by now.
    fn run_asked(&mut self, now: Now, asked: &Asked, fx: &mut Effects<Message>) {
        let words = &asked.request.words;
        let Some(spans) = words::read(words) else {
            return;
        };
        self.forward.returned.note_tried(asked);
        self.run_words(now, &asked.header, Args::new(words, &spans, &mut []), fx);
    }
}

const STOPPING: &str = "CLUSTERDOWN This node is shutting down, and did not pass the request on";
