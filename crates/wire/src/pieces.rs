//! Messages that are too long for one frame: split by the sender, reassembled by the receiver. A
//! value is as large as a client makes it, and a write to one slot is passed along its chain as one
//! message.
//!
//! Pieces are frames like others, in the class of their message and without other frames of that
//! class between them; messages of other classes may pass them. Each piece gives its credit back on
//! arrival: an incomplete message is bounded by [`MAX_WHOLE`] for each class that has pieces, and
//! no memory is allocated for bytes that have not arrived.

use crate::class::Class;
use crate::frame::{self, MAX_FRAME};
use crate::message::{Body, Envelope, MAX_WHOLE, Piece};
use crate::refused::Refused;
use bytes::Bytes;
use prost::Message;

/// Bytes in one piece.
const PIECE: usize = 256 << 10;

/// A longer message is split, if its class has pieces.
const LONG: usize = 1 << 20;

const _: () = assert!(PIECE < LONG && LONG < MAX_FRAME);

/// Whether a message has to be split.
pub(crate) fn is_long(class: Class, envelope: &Envelope) -> bool {
    class.has_pieces() && envelope.encoded_len() > LONG
}

/// The frames of such a message, in order.
pub(crate) fn frames(
    version: u16,
    class: Class,
    envelope: &Envelope,
) -> Result<Vec<Vec<u8>>, Refused> {
    let len = envelope.encoded_len();
    if len > MAX_WHOLE {
        return Err(Refused::TooLarge);
    }
    let whole = Bytes::from(envelope.encode_to_vec());
    let count = len.div_ceil(PIECE);
    let pieces = (0..count).map(|n| {
        let piece = Piece {
            bytes: whole.slice(n * PIECE..len.min((n + 1) * PIECE)),
            last: n + 1 == count,
        };
        let envelope = Envelope {
            epoch: envelope.epoch,
            body: Some(Body::Piece(piece)),
            ..Envelope::default()
        };
        let mut frame = Vec::new();
        frame::encode(version, class, &envelope, &mut frame).map(|()| frame)
    });
    pieces.collect()
}

/// The received parts of incomplete messages, by class.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    chain: Vec<u8>,
    learning: Vec<u8>,
}

impl Pieces {
    fn of(&mut self, class: Class) -> Option<&mut Vec<u8>> {
        match class {
            Class::Chain => Some(&mut self.chain),
            Class::Learning => Some(&mut self.learning),
            _ => None,
        }
    }

    /// Whether a message of this class has begun, so that no other frame of it may arrive.
    pub(crate) fn has_begun(&mut self, class: Class) -> bool {
        self.of(class).is_some_and(|came| !came.is_empty())
    }

    /// Takes a piece. Returns the message if that was its last piece.
    pub(crate) fn take(
        &mut self,
        class: Class,
        piece: &Piece,
    ) -> Result<Option<Envelope>, Refused> {
        let Some(came) = self.of(class) else {
            return Err(Refused::Misplaced("a piece of such a message"));
        };
        if came.len() + piece.bytes.len() > MAX_WHOLE {
            return Err(Refused::TooLarge);
        }
        came.extend_from_slice(&piece.bytes);
        if !piece.last {
            return Ok(None);
        }
        let envelope = frame::read_envelope(std::mem::take(came).into())?;
        match &envelope.body {
            Some(body) if class.takes(body) && !matches!(body, Body::Piece(_)) => {
                Ok(Some(envelope))
            }
            _ => Err(Refused::Misplaced("not of this class")),
        }
    }
}
