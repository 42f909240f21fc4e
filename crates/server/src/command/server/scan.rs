//! SCAN: all keys, a few at a time.
//!
//! Strict keys come worker by worker, and of each worker in the order of their hashes; then lattice keys of all workers
//! together in the order of their hashes, which all workers compute alike. Each walk visits every key that stays
//! throughout, so the whole does as well.
//!
//! Of the replicas of a lattice key the one is listed that the connection reads and writes. A client that goes on with a
//! cursor over a connection of another worker is shown that one's replicas from the same place on: it misses no key that
//! all replicas have throughout.
//!
//! Clients with few keys expect them all at once. So where a walk of a worker starts, the other workers are asked too,
//! and those that have no more keys than were wanted give them all; larger ones wait for their turn.

mod cursor;
mod filter;
mod join;
mod part;
#[cfg(test)]
mod tests;

use crate::command::SessionCommand;
use crate::front::listing::{self, Scope};
use crate::front::session::Session;
use cursor::Cursor;
use filter::Filter;
use join::{Joined, Step};
use part::Question;
use rufous_base::{Args, WorkerId};
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static SCAN: SessionCommand = SessionCommand {
    spec: Spec {
        name: "scan",
        summary: "Iterates over the keys of the database, a few per call.",
        since: "2.8.0",
        group: Group::Generic,
        complexity: "O(1) for every call, O(N) for a whole pass over N keys",
        arity: -2,
        flags: Flags::READONLY
            .or(Flags::ALL_KEYS)
            .or(Flags::AFTER_OTHERS)
            .or(Flags::WALK),
        keys: Keys::None,
        syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
    },
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let cursor = Cursor::parse(args.get(1))?;
    let filter = Filter::parse(&args)?;
    let db = usize::from(session.db()?);
    let scope = Scope::of(session);
    let step = Step {
        workers: session.local.workers() as u32,
        cursor,
        count: filter.count,
        // Over several nodes, the one that asks them says when.
        then_lattice: session.local.has_lattice() && !scope.is_part(),
    };
    let question = Question {
        db,
        scope,
        cursor,
        then_lattice: step.then_lattice,
        filter,
    };
    if cursor.worker >= step.workers && !cursor.is_lattice() {
        // From elsewhere, or made up: there is nothing behind it.
        Joined::default().write(reply);
    } else if let Some(worker) = asked_alone(session, cursor) {
        listing::ask_one(
            session,
            reply,
            worker,
            move |local, now| question.parts(local, now),
            move |_, parts, reply| step.join(&[parts]).write(reply),
        );
    } else {
        listing::ask_all(
            session,
            reply,
            move |local, now| question.parts(local, now),
            move |_, parts, reply| step.join(&parts).write(reply),
        );
    }
    Ok(())
}

/// The worker that has all keys of a step, if it is one.
fn asked_alone(session: &Session<'_>, cursor: Cursor) -> Option<WorkerId> {
    let local = &session.local;
    if cursor.is_lattice() {
        return (!local.is_served_by_others()).then(|| local.id());
    }
    (cursor.at > 0).then_some(WorkerId(cursor.worker as u16))
}
