//! Sessions that go on elsewhere: what a session has seen at this node (`SESSION TOKEN`), and requests that wait until this node
//! has received what one has seen at another connection (`SESSION RESUME`).
//!
//! The worker of the connection asks the workers of the replicas that the connection uses: itself, and all others where a keyspace
//! has fewer replicas than there are workers. Each answers when it has what was asked for, or when the time is over. By then all
//! earlier requests of the connection are answered ([`rufous_command::Flags::AFTER_OTHERS`]).

use super::local::Local;
use super::session::Session;
use super::{Front, Message};
use rufous_base::{Effects, Now, WorkerId};
use rufous_command::{DataCommands, Reply};
use rufous_kernel::Worker;
use rufous_kernel::replicate::vector::Vector;
use rufous_kernel::worker::Lack;
use std::sync::Arc;

/// What a worker is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// What a session may have seen here.
    Seen,
    /// To have received this.
    Here(Arc<Vector>),
}

/// A worker's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Seen(Vector),
    /// It has what was wanted, and whether it had to wait for that.
    Here {
        waited: bool,
    },
    /// It had not in time: what was lacking.
    Lacks(Lack),
}

/// The worker and the question that an answer goes to.
type To = (WorkerId, u64);

/// A question that this worker has not answered yet.
#[derive(Debug)]
struct Waiting {
    to: To,
    wanted: Wanted,
    until_us: u64,
    waited: bool,
}

impl Waiting {
    fn find(&self, now: Now, stops: bool, kernel: &mut Worker<DataCommands>) -> Option<Found> {
        let is_over = stops || now.mono_us >= self.until_us;
        let lack = match &self.wanted {
            Wanted::Seen => match kernel.seen() {
                Some(seen) => return Some(Found::Seen(seen)),
                None => Lack::NOTHING,
            },
            Wanted::Here(seen) => match kernel.lacks(seen) {
                lack if lack == Lack::NOTHING => {
                    let waited = self.waited;
                    return Some(Found::Here { waited });
                }
                lack => lack,
            },
        };
        is_over.then_some(Found::Lacks(lack))
    }
}

/// The questions to this worker.
#[derive(Debug, Default)]
pub(crate) struct CatchingUp {
    waiting: Vec<Waiting>,
}

impl CatchingUp {
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn wake_us(&self) -> Option<u64> {
        self.waiting.iter().map(|waiting| waiting.until_us).min()
    }

    fn on_asked(&mut self, now: Now, to: To, wanted: Wanted, timeout_us: u64) {
        let until_us = now.mono_us.saturating_add(timeout_us);
        self.waiting.push(Waiting {
            to,
            wanted,
            until_us,
            waited: false,
        });
    }
}

/// At the end of a step: answers what can be answered.
pub(super) fn on_step(front: &mut Front, now: Now, stops: bool, fx: &mut Effects<Message>) {
    let own = front.id();
    for mut waiting in std::mem::take(&mut front.catching_up.waiting) {
        let Some(found) = waiting.find(now, stops, &mut front.kernel) else {
            waiting.waited = true;
            front.catching_up.waiting.push(waiting);
            continue;
        };
        let (worker, gather) = waiting.to;
        if worker == own {
            front.on_answered(gather, own, Box::new(found), fx);
        } else {
            front.out.answer(worker, gather, Box::new(found));
        }
    }
}

/// Asks the workers of all replicas that the connection uses; the reply is made of their answers. Each waits for up to
/// `timeout_us`.
pub(crate) fn ask(
    session: &mut Session<'_>,
    (wanted, timeout_us): (Wanted, u64),
    finish: impl FnOnce(&mut Local<'_>, Vec<Found>, &mut Reply<'_>) + Send + 'static,
) {
    let front = &session.local.front;
    let placement = front.kernel.placement();
    let count = placement.workers();
    let uses_others = placement.any_lattice(|of| of.spread(count) < count);
    let all = (0..count).map(|worker| WorkerId(worker as u16));
    let own = front.id();
    let workers: Vec<_> = all.filter(|w| uses_others || *w == own).collect();
    let Some(gather) = Session::expect(session, workers.len(), None, finish) else {
        return;
    };
    let (now, to) = (session.now, (own, gather));
    for worker in workers {
        let wanted = wanted.clone();
        let front = &mut *session.local.front;
        if worker == own {
            front.catching_up.on_asked(now, to, wanted, timeout_us);
        } else {
            front.out.tell(worker, move |front, now| {
                front.catching_up.on_asked(now, to, wanted, timeout_us);
            });
        }
    }
}
