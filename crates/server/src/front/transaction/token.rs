//! `COMMIT TOKEN`: the outcome is kept at a key, by a command of the transaction itself, so that a client that has lost the reply can ask for it.
//!
//! The command fails where the token has an outcome already. That undoes the transaction, as does any other error then: what is kept
//! as committed was executed whole.

#[cfg(test)]
mod tests;

use rufous_base::Span;
use rufous_command::Failure;
use std::borrow::Cow;

pub(super) const DONE_AT_ONCE: Failure = Failure(Cow::Borrowed(
    "ERR at level read-uncommitted writes are done at once: there is no outcome to keep",
));

/// A token, and how long its outcome is kept, if that was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) token: &'a [u8],
    pub(crate) seconds: Option<&'a [u8]>,
}

impl Token<'_> {
    /// The command that keeps the outcome.
    pub(super) fn command(&self) -> (Vec<u8>, Vec<Span>) {
        let mut words: Vec<&[u8]> = vec![b"outcome", self.token, b"committed"];
        words.extend(
            self.seconds
                .iter()
                .flat_map(|seconds| [&b"ex"[..], seconds]),
        );
        joined(&words)
    }
}

/// Words one behind the other, and where each is.
fn joined(words: &[&[u8]]) -> (Vec<u8>, Vec<Span>) {
    let mut bytes = Vec::new();
    let mut places = Vec::new();
    for word in words {
        places.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    (bytes, places)
}
