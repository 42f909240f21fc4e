//! The receiving end of a stream: received pieces, in order, and their acknowledgements.

use super::Peer;
use crate::batch::Batch;
use crate::member::replica_of;
use rufous_base::WorkerId;
use rufous_base::limits::SLOTS;
use rufous_store::effect::NotAnEffect;
use std::sync::Arc;

/// Bytes of a message in pieces: a value of the largest size, and its name.
const MOST_BYTES: usize = 600 << 20;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    stream: u64,
    next: u64,
    /// Pieces of an incomplete message.
    part: Vec<u8>,
    /// Checksums to be compared with the local ones, and their stream.
    pub(super) sums: Option<(u64, Arc<[u64]>)>,
    /// The answer that tells the sender how far this end is.
    answer: Option<Peer>,
}

impl Incoming {
    /// Takes a message. Returns the message that it completes, whose stated sender must be `from`.
    pub(super) fn take(
        &mut self,
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
            } if (stream, number) == (self.stream, self.next) => {
                self.next += 1;
                self.answer(false);
                let whole = self.join(more, bytes)?;
                let replica = replica_of(from.0, WorkerId(from.1));
                return match whole {
                    Some(whole) if Some(Batch::decode(&whole)?.from) != replica => Err(NotAnEffect),
                    whole => Ok(whole.into_iter().collect()),
                };
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
