//! The protocol between nodes and the coordinator on their machine, as bytes.
//!
//! A frame is its length (4 bytes), a kind (1 byte) and its fields. Numbers are little-endian;
//! bytes of variable length are preceded by it (4 bytes). A frame with anything else in it, or
//! after it, is an error.

use super::MAX_NODES;
use super::proof::{CODE, Code};
use crate::{AgreedMapping, MAX_ABOUT, MAX_MAPPING, Member, NodeId, Proposed};
use std::collections::BTreeMap;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The version of this protocol; others are not understood.
pub const VERSION: u8 = 1;
/// Limit on the bytes of a node's frame.
pub const MAX_ASKED: usize = MAX_MAPPING + 64;
/// Limit on the bytes of the coordinator's frame: the longest one has all members.
pub const MAX_TOLD: usize = MAX_NODES * (MAX_ABOUT + 32) + MAX_MAPPING + 64;
/// Limit on the bytes of frames before the coordinator knows the node.
pub const MAX_FIRST: usize = MAX_ABOUT + MAX_TEXT + 64;
/// Limit on the bytes of a name or a reason.
const MAX_TEXT: usize = 1024;

/// A message of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The first frame. `lease` is the node's earlier lease, or 0.
    Hello {
        lease: u64,
        cluster: String,
        me: Member,
    },
    Alive,
    /// Replies carry the number of their request.
    Read(u64),
    Propose {
        no: u64,
        expected: u64,
        mapping: Vec<u8>,
    },
    Announce {
        no: u64,
        about: Vec<u8>,
    },
    Leave,
    /// The first frame of a node with a secret: see [`super::proof`].
    Challenge(Code),
    Proof(Code),
}

/// A message of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The node is a member under this lease.
    Welcome(u64),
    /// The first frame was refused.
    Refused(String),
    Alive,
    Mapping(AgreedMapping),
    Members {
        is_member: bool,
        leader: Option<NodeId>,
        members: BTreeMap<NodeId, Member>,
    },
    Answer(u64, Answer),
    Challenge(Code),
    Proof(Code),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Read(Option<AgreedMapping>),
    Proposed(Proposed),
    Announced,
    /// The request failed.
    Failed(String),
}

