//! Messages to workers from threads that are not workers: orders from outside the
//! node's own traffic, a few a second at most.
//!
//! They wait in a box per worker, in order, up to [`ROOM`]. The first message in an
//! empty box also puts an order into the worker's inbox, which wakes the worker; the
//! worker takes all messages of the box when it carries out that order. So no message
//! is left behind: a sender that finds the box empty gives the order after adding its
//! message, and a sender that finds it filled relies on the order of the sender that
//! found it empty, which is still to be given or carried out.

use crate::inbox::{Inbox, Order};
use rufous_base::WorkerId;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Messages that wait for one worker, at most.
pub(crate) const ROOM: usize = 64;

/// Why a message was not delivered; it returns to the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untold<M> {
    #[error("too many messages wait for the worker already")]
    Full(M),
    #[error("the worker has ended or does not exist")]
    Gone(M),
}

/// What waits for one worker. Nothing is taken once it has ended.
struct Waiting<M> {
    messages: Vec<M>,
    closed: bool,
}

/// A worker's box.
pub(crate) struct Mail<M> {
    waiting: Mutex<Waiting<M>>,
    inbox: Arc<Inbox>,
}

impl<M> Mail<M> {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Self {
        let waiting = Waiting {
            messages: Vec::new(),
            closed: false,
        };
        Self {
            waiting: Mutex::new(waiting),
            inbox,
        }
    }

    fn tell(&self, message: M) -> Result<(), Untold<M>> {
        let first = {
            let mut waiting = self.lock();
            if waiting.closed {
                return Err(Untold::Gone(message));
            }
            if waiting.messages.len() >= ROOM {
                return Err(Untold::Full(message));
            }
            waiting.messages.push(message);
            waiting.messages.len() == 1
        };
        if first {
            self.inbox.order(Order::Mail);
        }
        Ok(())
    }

    pub(crate) fn take(&self) -> Vec<M> {
        std::mem::take(&mut self.lock().messages)
    }

    /// The worker ends: waiting messages are dropped by the caller, without the lock.
    pub(crate) fn close(&self) {
        let left = {
            let mut waiting = self.lock();
            waiting.closed = true;
            std::mem::take(&mut waiting.messages)
        };
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<M>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends messages to workers from any thread; cheap to clone.
pub struct Teller<M> {
    boxes: Arc<[Mail<M>]>,
}

impl<M> Clone for Teller<M> {
    fn clone(&self) -> Self {
        Self {
            boxes: Arc::clone(&self.boxes),
        }
    }
}

impl<M> fmt::Debug for Teller<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Teller({} workers)", self.boxes.len())
    }
}

impl<M> Teller<M> {
    pub(crate) fn new(inboxes: &[Arc<Inbox>]) -> Self {
        let boxes = inboxes.iter().map(|inbox| Mail::new(Arc::clone(inbox)));
        Self {
            boxes: boxes.collect(),
        }
    }

    pub fn workers(&self) -> usize {
        self.boxes.len()
    }

    /// Has the actor of a worker stepped with `Input::Told`, and wakes it.
    /// Messages of one thread to one worker come in order.
    pub fn tell(&self, worker: WorkerId, message: M) -> Result<(), Untold<M>> {
        match self.boxes.get(worker.index()) {
            Some(mail) => mail.tell(message),
            None => Err(Untold::Gone(message)),
        }
    }

    /// A worker's own box, for that worker.
    pub(crate) fn of(&self, worker: WorkerId) -> &Mail<M> {
        &self.boxes[worker.index()]
    }
}
