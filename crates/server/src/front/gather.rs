//! Questions to all workers of the node: each answers about itself, and the worker that asked makes
//! one reply of the answers.
//!
//! A question is sent as a message like everything that workers share, so that it is answered
//! between two commands.

use super::local::Local;
use super::outbox::Place;
use super::session::Session;
use super::{Front, Message};
use rufous_base::{ConnId, Now, WorkerId};
use rufous_command::Reply;
use std::any::Any;
use std::collections::BTreeMap;

/// Runs at each worker; its return value is sent back.
pub type Question = Box<dyn FnOnce(&mut Front, Now) -> Answer + Send>;

/// Runs at another worker, without an answer.
pub type Order = Box<dyn FnOnce(&mut Front, Now) + Send>;

/// The answer of one worker.
pub type Answer = Box<dyn Any + Send>;

type Finish = Box<dyn FnOnce(&mut Front, Vec<Answer>, &mut Reply<'_>) + Send>;

/// The request that a question belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) conn: ConnId,
    pub(super) seq: u32,
    /// The transaction that waits for it.
    pub(super) exec: Option<u64>,
    pub(super) resp3: bool,
}

/// A question that is not answered by all yet.
struct Gather {
    asker: Asker,
    answers: Vec<Option<Answer>>,
    missing: usize,
    finish: Finish,
}

/// A question that is answered: `finish` makes the reply of the answers.
pub(super) struct Gathered {
    pub(super) asker: Asker,
    pub(super) answers: Vec<Answer>,
    pub(super) finish: Finish,
}

/// The questions of this worker.
#[derive(Default)]
pub(crate) struct Gathers {
    asked: u64,
    pending: BTreeMap<u64, Gather>,
}

impl Gathers {
    /// A question is asked, to which `missing` answers are still to come, and this worker's own may be
    /// known. Returns the number that they carry.
    fn on_asked(&mut self, asker: Asker, own: Own, missing: usize, finish: Finish) -> u64 {
        let id = self.asked;
        self.asked += 1;
        let mut answers: Vec<Option<Answer>> = Vec::new();
        answers.resize_with(own.place.workers, || None);
        answers[own.place.own.index()] = own.answer;
        let gather = Gather {
            asker,
            answers,
            missing,
            finish,
        };
        self.pending.insert(id, gather);
        id
    }

    /// A worker has answered. Returns the question if that was the last answer.
    pub(super) fn on_answer(
        &mut self,
        id: u64,
        from: WorkerId,
        answer: Answer,
    ) -> Option<Gathered> {
        let Some(gather) = self.pending.get_mut(&id) else {
            debug_assert!(false, "an answer to a question that was not asked");
            return None;
        };
        gather.answers[from.index()] = Some(answer);
        gather.missing -= 1;
        if gather.missing > 0 {
            return None;
        }
        let gather = self.pending.remove(&id)?;
        Some(Gathered {
            asker: gather.asker,
            answers: gather.answers.into_iter().flatten().collect(),
            finish: gather.finish,
        })
    }

    /// Whether no answer is missing.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

/// The worker that asks, and its own answer.
struct Own {
    place: Place,
    answer: Option<Answer>,
}

impl Session<'_> {
    /// Asks every worker, this one included, and makes the reply of their answers, in the order of
    /// workers. On a node with one worker the reply is written before this returns.
    pub fn ask_all<T: Send + 'static>(
        &mut self,
        reply: &mut Reply<'_>,
        question: impl Fn(&mut Local<'_>, Now) -> T + Clone + Send + 'static,
        finish: impl FnOnce(&mut Local<'_>, Vec<T>, &mut Reply<'_>) + Send + 'static,
    ) {
        let workers = self.local.front.kernel.placement().workers();
        let here = question(&mut self.local, self.now);
        if workers == 1 {
            finish(&mut self.local, vec![here], reply);
            return;
        }
        let all = (0..workers).map(|w| WorkerId(w as u16));
        let others: Vec<_> = all.filter(|w| *w != self.local.front.id()).collect();
        self.ask(&others, Some(Box::new(here)), question, finish);
    }

