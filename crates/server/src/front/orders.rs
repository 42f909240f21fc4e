//! Orders by which commands ask for snapshots, and their answers.
//!
//! Orders ([`SaveOrder`]) of commands at any worker are sent to the first one, which takes them and
//! answers each once, at once or much later.

use super::persistence::COORDINATOR;
use rufous_base::{ConnId, WorkerId};
use rufous_kernel::durable::Manifest;
use std::collections::VecDeque;

/// An order of a command to the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOrder {
    /// A snapshot, answered [`SaveAnswer::Saved`] once it is installed.
    Save,
    /// A snapshot, answered as soon as it begins; with `schedule`, also if another is in progress
    /// and this one has to wait for it.
    Background { schedule: bool },
    /// The same as a rewrite of the log; it always waits.
    Rewrite,
    /// An instant of the whole node as files that are kept, for a backup: a cut of the logs if
    /// logging is on and there is a manifest, a snapshot otherwise. Answered with
    /// [`SaveAnswer::Pinned`] once everything up to that instant is synced.
    Pin,
    /// The files of this pin may be deleted; [`SaveAnswer::Unpinned`].
    Unpin(u64),
    /// As `Save`, before the node stops; no new save begins after it.
    BeforeStop,
    /// Likewise, but answered at once where the log has everything.
    BeforeStopUnlessLogged,
    /// Answered with [`SaveAnswer::Saved`] once logging is what the settings say: every change that
    /// a reply shows is found at the next start, or the end of the log is recorded.
    SwitchLog,
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveAnswer {
    Saved,
    Started,
    /// It follows as soon as the one in progress ends.
    Scheduled,
    /// Another one is in progress.
    Busy,
    /// There is no data folder to save to.
    NoFolder,
    Failed(String),
    Pinned(Pinned),
    /// Whether this pin existed.
    Unpinned(bool),
}

/// The files of a pin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    pub id: u64,
    /// The manifest that a start from these files needs.
    pub manifest: Vec<u8>,
    /// The files that it needs, and the length to use of each: logs go on growing.
    pub files: Vec<(String, u64)>,
    pub unix_us: u64,
}

impl Pinned {
    /// The manifest without the seed of the hash tables, with which clients could choose keys that all
    /// fall into one bucket. `rufous backup` reads the seed from the folder.
    pub fn shown_manifest(&self) -> Vec<u8> {
        let without = |manifest| Manifest {
            hash_seed: 0,
            ..manifest
        };
        let manifest = Manifest::decode(&self.manifest).map(without);
        manifest.map_or_else(|_| Vec::new(), |manifest| manifest.encode())
    }
}

/// An order at the coordinator.
#[derive(Debug)]
pub struct Asked {
    pub order: SaveOrder,
    from: WorkerId,
    /// `None`: no command waits for the answer.
    gather: Option<u64>,
}

impl Asked {
    pub(super) fn new(order: SaveOrder, from: WorkerId, gather: Option<u64>) -> Self {
        Self {
            order,
            from,
            gather,
        }
    }
}

/// The worker and the question that an answer goes to.
pub(super) type To = (WorkerId, u64);

/// The orders at this worker.
#[derive(Debug)]
pub(crate) struct Orders {
    own: WorkerId,
    /// Whether orders are taken. If not, there is no data folder, and every order is answered so.
    is_taking: bool,
    /// Not yet taken.
    orders: VecDeque<Asked>,
    /// Not yet sent.
    answers: Vec<(To, SaveAnswer)>,
    /// The pins that connections of this worker hold.
    pins: Vec<(ConnId, u64)>,
}

impl Orders {
    pub(super) fn new(own: WorkerId) -> Self {
        Self {
            own,
            is_taking: false,
            orders: VecDeque::new(),
            answers: Vec::new(),
            pins: Vec::new(),
        }
    }

    /// There is a data folder: orders are taken from now on.
    pub(crate) fn take_them(&mut self) {
        self.is_taking = true;
    }

