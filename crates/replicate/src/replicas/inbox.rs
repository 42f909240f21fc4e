//! Messages of one sender that wait.
//!
//! What a keyspace promises holds back the changes of keyspaces with that promise alone: there is a lane for each. A report
//! says that all before it was received, and waits for all lanes.

use crate::batch::{Batch, Body};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a sender's messages that may wait. Beyond that all are applied, and its state is compared.
const MOST_BYTES: usize = 16 << 20;

/// What changes wait for, beside a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Nothing.
    Free,
    /// The end of their epoch, whose changes are applied together; earlier programs send such.
    Together,
    /// Also for what others have sent before (`CUT`).
    Cut,
}

impl Lane {
    pub(super) const ALL: [Self; 3] = [Self::Free, Self::Together, Self::Cut];

    /// `None`: a report.
    pub(super) fn of(body: &Body<'_>) -> Option<Self> {
        match body {
            Body::Items(_) => Some(Self::Free),
            Body::Ordered { after, .. } if after.is_empty() => Some(Self::Together),
            // Whole states may depend on what waits.
            Body::Ordered { .. } | Body::ToldAgain(_) | Body::Begin(_) => Some(Self::Cut),
            Body::Report(_) => None,
        }
    }
}

/// A message, with its place among all that were put in.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) bytes: Arc<[u8]>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    next: u64,
    lanes: [VecDeque<Message>; 3],
    reports: VecDeque<Message>,
    /// Of all messages.
    bytes: usize,
    is_told: bool,
}

impl Waiting {
    /// Whether there are too many, once.
    pub(super) fn overflows(&mut self) -> bool {
        self.bytes > MOST_BYTES && !std::mem::replace(&mut self.is_told, true)
    }

    pub(super) fn lane(&self, lane: Lane) -> &VecDeque<Message> {
        &self.lanes[lane as usize]
    }

    /// Puts in a message with these bytes.
    pub(super) fn put(&mut self, batch: &Batch<'_>, bytes: &Arc<[u8]>) {
        let message = Message {
            number: self.next,
            bytes: Arc::clone(bytes),
        };
        self.next += 1;
        self.bytes += bytes.len();
        match Lane::of(&batch.body) {
            Some(lane) => self.lanes[lane as usize].push_back(message),
            None => self.reports.push_back(message),
        }
    }

    /// The number of the first report behind this message.
    pub(super) fn end_of(&self, number: u64) -> Option<u64> {
        let at = self
            .reports
            .partition_point(|report| report.number < number);
        self.reports.get(at).map(|report| report.number)
    }

    pub(super) fn pop(&mut self, lane: Lane) -> Option<Message> {
        let message = self.lanes[lane as usize].pop_front()?;
        self.bytes -= message.bytes.len();
        Some(message)
    }

    /// The next report, if nothing before it waits.
    pub(super) fn pop_report(&mut self) -> Option<Message> {
        let number = self.reports.front()?.number;
        let mut fronts = self.lanes.iter().filter_map(VecDeque::front);
        let is_due = fronts.all(|front| front.number > number);
        let report = self.reports.pop_front_if(|_| is_due)?;
        self.bytes -= report.bytes.len();
        Some(report)
    }

    /// All, in their order.
    pub(super) fn into_all(self) -> Vec<Message> {
        let lanes = self.lanes.into_iter().flatten();
        let mut all: Vec<Message> = lanes.chain(self.reports).collect();
        all.sort_by_key(|message| message.number);
        all
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum::<usize>() + self.reports.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
