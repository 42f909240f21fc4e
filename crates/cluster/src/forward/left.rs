//! Requests without a reply from the node that they were sent to: its session has ended, or it has left the chains of their
//! keys. In the second case the reply, or the word that nothing was executed, is on its way. A node of which a part stands
//! still may never send it, and its session goes on.

use super::{Action, Asked, Forwarding, Over};
use crate::way::{Routing, Way, name_of};
use rufous_base::Now;
use rufous_kernel::planted::{self, Planted};
use rufous_mapping::NodeNo;

/// How long the reply of a node may take once it has left.
const LEFT_US: u64 = 2_000_000;

impl Forwarding {
    /// The session with a node has ended. Its unanswered writes are in doubt; other requests are
    /// sent again.
    pub fn on_link_lost<R: Fn(NodeNo) -> bool>(
        &mut self,
        now: Now,
        no: NodeNo,
        routing: &Routing<'_, R>,
    ) {
        let all = self.nodes.get_mut(&no).map(super::Toward::take_all);
        self.waiters.on_link_lost(no);
        for (asked, was_sent) in all.into_iter().flatten() {
            let why = was_sent.then_some(ENDED);
            self.lose(now, no, Unanswered { asked, why }, routing);
        }
    }

    /// A mapping has taken effect: nodes may have left.
    pub(super) fn look_for_left(&mut self) {
        self.left_due_us = Some(0);
    }

    /// A step ends: gives up requests at nodes that left some time ago.
    #[inline]
    pub(super) fn look_at_left<R: Fn(NodeNo) -> bool>(
        &mut self,
        now: Now,
        routing: &Routing<'_, R>,
    ) {
        let is_due = self.left_due_us.is_some_and(|due_us| now.mono_us >= due_us);
        if is_due && !planted::is(Planted::LeftAwaited) {
            self.give_up_left(now, routing);
        }
    }

    #[cold]
    fn give_up_left<R: Fn(NodeNo) -> bool>(&mut self, now: Now, routing: &Routing<'_, R>) {
        let (mut overdue, mut due_us) = (Vec::new(), None::<u64>);
        for (no, toward) in &mut self.nodes {
            for (number, asked) in toward.all_mut() {
                if asked.request.goal.way(routing) == Way::There(*no) {
                    asked.left_us = 0;
                    continue;
                }
                if asked.left_us == 0 {
                    asked.left_us = now.mono_us + LEFT_US;
                }
                if asked.left_us <= now.mono_us {
                    overdue.push((*no, *number));
                } else {
                    let first_us = due_us.unwrap_or(u64::MAX);
                    due_us = Some(asked.left_us.min(first_us));
                }
            }
        }
        self.left_due_us = due_us;
        if let Some(due_us) = due_us {
            self.wake_by(due_us);
        }
        for (no, number) in overdue {
            let toward = self.nodes.get_mut(&no);
            if let Some(asked) = toward.and_then(|toward| toward.leave(number)) {
                let why = Some(LEFT);
                self.lose(now, no, Unanswered { asked, why }, routing);
            }
        }
    }

    fn lose<R: Fn(NodeNo) -> bool>(
        &mut self,
        now: Now,
        no: NodeNo,
        unanswered: Unanswered,
        routing: &Routing<'_, R>,
    ) {
        let Unanswered { mut asked, why } = unanswered;
        self.waiters.on_taken(&asked.request);
        let again = planted::is(Planted::DoubtAskedAgain);
        match why.filter(|_| asked.request.writes && !again) {
            Some(_) if asked.over == Some(Over::Gone) => {}
            Some(why) => self.fail_in_doubt(no, &asked, (why, routing)),
            None if self.goes_on(now, &mut asked) => self.send_later(now, asked, 0, routing),
            None => {}
        }
    }

    pub(super) fn fail_in_doubt<R>(
        &mut self,
        no: NodeNo,
        asked: &Asked,
        (why, routing): (Why, &Routing<'_, R>),
    ) {
        self.figures.in_doubt += 1;
        let name = name_of(routing.mapping, no);
        let (before, behind) = why;
        let why = format!(
            "UNKNOWNRESULT {before} {name}, {behind}: it is not known whether this was done"
        );
        self.act(Action::Fail(asked.request.header, why));
    }
}

/// A request that has no reply, and will have none from its node.
struct Unanswered {
    asked: Asked,
    /// Why it is not known whether it was done; `None`: it was not sent.
    why: Option<Why>,
}

/// What an error says before and behind the node's name.
type Why = (&'static str, &'static str);

pub(super) const ENDED: Why = (
    "The connection to node",
    "which has the key, ended before its reply came",
);
const LEFT: Why = (
    "Node",
    "which had the key, was replaced, and has not replied since",
);