    /// Asks one worker, which may be this one.
    pub fn ask_one<T: Send + 'static>(
        &mut self,
        reply: &mut Reply<'_>,
        worker: WorkerId,
        question: impl Fn(&mut Local<'_>, Now) -> T + Clone + Send + 'static,
        finish: impl FnOnce(&mut Local<'_>, T, &mut Reply<'_>) + Send + 'static,
    ) {
        if worker == self.local.front.id() {
            let answer = question(&mut self.local, self.now);
            finish(&mut self.local, answer, reply);
            return;
        }
        self.ask(
            &[worker],
            None,
            question,
            move |front, mut answers: Vec<T>, reply: &mut Reply<'_>| {
                if let Some(answer) = answers.pop() {
                    finish(front, answer, reply);
                }
            },
        );
    }

    pub(super) fn ask<T: Send + 'static>(
        &mut self,
        others: &[WorkerId],
        own: Option<Answer>,
        question: impl Fn(&mut Local<'_>, Now) -> T + Clone + Send + 'static,
        finish: impl FnOnce(&mut Local<'_>, Vec<T>, &mut Reply<'_>) + Send + 'static,
    ) {
        if let Some(id) = self.expect(others.len(), own, finish) {
            self.ask_for(id, others, question);
        }
    }

    /// Asks other workers; their answers carry the number of [`Session::expect`].
    pub(super) fn ask_for<T: Send + 'static>(
        &mut self,
        id: u64,
        others: &[WorkerId],
        question: impl Fn(&mut Local<'_>, Now) -> T + Clone + Send + 'static,
    ) {
        for &worker in others {
            let question = question.clone();
            let boxed: Question = Box::new(move |front, now| {
                let mut local = Local { front };
                Box::new(question(&mut local, now))
            });
            let message = Message::Ask {
                gather: id,
                question: boxed,
            };
            self.local.front.out.send(worker, message);
        }
    }

    /// Makes the reply of this worker's answer and of `missing` answers to come; these carry the
    /// returned number.
    pub(super) fn expect<T: Send + 'static>(
        &mut self,
        missing: usize,
        own: Option<Answer>,
        finish: impl FnOnce(&mut Local<'_>, Vec<T>, &mut Reply<'_>) + Send + 'static,
    ) -> Option<u64> {
        let (seq, resp3) = match self.local.front.peers.jobs.of(self.conn) {
            Some(begun) => (0, begun.resp3),
            None => {
                let connection = self.local.front.connection(self.conn)?;
                (connection.replies.next_seq(), connection.resp3)
            }
        };
        let asker = Asker {
            conn: self.conn,
            seq,
            exec: self.exec,
            resp3,
        };
        let own = Own {
            place: self.local.front.out.place(),
            answer: own,
        };
        let finish: Finish = Box::new(move |front, answers, reply| {
            let typed = answers
                .into_iter()
                .filter_map(|a| a.downcast::<T>().ok().map(|a| *a))
                .collect();
            finish(&mut Local { front }, typed, reply);
        });
        self.pending = true;
        let gathers = &mut self.local.front.gathers;
        Some(gathers.on_asked(asker, own, missing, finish))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_workers() {
        let mut gathers = Gathers::default();
        let asker = Asker {
            conn: ConnId {
                slot: 1,
                generation: 1,
            },
            seq: 7,
            exec: None,
            resp3: true,
        };
        let place = Place {
            own: WorkerId(1),
            workers: 3,
        };
        let own = |answer: u32| Own {
            place,
            answer: Some(Box::new(answer) as Answer),
        };
        let first = gathers.on_asked(asker, own(10), 2, Box::new(|_, _, _| {}));
        let second = gathers.on_asked(asker, own(20), 1, Box::new(|_, _, _| {}));
        assert_ne!(first, second);
        let mut told = |id, from, answer: u32| {
            let gathered = gathers.on_answer(id, WorkerId(from), Box::new(answer))?;
            assert_eq!(gathered.asker, asker);
            let answers = gathered.answers.into_iter();
            let answers = answers.map(|a| *a.downcast::<u32>().expect("a number"));
            Some(answers.collect::<Vec<_>>())
        };
        assert_eq!(told(first, 2, 12), None);
        // Only one worker was asked.
        assert_eq!(told(second, 0, 19), Some(vec![19, 20]));
        assert_eq!(told(first, 0, 9), Some(vec![9, 10, 12]));
        assert!(gathers.is_empty());
    }
}