    /// Returns an order for another worker, which coordinates; takes it otherwise.
    pub(super) fn route(&mut self, order: SaveOrder, gather: Option<u64>) -> Option<Asked> {
        let asked = Asked::new(order, self.own, gather);
        if self.own == COORDINATOR {
            self.orders.push_back(asked);
            None
        } else {
            Some(asked)
        }
    }

    /// An order of another worker.
    pub(super) fn on_order(&mut self, asked: Asked) {
        self.orders.push_back(asked);
    }

    /// Whether the log is to be switched: the settings that say so may arrive later than the order.
    pub(super) fn switch_log(&self) -> bool {
        let mut orders = self.orders.iter();
        orders.any(|asked| asked.order == SaveOrder::SwitchLog)
    }

    /// Orders since the last call; only the coordinator gets any. A stopping node has to answer the
    /// remaining ones, or it never stops.
    pub(crate) fn take(&mut self) -> VecDeque<Asked> {
        std::mem::take(&mut self.orders)
    }

    /// Answers an order.
    pub(crate) fn answer(&mut self, asked: Asked, answer: SaveAnswer) {
        if let Some(gather) = asked.gather {
            self.answers.push(((asked.from, gather), answer));
        }
    }

    /// Answers to be delivered.
    pub(super) fn take_answers(&mut self) -> Vec<(To, SaveAnswer)> {
        if !self.is_taking {
            for asked in self.take() {
                self.answer(asked, SaveAnswer::NoFolder);
            }
        }
        std::mem::take(&mut self.answers)
    }

    /// A pin belongs to a connection, and is released when that closes.
    pub(super) fn keep_pin(&mut self, conn: ConnId, id: u64) {
        self.pins.push((conn, id));
    }

    pub(super) fn forget_pin(&mut self, id: u64) {
        self.pins.retain(|(_, pin)| *pin != id);
    }

    /// A connection is closed. Returns its pins, which are to be released.
    pub(super) fn on_closed(&mut self, conn: ConnId) -> Vec<u64> {
        let of_it = self.pins.extract_if(.., |(owner, _)| *owner == conn);
        of_it.map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::id;
    use super::*;

    #[test]
    fn orders_go_to_the_coordinator_and_answers_to_the_worker_that_asked() {
        let (mut first, mut second) = (Orders::new(COORDINATOR), Orders::new(WorkerId(1)));
        first.take_them();
        assert!(first.route(SaveOrder::Save, Some(4)).is_none());
        let asked = second
            .route(SaveOrder::SwitchLog, Some(7))
            .expect("an order");
        assert!(!first.switch_log());
        first.on_order(asked);
        assert!(first.switch_log());
        for asked in first.take() {
            first.answer(asked, SaveAnswer::Saved);
        }
        let to = |worker, gather| ((WorkerId(worker), gather), SaveAnswer::Saved);
        assert_eq!(first.take_answers(), [to(0, 4), to(1, 7)]);
        assert_eq!(first.take_answers(), []);
    }

    #[test]
    fn without_a_folder_every_order_is_answered_so() {
        let mut orders = Orders::new(COORDINATOR);
        orders.route(SaveOrder::Rewrite, Some(1));
        orders.route(SaveOrder::Unpin(3), None);
        let answers = [((COORDINATOR, 1), SaveAnswer::NoFolder)];
        assert_eq!(orders.take_answers(), answers);
    }

    #[test]
    fn pins_are_released_with_their_connection() {
        let mut orders = Orders::new(COORDINATOR);
        for (slot, pin) in [(1, 10), (2, 20), (1, 11), (1, 12)] {
            orders.keep_pin(id(slot, 1), pin);
        }
        orders.forget_pin(11);
        assert_eq!(orders.on_closed(id(1, 1)), [10, 12]);
        assert!(orders.on_closed(id(1, 1)).is_empty());
    }
}
