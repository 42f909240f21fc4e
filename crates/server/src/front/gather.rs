//! Questions to all workers of the node: each answers about itself, and the worker that asked makes
//! one reply of the answers.
//!
//! A question is sent as a message like everything that workers share, so that it is answered
//! between two commands.

use super::local::Local;
use super::session::Session;
use super::{Front, Message};
use crate::cluster::jobs::is_job;
use rufous_base::{ConnId, Effects, Now, Output, WorkerId};
use rufous_command::Reply;
use std::any::Any;

/// Runs at each worker; its return value is sent back.
pub type Question = Box<dyn FnOnce(&mut Front, Now) -> Answer + Send>;

/// Runs at another worker, without an answer.
pub type Order = Box<dyn FnOnce(&mut Front, Now) + Send>;

/// The answer of one worker.
pub type Answer = Box<dyn Any + Send>;

type Finish = Box<dyn FnOnce(&mut Front, Vec<Answer>, &mut Reply<'_>) + Send>;

/// A pending question, at the worker that asked.
pub(crate) struct Gather {
    conn: ConnId,
    seq: u32,
    /// The transaction that waits for it.
    exec: Option<u64>,
    resp3: bool,
    answers: Vec<Option<Answer>>,
    missing: usize,
    finish: Finish,
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
            self.local.front.outgoing.push((
                worker,
                Message::Ask {
                    gather: id,
                    question: boxed,
                },
            ));
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
        let id = self.local.front.next_gather;
        self.local.front.next_gather += 1;
        let mut answers: Vec<Option<Answer>> = Vec::new();
        answers.resize_with(self.local.front.kernel.placement().workers(), || None);
        answers[self.local.front.id().index()] = own;
        let exec = self.exec;
        let job = self
            .local
            .front
            .jobs
            .get(self.conn)
            .filter(|_| is_job(self.conn));
        let (seq, resp3) = match job {
            Some(begun) => (0, begun.resp3),
            None => {
                let connection = self.local.front.connection(self.conn)?;
                (connection.next_seq(), connection.resp3)
            }
        };
        let gather = Gather {
            conn: self.conn,
            seq,
            exec,
            resp3,
            answers,
            missing,
            finish: Box::new(move |front, answers, reply| {
                let typed = answers
                    .into_iter()
                    .filter_map(|a| a.downcast::<T>().ok().map(|a| *a))
                    .collect();
                finish(&mut Local { front }, typed, reply);
            }),
        };
        self.local.front.gathers.insert(id, gather);
        self.pending = true;
        Some(id)
    }
}

impl Front {
    /// Runs an order at another worker.
    pub fn tell(&mut self, worker: WorkerId, order: impl FnOnce(&mut Front, Now) + Send + 'static) {
        debug_assert_ne!(worker, self.id());
        self.outgoing.push((worker, Message::Tell(Box::new(order))));
    }

    pub(super) fn on_answered(
        &mut self,
        id: u64,
        from: WorkerId,
        answer: Answer,
        fx: &mut Effects<Message>,
    ) {
        let Some(gather) = self.gathers.get_mut(&id) else {
            debug_assert!(false, "an answer to a question that was not asked");
            return;
        };
        gather.answers[from.index()] = Some(answer);
        gather.missing -= 1;
        if gather.missing > 0 {
            return;
        }
        let Some(gather) = self.gathers.remove(&id) else {
            return;
        };
        let mut out = Output::default();
        let answers = gather.answers.into_iter().flatten().collect();
        (gather.finish)(self, answers, &mut Reply::new(&mut out, gather.resp3));
        if let Some(exec) = gather.exec {
            self.transactions.answer(exec, out);
            return;
        }
        if is_job(gather.conn) {
            return self.deliver(gather.conn, gather.seq, &out, fx);
        }
        self.counters.note_reply(&out, (0, 0), out.mark());
        let Some(connection) = self.connections.get(gather.conn) else {
            return;
        };
        let start = fx.output.mark();
        connection.complete(gather.seq, &out, (0, 0), out.mark(), &mut fx.output);
        let until = connection.take_until(self.splits);
        fx.write_until(gather.conn, start, until);
        super::closing::close_if_last(connection, fx);
    }
}
