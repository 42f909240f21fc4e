//! What a step leaves for the other workers, for connections besides that of its request, and for the
//! driver.

use super::gather::Answer;
use super::{Front, Message};
use rufous_base::{ConnId, Effects, NodeEffect, Now, WorkerId};

/// A worker among those of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) own: WorkerId,
    pub(crate) workers: usize,
}

impl Place {
    /// All workers but this one.
    pub(crate) fn others(self) -> impl Iterator<Item = WorkerId> {
        let all = (0..self.workers).map(|worker| WorkerId(worker as u16));
        all.filter(move |worker| *worker != self.own)
    }
}

/// See the module's description.
pub(crate) struct Outbox {
    place: Place,
    messages: Vec<(WorkerId, Message)>,
    pushes: Vec<(ConnId, Vec<u8>)>,
    node: Vec<NodeEffect>,
}

impl Outbox {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            messages: Vec::new(),
            pushes: Vec::new(),
            node: Vec::new(),
        }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn send(&mut self, worker: WorkerId, message: Message) {
        self.messages.push((worker, message));
    }

    /// Runs an order at another worker.
    pub(super) fn tell(
        &mut self,
        worker: WorkerId,
        order: impl FnOnce(&mut Front, Now) + Send + 'static,
    ) {
        debug_assert_ne!(worker, self.place.own);
        self.send(worker, Message::Tell(Box::new(order)));
    }

    /// Runs an order at all other workers.
    pub(super) fn tell_others(
        &mut self,
        order: impl FnOnce(&mut Front, Now) + Clone + Send + 'static,
    ) {
        for worker in self.place.others() {
            self.tell(worker, order.clone());
        }
    }

    /// Answers a question of another worker.
    pub(super) fn answer(&mut self, worker: WorkerId, gather: u64, answer: Answer) {
        self.send(worker, Message::Answered { gather, answer });
    }

    /// Sends bytes to a connection that are no reply.
    pub(super) fn push(&mut self, conn: ConnId, bytes: Vec<u8>) {
        self.pushes.push((conn, bytes));
    }

    /// Forgets what was pushed to a connection in this step.
    pub(super) fn unpush(&mut self, conn: ConnId) {
        self.pushes.retain(|(to, _)| *to != conn);
    }

    /// Asks the driver for something.
    pub(super) fn ask_driver(&mut self, effect: NodeEffect) {
        self.node.push(effect);
    }

    /// The step ends.
    pub(super) fn take(&mut self, fx: &mut Effects<Message>) {
        self.take_messages(fx);
        fx.node.append(&mut self.node);
        for (conn, bytes) in self.pushes.drain(..) {
            let start = fx.output.mark();
            fx.output.bytes.extend_from_slice(&bytes);
            fx.write(conn, start);
        }
    }

    pub(super) fn take_messages(&mut self, fx: &mut Effects<Message>) {
        fx.messages.append(&mut self.messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_and_forgotten_is_not_sent() {
        let place = Place {
            own: WorkerId(1),
            workers: 3,
        };
        let mut out = Outbox::new(place);
        out.tell_others(|_, _| {});
        let [one, two] = [1, 2].map(|slot| ConnId {
            slot,
            generation: 1,
        });
        out.push(one, b"a".to_vec());
        out.push(two, b"b".to_vec());
        out.unpush(one);
        let mut fx = Effects::default();
        out.take(&mut fx);
        let to: Vec<_> = fx.messages.iter().map(|(worker, _)| worker.0).collect();
        assert_eq!(to, [0, 2]);
        assert_eq!(fx.output.bytes, b"b");
        assert_eq!(fx.writes.len(), 1);
        out.take(&mut fx);
        assert_eq!((fx.messages.len(), fx.writes.len()), (2, 1));
    }
}
