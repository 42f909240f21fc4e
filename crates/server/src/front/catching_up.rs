//! Sessions that go on elsewhere: what a session has seen at this node (`SESSION TOKEN`), and requests that wait until this node
//! has received what one has seen at another connection (`SESSION RESUME`).
//!
//! The worker of the connection waits until all earlier requests of that are answered, and then asks the workers of the replicas
//! that the connection uses: itself, and all others where a keyspace has fewer replicas than there are workers. Each answers when it
//! has what was asked for, or when the time is over.

use super::local::Local;
use super::session::Session;
use super::{Front, Message};
use rufous_base::{ConnId, Effects, Now, WorkerId};
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

/// A request that earlier ones of its connection go before.
#[derive(Debug)]
struct Queued {
    conn: ConnId,
    seq: u32,
    gather: u64,
    workers: Vec<WorkerId>,
    wanted: Wanted,
    timeout_us: u64,
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

/// The requests and questions of this worker.
#[derive(Debug, Default)]
pub(crate) struct CatchingUp {
    queued: Vec<Queued>,
    waiting: Vec<Waiting>,
}

impl CatchingUp {
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.waiting.is_empty()
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

/// At the end of a step: asks for what is due, and answers what can be answered.
pub(super) fn on_step(front: &mut Front, now: Now, stops: bool, fx: &mut Effects<Message>) {
    let own = front.id();
    for queued in std::mem::take(&mut front.catching_up.queued) {
        let Queued { conn, seq, .. } = queued;
        let connection = front.connections.get(conn);
        if connection.is_some_and(|connection| !connection.replies.is_next(seq)) {
            front.catching_up.queued.push(queued);
            continue;
        }
        let to = (own, queued.gather);
        for worker in queued.workers {
            let (wanted, timeout_us) = (queued.wanted.clone(), queued.timeout_us);
            if worker == own {
                front.catching_up.on_asked(now, to, wanted, timeout_us);
            } else {
                front.out.tell(worker, move |front, now| {
                    front.catching_up.on_asked(now, to, wanted, timeout_us);
                });
            }
        }
    }
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
    let Ok(connection) = session.connection() else {
        return;
    };
    let seq = connection.replies.next_seq();
    let Some(gather) = Session::expect(session, workers.len(), None, finish) else {
        return;
    };
    let conn = session.conn;
    session.local.front.catching_up.queued.push(Queued {
        conn,
        seq,
        gather,
        workers,
        wanted,
        timeout_us,
    });
}
