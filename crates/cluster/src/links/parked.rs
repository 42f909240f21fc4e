//! Messages that wait until their session has room for their class: requests of
//! clients, and writes on their way along chains, which may be large.
//!
//! Who asks or writes is held up while much waits (`rooms`, `forward`), so that
//! little comes on top of it; what chains have to say is kept by them in any case
//! until it is acknowledged, and shared with what waits here.

use rufous_wire::{Body, Class, Envelope, NotSent, Session};
use std::collections::VecDeque;

/// Bytes of writes that may wait for a node, or one message.
const MOST: usize = 1 << 30;

/// Likewise of parts of copies: workers ask for room before they send one, but may do
/// so at the same time.
const MOST_COPIES: usize = 8 << 20;

/// What each message takes beyond its bytes, about.
const EACH: usize = 256;

const CLASSES: [Class; 3] = [Class::Chain, Class::Learning, Class::Request];

/// Those of one class, with what they take.
#[derive(Debug, Default)]
struct Queue {
    envelopes: VecDeque<(usize, Envelope)>,
    bytes: usize,
    /// Those of parts of copies.
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

/// Whether what there is no room for just now may wait.
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

    /// Lets a message wait. False where too much does.
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

    /// Sends what there is room for. Says how many that were, or what no node would
    /// take: then the session makes no sense any more.
    pub(super) fn send(&mut self, wire: &mut Session) -> Result<u64, NotSent> {
        let mut sent = 0;
        for (queue, class) in self.queues.iter_mut().zip(CLASSES) {
            while let Some((size, envelope)) = queue.envelopes.front() {
                match wire.send(class, envelope) {
                    Ok(()) => sent += 1,
                    Err(NotSent::Full) => break,
                    // The session is over, and all that was said to it is lost; or the
                    // other node has no such message.
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
