//! `COMMIT TOKEN`: the outcome is kept at a key, by a command of the transaction itself, so that a client that has lost the reply can ask for it.
//!
//! The command fails where the token has an outcome already. That undoes the transaction, as does any other error then: what is kept
//! as committed was executed whole.

#[cfg(test)]
mod tests;

use super::super::session::Session;
use rufous_base::Args;
use rufous_command::Failure;
use rufous_kernel::batch::Header;
use std::borrow::Cow;

const DONE_AT_ONCE: Failure = Failure(Cow::Borrowed(
    "ERR at level read-uncommitted writes are done at once: there is no outcome to keep",
));

/// A token, and how long its outcome is kept, if that was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) token: &'a [u8],
    pub(crate) seconds: Option<&'a [u8]>,
}

impl Session<'_> {
    /// Adds the command that keeps the outcome to those that `COMMIT` will run.
    pub(crate) fn keep_token(&mut self, token: &Token<'_>) -> Result<(), Failure> {
        let front = &mut self.local.front;
        let command = front.table.find(b"outcome").unwrap_or_default();
        let spec = front.table.spec(command);
        let hash = front.kernel.shard.key(token.token).hash;
        let spare = &mut front.transactions.spare;
        let Some(connection) = front.connections.get(self.conn) else {
            return Ok(());
        };
        let header = Header {
            key: 1,
            hash,
            ..connection.header(command, false, None)
        };
        let transaction = &mut connection.transaction;
        match &transaction.begun {
            // `COMMIT` says why it is refused.
            None => return Ok(()),
            Some(begun) if begun.given_up.is_some() => return Ok(()),
            Some(begun) if begun.open.writes_at_once() => return Err(DONE_AT_ONCE),
            Some(_) => {}
        }
        let mut words: Vec<&[u8]> = vec![b"outcome", token.token, b"committed"];
        words.extend(
            token
                .seconds
                .iter()
                .flat_map(|seconds| [&b"ex"[..], seconds]),
        );
        let (bytes, places) = joined(&words);
        transaction.keep(header, spec, Args::new(&bytes, &places, &mut []), spare);
        transaction.has_token = true;
        Ok(())
    }
}

/// Words one behind the other, and where each is.
fn joined(words: &[&[u8]]) -> (Vec<u8>, Vec<(u32, u32)>) {
    let mut bytes = Vec::new();
    let mut places = Vec::new();
    for word in words {
        places.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    (bytes, places)
}
