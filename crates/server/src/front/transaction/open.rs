//! The transactions of a worker that are in progress.

use super::super::outbox::Outbox;
use super::Transaction;
use super::apart::Open;
use super::begun::{Begun, given_up};
use super::promises::Promises;
use super::run::Running;
use super::step::Step;
use rufous_base::{Now, Output};
use rufous_cluster::figures::WaitFigures;
use rufous_command::{DataCommands, Failure};
use rufous_kernel::{Batch, Submitted, Worker};
use std::collections::BTreeMap;

/// The transactions in progress.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    running: BTreeMap<u64, Running>,
    pub(super) apart: Open,
    /// Commands of open ones whose keys are to be held.
    steps: BTreeMap<u64, Step>,
    pub(super) promises: Promises,
    next: u64,
    /// Answers to commands in transactions that asked other workers.
    answers: Vec<(u64, Output)>,
    /// Reused for the next one.
    pub(super) spare: Option<Box<Batch>>,
}

impl Transactions {
    /// How long clients have waited for outcomes of transactions over slots.
    pub(crate) fn waits(&self) -> WaitFigures {
        self.apart.waits
    }

    /// Takes the reply to a command that a transaction waits for.
    pub(in crate::front) fn answer(&mut self, exec: u64, reply: Output) {
        self.answers.push((exec, reply));
    }

    /// Answers that have arrived since the last call.
    pub(super) fn take_answers(&mut self) -> Vec<(u64, Output)> {
        std::mem::take(&mut self.answers)
    }

    /// A number for a transaction, or a command of one, whose keys are to be held.
    pub(super) fn number(&mut self) -> u64 {
        let exec = self.next;
        self.next += 1;
        exec
    }

    /// A transaction waits for keys or for answers.
    pub(super) fn on_waits(&mut self, exec: u64, running: Running) {
        self.running.insert(exec, running);
    }

    /// A transaction goes on, if this number is that of one.
    pub(super) fn take_running(&mut self, exec: u64) -> Option<Running> {
        self.running.remove(&exec)
    }

    /// The keys of a command are to be held.
    pub(super) fn hold_for(&mut self, step: Step, kernel: &mut Worker<DataCommands>) -> Submitted {
        let plan = step.plan(self.number());
        self.steps.insert(plan.exec, step);
        kernel.hold_all(plan);
        Submitted::Barrier
    }

    /// The keys of a command are held, if this number is that of one.
    pub(super) fn take_step(&mut self, exec: u64) -> Option<Step> {
        self.steps.remove(&exec)
    }

    /// Keeps an empty batch for the next transaction.
    pub(super) fn keep(&mut self, mut batch: Box<Batch>) {
        batch.reset();
        self.spare = Some(batch);
    }

    /// What `BEGIN` has begun is over: releases its resources.
    pub(super) fn end_begun(
        &mut self,
        begun: Begun,
        kernel: &mut Worker<DataCommands>,
        out: &mut Outbox,
    ) {
        self.promises.redeem(begun.promise, kernel, out);
        kernel.close_transaction(begun.open);
    }

    /// Gives up the transaction of a connection. Returns the reply to the command that it cannot
    /// execute.
    pub(super) fn give_up(
        &mut self,
        now: Now,
        why: Failure,
        transaction: &mut Transaction,
        kernel: &mut Worker<DataCommands>,
        out: &mut Outbox,
    ) -> Failure {
        let failure = given_up(&why);
        if let Some(begun) = transaction.begun.as_deref_mut() {
            let empty = kernel.open_transaction(now, begun.open.isolation());
            let (copies, promise) = begun.give_up(why, empty);
            kernel.close_transaction(copies);
            self.promises.redeem(promise, kernel, out);
            if let Some(kept) = transaction.forget_kept() {
                self.keep(kept);
            }
        }
        failure
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.promises.is_empty() && self.running.is_empty()
    }
}
