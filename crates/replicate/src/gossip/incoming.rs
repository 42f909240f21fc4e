//! The end of a stream: what came, in order, and what is said of it.

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
    /// Pieces of a message that is not whole.
    part: Vec<u8>,
    /// To be compared with what is here, and of which stream.
    pub(super) sums: Option<(u64, Arc<[u64]>)>,
    /// The sender is to be told how far this is.
    answer: Option<Peer>,
}

impl Incoming {
    /// Messages that are whole, of whom they say that they are.
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
            // Of a stream that was given up, or what was not in its place.
            _ => {}
        }
        Ok(Vec::new())
    }

    fn on_hello(&mut self, stream: u64, next: u64) {
        if stream == self.stream {
            return self.answer(false);
        }
        // Of one that does not begin, what came before is not here any more.
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

    /// What the sender is to be told.
    pub(super) fn take_answer(&mut self) -> Option<Peer> {
        self.answer.take()
    }
}
