//! Why a node ends the session with a peer: a reason that both sides log.

use crate::message::{MAX_NAME, Refuse};
use thiserror::Error;

/// See the module's description. The codes are part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("it belongs to another cluster")]
    Cluster,
    #[error("no common wire version: here {ours}, there {theirs}")]
    Version { ours: String, theirs: String },
    #[error("it has the id of this very node: was a data directory copied?")]
    Myself,
    #[error("another node with its id is connected: was a data directory copied?")]
    Duplicate,
    #[error("it has restarted since: this connection belongs to an earlier run")]
    Outdated,
    #[error("another node was expected at this address")]
    Unexpected,
    #[error("too many nodes")]
    TooMany,
    #[error("invalid message: {0}")]
    Garbage(&'static str),
    #[error("a message larger than allowed")]
    TooLarge,
    #[error("it exceeded its credit")]
    Credit,
    #[error("unexpected message: {0}")]
    Misplaced(&'static str),
    #[error("it has an old epoch and is no longer a member")]
    NoMember,
    #[error("no message within the time-out")]
    Silent,
    #[error("another connection to it is in use")]
    Replaced,
    #[error("it reads too slowly")]
    Slow,
    #[error(
        "it has not proved that it knows the secret of the cluster: set the same cluster-secret on all nodes"
    )]
    Unproven,
    #[error(
        "it asks for the secret of the cluster, and this node has none: set cluster-secret as on the other nodes"
    )]
    NoSecret,
    #[error("its certificate does not name the host that the node with its id has announced")]
    Certificate,
    /// Not an error: the peer should try again.
    #[error("its epoch is not known here yet")]
    Ahead,
    /// The peer's reason for refusing us; its text is not trusted.
    #[error("refused by the peer, reason {code}: {text}")]
    ByPeer { code: u32, text: String },
}

const REPLACED: u32 = 14;
const AHEAD: u32 = 16;

impl Refused {
    /// Whether this happens between healthy nodes: one has learnt of an epoch before the other, or
    /// of a connection that replaces this one.
    pub fn is_harmless(&self) -> bool {
        matches!(self.code(), AHEAD | REPLACED)
    }

    pub fn code(&self) -> u32 {
        match self {
            Self::Cluster => 1,
            Self::Version { .. } => 2,
            Self::Myself => 3,
            Self::Duplicate => 4,
            Self::Outdated => 5,
            Self::Unexpected => 6,
            Self::TooMany => 7,
            Self::Garbage(_) => 8,
            Self::TooLarge => 9,
            Self::Credit => 10,
            Self::Misplaced(_) => 11,
            Self::NoMember => 12,
            Self::Silent => 13,
            Self::Replaced => REPLACED,
            Self::Slow => 15,
            Self::Ahead => AHEAD,
            Self::Unproven => 17,
            Self::NoSecret => 18,
            Self::Certificate => 19,
            Self::ByPeer { code, .. } => *code,
        }
    }

    pub(crate) fn to_message(&self) -> Refuse {
        let mut text = self.to_string();
        text.truncate(MAX_NAME);
        Refuse {
            reason: self.code(),
            text,
        }
    }

    /// The peer's text, without characters that would break a line of a log.
    pub(crate) fn from_message(refuse: &Refuse) -> Self {
        let plain = |c: char| match c {
            ' '..='~' => c,
            _ => '?',
        };
        Self::ByPeer {
            code: refuse.reason,
            text: refuse.text.chars().map(plain).collect(),
        }
    }
}
