//! What can go wrong, and what it means for the request.

use std::fmt;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no reply, or not the one that was wanted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The URL or a setting makes no sense.
    #[error("{0}")]
    Config(String),
    /// No connection came to be. Nothing was done.
    #[error("cannot connect to {node}: {reason}")]
    Connect { node: String, reason: String },
    /// The connection ended before the reply.
    #[error("connection to {node} lost{}", done(*.maybe_done))]
    Lost { node: String, maybe_done: bool },
    /// No reply within the time-out.
    #[error("no reply of {node} in time{}", done(*.maybe_done))]
    Timeout { node: String, maybe_done: bool },
    /// What the server refused, in its words.
    #[error("{0}")]
    Server(#[from] ServerError),
    /// The other side does not speak the protocol, or says more than is accepted.
    #[error("{node} breaks the protocol: {reason}")]
    Protocol { node: String, reason: String },
    /// The reply is of another type than was asked for.
    #[error("expected {wanted}, the reply is {got}")]
    Convert { wanted: &'static str, got: String },
    /// The client does not send this here, and says where it would.
    #[error("{0}")]
    Refused(String),
    /// The connection that a session's guarantees held on is gone; see [`crate::Session`].
    #[error("the session's connection to {node} is lost, and with it the guarantees of its level")]
    SessionLost { node: String },
    /// Another client has changed what a transaction has read. Nothing was done.
    #[error("another client has changed a key of the transaction; nothing was done")]
    Conflict,
    /// The reply to a transaction's `COMMIT` was lost, and its token says that it was not executed and will not be.
    #[error("the transaction was not executed, and its token is used: {because}")]
    Undone { because: Box<Error> },
    /// Redirected or refused for the time being until nothing was left of time or attempts.
    #[error("gave up after {attempts} attempts: {last}")]
    GaveUp { attempts: u32, last: Box<Error> },
}

fn done(maybe: bool) -> &'static str {
    if maybe {
        "; the command may have been done"
    } else {
        "; the command was not done"
    }
}

impl Error {
    /// Whether the command may have been done although there is no reply that says so. What else
    /// fails has changed nothing (of one command: commands of a pipeline stand each for itself).
    pub fn maybe_done(&self) -> bool {
        match self {
            Self::Lost { maybe_done, .. } | Self::Timeout { maybe_done, .. } => *maybe_done,
            Self::Protocol { .. } => true,
            Self::Server(error) => error.is_doubt(),
            Self::GaveUp { last, .. } => last.maybe_done(),
            _ => false,
        }
    }

    /// The same error of something that did no harm if it was done.
    pub(crate) fn undone(self) -> Self {
        match self {
            Self::Lost { node, .. } => Self::Lost {
                node,
                maybe_done: false,
            },
            Self::Timeout { node, .. } => Self::Timeout {
                node,
                maybe_done: false,
            },
            error => error,
        }
    }

    /// The server's error code, such as `WRONGTYPE`, if the server refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) => Some(error.code()),
            Self::GaveUp { last, .. } => last.code(),
            Self::Undone { because } => because.code(),
            _ => None,
        }
    }
}

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    text: String,
}

impl ServerError {
    pub(crate) fn new(text: &[u8]) -> Self {
        Self {
            text: String::from_utf8_lossy(text).into_owned(),
        }
    }

    /// The first word: `ERR`, `WRONGTYPE`, `MOVED` …
    pub fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// Whether the server itself does not know what became of the command: it had passed it on to
    /// a node that is gone.
    pub(crate) fn is_doubt(&self) -> bool {
        self.code() == "UNKNOWNRESULT"
    }

    /// The whole text, with its code.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ServerError {}
