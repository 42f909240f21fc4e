//! `CLIENT ROLLBACK-ON-ERROR`: transactions of which nothing stays if one of their commands replies an error. Their keys are held
//! also where that would not be necessary, as changes of held keys can be dropped; over slots, see [`Deed::Undoes`].
//!
//! [`Deed::Undoes`]: rufous_kernel::body::Deed::Undoes

use super::super::Front;
use super::super::connection::Connection;
use super::discarded;
use super::run::Running;
use rufous_base::Output;
use rufous_command::{Failure, Reply};
use rufous_kernel::Batch;
use rufous_kernel::worker::HeldExec;
use std::borrow::Cow;

const LATTICE_STAYS: Failure = Failure(Cow::Borrowed(
    "ERR with CLIENT ROLLBACK-ON-ERROR ON a transaction has keys of regime strict alone",
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
    pub(super) fn of(connection: &Connection) -> Self {
        let (first, db) = (None, connection.db);
        if connection.undoes {
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
pub(super) fn refused(front: &Front, queued: &mut Batch) -> Option<Failure> {
    let placement = front.kernel.placement();
    let mut found = Vec::new();
    let has_lattice = (0..queued.requests.len()).any(|at| {
        let (header, args, _) = queued.parts(at);
        found.clear();
        let spec = front.table.spec(header.command);
        spec.keys.find(&args, header.db, &mut found);
        let mut keys = found.iter().map(|(_, arg)| args.get(*arg as usize));
        keys.any(|key| placement.lattice(key).is_some())
    });
    has_lattice.then(|| discarded(&LATTICE_STAYS))
}

/// The reply of a transaction: if a command has failed whose error undoes all, nothing else stays.
pub(super) fn undo_if_failed(
    front: &mut Front,
    running: &Running,
    held: Option<HeldExec>,
    out: Output,
) -> (Option<HeldExec>, Output) {
    let Errors::Undo {
        first: Some(first),
        db,
    } = &running.errors
    else {
        return (held, out);
    };
    let Some(mut held) = held else {
        // It has no keys.
        return (held, out);
    };
    held.undo();
    if let Some(connection) = front.connection(running.header.conn) {
        connection.db = *db;
    }
    let why = String::from_utf8_lossy(first).into_owned();
    let mut out = Output::default();
    Reply::new(&mut out, false).error(&discarded(&why.into()));
    (Some(held), out)
}
