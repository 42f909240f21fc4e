//! The receiving end of a stream: received pieces, in order, and their acknowledgements.
//!
//! A message whose stamps lead the wall clock of this node by more than the limit is not taken, nor acknowledged, before
//! the wall clock has reached them: it would move the clocks of all replicas here ahead.

use super::Peer;
use crate::batch::Batch;
use crate::member::replica_of;
use rufous_base::limits::{MAX_STAMP_LEAD_US, SLOTS};
use rufous_base::{Now, WorkerId};
use rufous_lattice::stamp::COUNTER_BITS;
use rufous_store::effect::NotAnEffect;
use rufous_store::planted::{self, Planted};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a message in pieces: a value of the largest size, and its name.
const MOST_BYTES: usize = 600 << 20;

/// Bytes of pieces that are not taken yet: what all workers of a node may have in transit.
const MOST_HELD_BYTES: usize = 1 << 20;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    stream: u64,
    next: u64,
    /// Pieces of an incomplete message.
    part: Vec<u8>,
    /// Pieces that are not taken yet: the first completes a message whose stamps lead the wall clock here too far. They
    /// are not acknowledged, so that the sender's window bounds them.
    held: VecDeque<Held>,
    /// Checksums to be compared with the local ones, and their stream.
    pub(super) sums: Option<(u64, Arc<[u64]>)>,
    /// The answer that tells the sender how far this end is.
    answer: Option<Peer>,
}

/// A piece of [`Incoming::held`].
#[derive(Debug)]
struct Held {
    more: bool,
    bytes: Arc<[u8]>,
    /// It was joined to the pieces before it.
    is_whole: bool,
}

/// Whether stamps up to this time lead the wall clock too far.
fn leads(now: Now, newest: u64) -> bool {
    newest >> COUNTER_BITS > now.unix_us.saturating_add(MAX_STAMP_LEAD_US)
}

impl Incoming {
    /// Takes a message. Returns the message that it completes, whose stated sender must be `from`.
    pub(super) fn take(
        &mut self,
        now: Now,
        from: (u16, u16),
        peer: Peer,
    ) -> Result<Vec<Arc<[u8]>>, NotAnEffect> {
        match peer {
            Peer::Hello { stream, next, .. } => self.on_hello(stream, next),
            Peer::Piece {
                stream,
                number,
                more,
                bytes,
            } if (stream, number) == (self.stream, self.next + self.held.len() as u64) => {
                let bytes_held: usize = self.held.iter().map(|held| held.bytes.len()).sum();
                // More than a window is from a sender that ignores it.
                if self.held.is_empty() || bytes_held + bytes.len() <= MOST_HELD_BYTES {
                    let is_whole = false;
                    self.held.push_back(Held {
                        more,
                        bytes,
                        is_whole,
                    });
                }
                return self.admit(now, from);
            }
            Peer::Sums { stream, sums } if stream == self.stream => {
                if sums.len() != SLOTS {
                    return Err(NotAnEffect);
                }
                self.sums = Some((stream, sums));
            }
            // A piece of a dropped stream, or one out of order.
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Returns the messages that are complete, up to one whose stamps lead the wall clock too far.
    pub(super) fn admit(
        &mut self,
        now: Now,
        from: (u16, u16),
    ) -> Result<Vec<Arc<[u8]>>, NotAnEffect> {
        let mut all = Vec::new();
        while let Some(held) = self.held.pop_front() {
            let whole = if held.is_whole {
                Some(held.bytes)
            } else {
                self.join(held.more, held.bytes)?
            };
            if let Some(bytes) = whole {
                let batch = Batch::decode(&bytes)?;
                if Some(batch.from) != replica_of(from.0, WorkerId(from.1)) {
                    return Err(NotAnEffect);
                }
                if leads(now, batch.newest) && !planted::is(Planted::LeadAdmitted) {
                    let (more, is_whole) = (false, true);
                    self.held.push_front(Held {
                        more,
                        bytes,
                        is_whole,
                    });
                    break;
                }
                all.push(bytes);
            }
            self.next += 1;
            self.answer(false);
        }
        Ok(all)
    }

    /// Whether a message is not taken as its stamps lead.
    pub(super) fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Has the sender begin another stream, with a comparison.
    pub(super) fn restart(&mut self) {
        let stream = self.stream;
        *self = Self::default();
        self.answer = Some(Peer::Taken {
            stream,
            next: 0,
            is_new: true,
        });
    }

    fn on_hello(&mut self, stream: u64, next: u64) {
        if stream == self.stream {
            return self.answer(false);
        }
        // If the stream does not begin here, its earlier part is missing.
        *self = Self {
            stream: if next == 0 { stream } else { 0 },
            ..Self::default()
        };
        self.answer = Some(Peer::Taken {
            stream,
            next: 0,
            is_new: true,
        });
    }

    fn answer(&mut self, is_new: bool) {
        self.answer = Some(Peer::Taken {
            stream: self.stream,
            next: self.next,
            is_new,
        });
    }

    fn join(&mut self, more: bool, bytes: Arc<[u8]>) -> Result<Option<Arc<[u8]>>, NotAnEffect> {
        if !more && self.part.is_empty() {
            return Ok(Some(bytes));
        }
        if self.part.len() + bytes.len() > MOST_BYTES {
            return Err(NotAnEffect);
        }
        self.part.extend_from_slice(&bytes);
        Ok((!more).then(|| std::mem::take(&mut self.part).into()))
    }

    /// Takes the answer for the sender.
    pub(super) fn take_answer(&mut self) -> Option<Peer> {
        self.answer.take()
    }
}
