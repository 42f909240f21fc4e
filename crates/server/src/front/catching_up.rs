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
    /// It had not in time.
    Lacks(Late),
}

/// What was lacking, and why it was not waited for any longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) lack: Lack,
    pub(crate) waited_ms: u64,
    /// The node stops: the time was not over.
    pub(crate) stops: bool,
}

/// The worker and the question that an answer goes to.
type To = (WorkerId, u64);

/// A question that this worker has not answered yet.
#[derive(Debug)]
struct Waiting {
    to: To,
    wanted: Wanted,
    since_us: u64,
    until_us: u64,
    /// It was looked at before.
    waited: bool,
}

impl Waiting {
    fn is_over(&self, now: Now) -> bool {
        now.mono_us >= self.until_us
    }

    fn find(&self, now: Now, stops: bool, kernel: &mut Worker<DataCommands>) -> Option<Found> {
        let is_over = self.is_over(now);
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
        (is_over || stops).then(|| {
            Found::Lacks(Late {
                lack,
                waited_ms: now.mono_us.saturating_sub(self.since_us) / 1000,
                stops: stops && !is_over,
            })
        })
    }
}

/// The questions to this worker.
#[derive(Debug, Default)]
pub(crate) struct CatchingUp {
    waiting: Vec<Waiting>,
    /// [`Worker::news`] when all of them were last looked at.
    news: u64,
    /// One of them was not looked at yet.
    has_new: bool,
    /// The earliest end of a wait.
    next_us: u64,
}

impl CatchingUp {
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn wake_us(&self) -> Option<u64> {
        (!self.is_idle()).then_some(self.next_us)
    }

    fn on_asked(&mut self, now: Now, to: To, wanted: Wanted, timeout_us: u64) {
        let until_us = now.mono_us.saturating_add(timeout_us);
        let others_us = self.wake_us().unwrap_or(u64::MAX);
        self.next_us = others_us.min(until_us);
        self.has_new = true;
        self.waiting.push(Waiting {
            to,
            wanted,
            since_us: now.mono_us,
            until_us,
            waited: false,
        });
    }

    /// The questions that may have an answer now; the others stay. Thousands of sessions may wait, and most steps change nothing
    /// for them.
    fn take_ripe(&mut self, now: Now, news: u64, stops: bool) -> Vec<Waiting> {
        let looks_at_all = stops || news != self.news;
        if !looks_at_all && !self.has_new && now.mono_us < self.next_us {
            return Vec::new();
        }
        (self.news, self.has_new) = (news, false);
        if looks_at_all {
            return std::mem::take(&mut self.waiting);
        }
        let ripe = |waiting: &mut Waiting| !waiting.waited || waiting.is_over(now);
        self.waiting.extract_if(.., ripe).collect()
    }

    fn keep(&mut self, waiting: Vec<Waiting>) {
        self.waiting.extend(waiting);
        let ends = self.waiting.iter().map(|waiting| waiting.until_us);
        self.next_us = ends.min().unwrap_or(u64::MAX);
    }
}

/// At the end of a step: answers what can be answered.
pub(super) fn on_step(front: &mut Front, now: Now, stops: bool, fx: &mut Effects<Message>) {
    let own = front.id();
    let news = front.kernel.news();
    let ripe = front.catching_up.take_ripe(now, news, stops);
    if ripe.is_empty() {
        return;
    }
    let mut unripe = Vec::new();
    for mut waiting in ripe {
        let Some(found) = waiting.find(now, stops, &mut front.kernel) else {
            waiting.waited = true;
            unripe.push(waiting);
            continue;
        };
        let (worker, gather) = waiting.to;
        if worker == own {
            front.on_answered(gather, own, Box::new(found), fx);
        } else {
            front.out.answer(worker, gather, Box::new(found));
        }
    }
    front.catching_up.keep(unripe);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            unix_us: 0,
        }
    }

    /// A question until this time.
    fn ask(questions: &mut CatchingUp, now_us: u64, until_us: u64) {
        let to = (WorkerId(0), until_us);
        questions.on_asked(at(now_us), to, Wanted::Seen, until_us - now_us);
    }

    /// The ends of the questions that are looked at, none of which has an answer before its time is up.
    fn looked_at(questions: &mut CatchingUp, now_us: u64, news: u64) -> Vec<u64> {
        let mut ripe = questions.take_ripe(at(now_us), news, false);
        let ends = ripe.iter().map(|waiting| waiting.until_us).collect();
        ripe.retain(|waiting| !waiting.is_over(at(now_us)));
        ripe.iter_mut().for_each(|waiting| waiting.waited = true);
        questions.keep(ripe);
        ends
    }

    /// All questions were looked at in each step: with 4,000 that waited, others waited for tens of milliseconds.
    #[test]
    fn questions_are_looked_at_when_they_may_have_an_answer() {
        let mut questions = CatchingUp::default();
        ask(&mut questions, 0, 900);
        ask(&mut questions, 0, 500);
        assert_eq!(looked_at(&mut questions, 0, 7), [900, 500], "new ones");
        assert!(looked_at(&mut questions, 100, 7).is_empty());
        ask(&mut questions, 100, 700);
        assert_eq!(
            looked_at(&mut questions, 100, 7),
            [700],
            "the new one alone"
        );
        assert!(looked_at(&mut questions, 200, 7).is_empty());
        assert_eq!(looked_at(&mut questions, 300, 8), [900, 500, 700], "news");
        assert!(looked_at(&mut questions, 499, 8).is_empty());
        assert_eq!(questions.wake_us(), Some(500));
        assert_eq!(looked_at(&mut questions, 500, 8), [500], "time is up");
        assert_eq!(questions.wake_us(), Some(700));
        assert_eq!(looked_at(&mut questions, 1_000, 8), [900, 700]);
        assert!(questions.is_idle() && questions.wake_us().is_none());
        // The next one may come when everything else is as before.
        ask(&mut questions, 1_000, 2_000);
        assert_eq!(looked_at(&mut questions, 1_000, 8), [2_000]);
    }

    #[test]
    fn all_are_answered_at_a_stop() {
        let mut questions = CatchingUp::default();
        ask(&mut questions, 0, 900);
        looked_at(&mut questions, 0, 7);
        assert_eq!(questions.take_ripe(at(1), 7, true).len(), 1);
    }
}
