//! Frames: the encoding of a message on a connection.
//!
//! ```text
//!   0        4          8         10      11         12
//!   ┌────────┬──────────┬─────────┬───────┬──────────┬──────────────┐
//!   │ length │ checksum │ version │ class │ zero     │ the envelope │
//!   └────────┴──────────┴─────────┴───────┴──────────┴──────────────┘
//! ```
//!
//! Numbers are little-endian. The length is that of the envelope; the checksum (CRC-32C) covers
//! everything else in the frame. Messages of version 0 are the same in all versions: they are how
//! nodes agree on one.

use crate::class::Class;
use crate::message::Envelope;
use crate::refused::Refused;
use crate::scan;
use bytes::{Bytes, BytesMut};
use prost::Message;

pub const HEADER: usize = 12;

/// Limit on the bytes of an envelope.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;

/// The limit before a peer's handshake.
pub const MAX_STRANGER: usize = 1024;

/// One received frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub version: u16,
    pub class: Class,
    /// Bytes that it took on the connection.
    pub size: usize,
    pub envelope: Envelope,
}

/// Appends an envelope as a frame. Nothing is appended if it is too large.
pub fn encode(
    version: u16,
    class: Class,
    envelope: &Envelope,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let len = envelope.encoded_len();
    if len > MAX_FRAME {
        return Err(Refused::TooLarge);
    }
    let start = out.len();
    out.reserve(HEADER + len);
    out.extend_from_slice(&(len as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&[class as u8, 0]);
    // invariant: a vector takes all that is written
    envelope.encode(out).expect("room in a vector");
    let crc = checksum(&out[start..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

fn checksum(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..4]), &frame[8..])
}

/// Assembles frames from received bytes. It holds no more than the received part of one frame.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: BytesMut,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Received bytes of an incomplete frame.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    /// The next frame, if it is complete, with an envelope of at most `limit` bytes. After an error
    /// the rest of the input is meaningless.
    pub fn next(&mut self, limit: usize) -> Result<Option<Frame>, Refused> {
        let Some(len) = self.buffer.first_chunk() else {
            return Ok(None);
        };
        // Checked before waiting for the rest, and before allocating memory for it.
        let len = u32::from_le_bytes(*len) as usize;
        if len > limit.min(MAX_FRAME) {
            return Err(Refused::TooLarge);
        }
        let size = HEADER + len;
        if self.buffer.len() < size {
            return Ok(None);
        }
        let frame = self.buffer.split_to(size).freeze();
        decode(&frame).map(Some)
    }
}

fn decode(frame: &Bytes) -> Result<Frame, Refused> {
    if frame[4..8] != checksum(frame).to_le_bytes() {
        return Err(Refused::Garbage("the checksum is wrong"));
    }
    let class = Class::from_byte(frame[10]).ok_or(Refused::Garbage("a class that is not known"))?;
    if frame[11] != 0 {
        return Err(Refused::Garbage("a flag that is not known"));
    }
    let envelope = read_envelope(frame.slice(HEADER..))?;
    Ok(Frame {
        version: u16::from_le_bytes([frame[8], frame[9]]),
        class,
        size: frame.len(),
        envelope,
    })
}

/// Decodes an envelope, if it is valid.
pub(crate) fn read_envelope(body: Bytes) -> Result<Envelope, Refused> {
    if !scan::is_bounded(&body) {
        return Err(Refused::Garbage("not a message, or too many fields"));
    }
    let envelope = Envelope::decode(body).map_err(|_| Refused::Garbage("not a message"))?;
    envelope.check().map_err(Refused::Garbage)?;
    Ok(envelope)
}
