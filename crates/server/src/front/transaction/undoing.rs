//! `CLIENT ROLLBACK-ON-ERROR` and `COMMIT TOKEN`: transactions of which nothing stays if one of their commands replies an error. Their keys are held
//! also where that would not be necessary, as changes of held keys can be dropped; over slots, see [`Deed::Undoes`].
//!
//! [`Deed::Undoes`]: rufous_kernel::body::Deed::Undoes

#[cfg(test)]
mod tests;

use super::super::connection::Connection;
use super::discarded;
use super::run::Running;
use crate::cluster::way::Locator;
use rufous_command::Failure;
use rufous_kernel::Batch;
use std::borrow::Cow;

const LATTICE_STAYS: Failure = Failure(Cow::Borrowed(
    "ERR with CLIENT ROLLBACK-ON-ERROR ON, or a token, a transaction has keys of regime strict alone",
));

/// What an error reply within a transaction does.
#[derive(Debug)]
pub(super) enum Errors {
    /// Nothing more.
    Stay,
    /// It undoes all. The first one, if there was one; and the database at the beginning.
    Undo { first: Option<Vec<u8>>, db: u8 },
}

impl Errors {
    /// Of a transaction that may have a token, of a connection.
    pub(super) fn of(connection: &Connection, has_token: bool) -> Self {
        let (first, db) = (None, connection.db);
        if connection.undoes || has_token {
            Self::Undo { first, db }
        } else {
            Self::Stay
        }
    }

    pub(super) fn undo(&self) -> bool {
        matches!(self, Self::Undo { .. })
    }

    /// Looks at the reply of a command.
    pub(super) fn note(&mut self, reply: &[u8]) {
        if let Self::Undo { first, .. } = self
            && first.is_none()
            && reply.first() == Some(&b'-')
        {
            *first = Some(reply.trim_ascii_end().get(1..).unwrap_or_default().to_vec());
        }
    }
}

/// Why an error cannot undo these commands, if it cannot.
pub(super) fn refused(locator: Locator<'_>, queued: &mut Batch) -> Option<Failure> {
    let mut found = Vec::new();
    let has_lattice = (0..queued.requests.len()).any(|at| {
        let (header, args, _) = queued.parts(at);
        found.clear();
        let spec = locator.table.spec(header.command);
        spec.keys.find(&args, header.db, &mut found);
        let mut keys = found.iter().map(|(_, arg)| args.get(*arg as usize));
        keys.any(|key| locator.slot(key).is_none())
    });
    has_lattice.then(|| discarded(&LATTICE_STAYS))
}

impl Running {
    /// Why nothing of the transaction stays, if a command has failed whose error undoes all; with the
    /// database that is selected again.
    pub(super) fn undo(&mut self) -> Option<(Failure, u8)> {
        let Errors::Undo {
            first: Some(first),
            db,
        } = &self.errors
        else {
            return None;
        };
        let why = String::from_utf8_lossy(first).into_owned();
        if let Some(held) = &mut self.held {
            held.undo();
        }
        // It counts as rolled back.
        self.dirty = true;
        Some((discarded(&why.into()), *db))
    }
}
