//! Messages that wait until their session has room for their class: requests of clients, and writes
//! on their way along chains, which may be large.
//!
//! Clients are suspended while many bytes wait (`rooms`, `forward`), so that few are added. Chains
//! keep their writes in any case until they are acknowledged, and share them with the messages that
//! wait here.

use rufous_wire::{Body, Class, Envelope, NotSent, Session};
use std::collections::VecDeque;

/// Limit on the bytes of writes that wait for a node; a single message may exceed it.
const MOST: usize = 1 << 30;

/// The same for parts of copies: workers check for room before they send one, but may do so at the
/// same time.
const MOST_COPIES: usize = 8 << 20;

/// Overhead of each message beyond its bytes, about.
const EACH: usize = 256;

const CLASSES: [Class; 3] = [Class::Chain, Class::Learning, Class::Request];

/// Messages of one class, with their size.
#[derive(Debug, Default)]
struct Queue {
    envelopes: VecDeque<(usize, Envelope)>,
    bytes: usize,
    /// The size of parts of copies.
    copies: usize,
}

fn is_copy(envelope: &Envelope) -> bool {
    matches!(envelope.body, Some(Body::Copy(_)))
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Parked {
    queues: [Queue; CLASSES.len()],
}

/// Whether a message of this class may wait for room.
pub(super) fn may_wait(class: Class) -> bool {
    CLASSES.contains(&class)
}

impl Parked {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.envelopes.is_empty())
    }

    /// Bytes of a class that wait.
    pub(super) fn bytes(&self, class: Class) -> usize {
        let place = CLASSES.iter().position(|of| *of == class);
        place.map_or(0, |place| self.queues[place].bytes)
    }

    /// Queues a message. False if too many bytes wait.
    pub(super) fn push(&mut self, class: Class, envelope: &Envelope) -> bool {
        let Some(place) = CLASSES.iter().position(|of| *of == class) else {
            return false;
        };
        let (queue, size) = (&mut self.queues[place], envelope.size() + EACH);
        let (waits, most) = match is_copy(envelope) {
            true => (queue.copies, MOST_COPIES),
            false => (queue.bytes, MOST),
        };
        if class != Class::Request && waits > 0 && waits + size > most {
            return false;
        }
        queue.bytes += size;
        if is_copy(envelope) {
            queue.copies += size;
        }
        queue.envelopes.push_back((size, envelope.clone()));
        true
    }

    /// Sends the messages that there is room for. Returns how many, or why no node would accept
    /// one: then the session is ended.
    pub(super) fn send(&mut self, wire: &mut Session) -> Result<u64, NotSent> {
        let mut sent = 0;
        for (queue, class) in self.queues.iter_mut().zip(CLASSES) {
            while let Some((size, envelope)) = queue.envelopes.front() {
                match wire.send(class, envelope) {
                    Ok(()) => sent += 1,
                    Err(NotSent::Full) => break,
                    // The session is over, and its messages are lost; or the other node's version
                    // does not have this message.
                    Err(NotSent::NotUp | NotSent::TooNew) => {}
                    Err(error) => return Err(error),
                }
                queue.bytes -= size;
                if is_copy(envelope) {
                    queue.copies -= size;
                }
                queue.envelopes.pop_front();
            }
        }
        Ok(sent)
    }
}