/// Reads a frame; `None` at the end of the connection.
pub async fn read(from: &mut (impl AsyncRead + Unpin), max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    match from.read_exact(&mut len).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let len = u32::from_le_bytes(len) as usize;
    if len > max {
        return Err(nonsense());
    }
    // Memory grows with the received bytes, not with the announced length.
    let mut frame = Vec::new();
    from.take(len as u64).read_to_end(&mut frame).await?;
    match frame.len() == len {
        true => Ok(Some(frame)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub async fn write(to: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> io::Result<()> {
    let len = u32::try_from(frame.len()).map_err(|_| nonsense())?;
    to.write_all(&len.to_le_bytes()).await?;
    to.write_all(frame).await?;
    to.flush().await
}

/// The error for an invalid frame.
pub fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame that makes no sense")
}

struct Out(Vec<u8>);

impl Out {
    fn of(kind: u8) -> Self {
        Self(vec![kind])
    }

    fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        // The receiver refuses bytes that are too long.
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&len.to_le_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    fn member(mut self, member: &Member) -> Self {
        self.0.extend_from_slice(&member.id.0);
        self.number(member.incarnation).bytes(&member.about)
    }

    fn state(self, state: &AgreedMapping) -> Self {
        self.number(state.epoch).bytes(&state.mapping)
    }

    fn maybe(self, state: Option<&AgreedMapping>) -> Self {
        match state {
            None => self.byte(0),
            Some(state) => self.byte(1).state(state),
        }
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn bytes(&mut self, max: usize) -> Option<Vec<u8>> {
        let len = u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize;
        (len <= max).then_some(())?;
        self.take(len).map(<[u8]>::to_vec)
    }

    fn code(&mut self) -> Option<Code> {
        self.bytes(CODE)?.try_into().ok()
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes(MAX_TEXT)?).ok()
    }

    fn id(&mut self) -> Option<NodeId> {
        Some(NodeId(self.take(20)?.try_into().ok()?))
    }

    fn member(&mut self) -> Option<Member> {
        let (id, incarnation) = (self.id()?, self.number()?);
        Some(Member {
            id,
            incarnation,
            // On one machine a later start takes the place of each earlier one.
            after: incarnation.saturating_sub(1),
            about: self.bytes(MAX_ABOUT)?,
        })
    }

    fn state(&mut self) -> Option<AgreedMapping> {
        Some(AgreedMapping {
            epoch: self.number()?,
            mapping: self.bytes(MAX_MAPPING)?,
        })
    }

    fn maybe(&mut self) -> Option<Option<AgreedMapping>> {
        match self.flag()? {
            false => Some(None),
            true => self.state().map(Some),
        }
    }

    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

impl Asked {
    pub fn encode(&self) -> Vec<u8> {
        let out = match self {
            Self::Hello { lease, cluster, me } => Out::of(1)
                .byte(VERSION)
                .number(*lease)
                .bytes(cluster.as_bytes())
                .member(me),
            Self::Alive => Out::of(2),
            Self::Read(no) => Out::of(3).number(*no),
            Self::Propose {
                no,
                expected,
                mapping,
            } => Out::of(4).number(*no).number(*expected).bytes(mapping),
            Self::Announce { no, about } => Out::of(5).number(*no).bytes(about),
            Self::Leave => Out::of(6),
            Self::Challenge(nonce) => Out::of(7).byte(VERSION).bytes(nonce),
            Self::Proof(code) => Out::of(8).bytes(code),
        };
        out.0
    }

    pub fn decode(frame: &[u8]) -> Option<Self> {
        let mut from = In(frame);
        let asked = match from.byte()? {
            1 if from.byte()? == VERSION => Self::Hello {
                lease: from.number()?,
                cluster: from.text()?,
                me: from.member()?,
            },
            2 => Self::Alive,
            3 => Self::Read(from.number()?),
            4 => Self::Propose {
                no: from.number()?,
                expected: from.number()?,
                mapping: from.bytes(MAX_MAPPING)?,
            },
            5 => Self::Announce {
                no: from.number()?,
                about: from.bytes(MAX_ABOUT)?,
            },
            6 => Self::Leave,
            7 if from.byte()? == VERSION => Self::Challenge(from.code()?),
            8 => Self::Proof(from.code()?),
            _ => return None,
        };
        from.end(asked)
    }
}

impl Told {
    pub fn encode(&self) -> Vec<u8> {
        let out = match self {
            Self::Welcome(lease) => Out::of(1).number(*lease),
            Self::Refused(why) => Out::of(2).bytes(why.as_bytes()),
            Self::Alive => Out::of(3),
            Self::Mapping(state) => Out::of(4).state(state),
            Self::Members {
                is_member,
                leader,
                members,
            } => {
                let mut out = Out::of(5).byte(u8::from(*is_member));
                out = out.bytes(leader.as_ref().map_or(&[], |leader| &leader.0[..]));
                out = out.number(members.len() as u64);
                members.values().fold(out, Out::member)
            }
            Self::Answer(no, answer) => {
                let out = Out::of(6).number(*no);
                match answer {
                    Answer::Read(state) => out.byte(0).maybe(state.as_ref()),
                    Answer::Proposed(Proposed::Taken) => out.byte(1),
                    Answer::Proposed(Proposed::Behind(state)) => out.byte(2).maybe(state.as_ref()),
                    Answer::Proposed(Proposed::NotAlive) => out.byte(3),
                    Answer::Announced => out.byte(4),
                    Answer::Failed(why) => out.byte(5).bytes(why.as_bytes()),
                }
            }
            Self::Challenge(nonce) => Out::of(7).bytes(nonce),
            Self::Proof(code) => Out::of(8).bytes(code),
        };
        out.0
    }

    pub fn decode(frame: &[u8]) -> Option<Self> {
        let mut from = In(frame);
        let told = match from.byte()? {
            1 => Self::Welcome(from.number()?),
            2 => Self::Refused(from.text()?),
            3 => Self::Alive,
            4 => Self::Mapping(from.state()?),
            5 => decode_members(&mut from)?,
            6 => Self::Answer(from.number()?, decode_answer(&mut from)?),
            7 => Self::Challenge(from.code()?),
            8 => Self::Proof(from.code()?),
            _ => return None,
        };
        from.end(told)
    }
}

fn decode_members(from: &mut In<'_>) -> Option<Told> {
    let is_member = from.flag()?;
    let leader = match from.bytes(20)? {
        none if none.is_empty() => None,
        id => Some(NodeId(id.try_into().ok()?)),
    };
    let count = usize::try_from(from.number()?).ok()?;
    (count <= MAX_NODES).then_some(())?;
    let members = (0..count).map(|_| from.member().map(|member| (member.id, member)));
    Some(Told::Members {
        is_member,
        leader,
        members: members.collect::<Option<_>>()?,
    })
}

fn decode_answer(from: &mut In<'_>) -> Option<Answer> {
    Some(match from.byte()? {
        0 => Answer::Read(from.maybe()?),
        1 => Answer::Proposed(Proposed::Taken),
        2 => Answer::Proposed(Proposed::Behind(from.maybe()?)),
        3 => Answer::Proposed(Proposed::NotAlive),
        4 => Answer::Announced,
        5 => Answer::Failed(from.text()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
