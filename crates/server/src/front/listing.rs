//! Requests about all keys: which keys they list, and how all workers are asked for theirs.

use super::local::Local;
use super::session::Session;
use crate::cluster::door::Door;
use rufous_base::{Now, WorkerId};
use rufous_command::Reply;
use rufous_kernel::shard::{ListedSlots, Listing};

/// The origin of a request about all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// This node's client asks this node alone.
    ByClient,
    /// It asks all nodes, of which this is one.
    OfAll,
    ByPeer,
}

/// Which keys a request about all keys lists here: of lattice keys, those whose replica the connection reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    asked: Asked,
    replicas: (WorkerId, ListedSlots),
}

impl Scope {
    /// Of a request that asks all workers.
    pub fn of(session: &mut Session<'_>) -> Self {
        let (asked, slots) = match session.local.front.peers.jobs.is_peers(session.conn) {
            Some(true) => (Asked::ByPeer, ListedSlots::All),
            Some(false) => (Asked::OfAll, ListedSlots::All),
            None => (Asked::ByClient, listed_slots(session)),
        };
        Self {
            asked,
            replicas: (session.local.id(), slots),
        }
    }

    /// A node that asks others for their keys lists its own replicas.
    pub fn listing(self) -> Listing {
        match self.asked {
            Asked::ByClient | Asked::OfAll => Listing {
                has_strict: true,
                ..self.lattice()
            },
            Asked::ByPeer => Listing::STRICT,
        }
    }

    /// Of these, lattice keys alone.
    pub fn lattice(self) -> Listing {
        Listing {
            has_strict: false,
            lattice: Some(self.replicas),
        }
    }

    /// Whether it is a part of a request that several nodes answer.
    pub fn is_part(self) -> bool {
        self.asked != Asked::ByClient
    }
}

/// While keyspaces change, workers may answer by different tables, or have yet to receive replicas: a key would be
/// listed by none of them.
const CHANGED: &str = "TRYAGAIN The keyspaces were changed while keys were listed: send it again";

/// The table of keyspaces of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// It has no lattice keyspaces.
    Strict,
    /// It has this version.
    Lattice(u64),
    /// Keys are being converted to it.
    Converting,
}

/// A worker's answer, and its table.
struct Listed<T> {
    table: Table,
    answer: T,
}

impl<T> Listed<T> {
    /// The answer, if it is by this table.
    fn by(self, table: Table) -> Option<T> {
        (self.table == table && table != Table::Converting).then_some(self.answer)
    }
}

/// [`Session::ask_all`] about listed keys.
pub fn ask_all<T: Send + 'static>(
    session: &mut Session<'_>,
    reply: &mut Reply<'_>,
    question: impl Fn(&mut Local<'_>, Now) -> T + Clone + Send + 'static,
    finish: impl FnOnce(&mut Local<'_>, Vec<T>, &mut Reply<'_>) + Send + 'static,
) {
    let table = session.local.table_of_lists();
    session.ask_all(
        reply,
        move |local, now| listed(local, now, &question),
        move |local, answers, reply| match of_table(table, answers) {
            Some(answers) => finish(local, answers, reply),
            None => reply.error(&CHANGED.into()),
        },
    );
}

/// [`Session::ask_one`] about listed keys.
pub fn ask_one<T: Send + 'static>(
    session: &mut Session<'_>,
    reply: &mut Reply<'_>,
    worker: WorkerId,
    question: impl Fn(&mut Local<'_>, Now) -> T + Clone + Send + 'static,
    finish: impl FnOnce(&mut Local<'_>, T, &mut Reply<'_>) + Send + 'static,
) {
    let table = session.local.table_of_lists();
    session.ask_one(
        reply,
        worker,
        move |local, now| listed(local, now, &question),
        move |local, answer, reply| match answer.by(table) {
            Some(answer) => finish(local, answer, reply),
            None => reply.error(&CHANGED.into()),
        },
    );
}

/// Clients that are redirected ask each node: a lattice key is listed by the one that answers for its slot.
fn listed_slots(session: &mut Session<'_>) -> ListedSlots {
    let door = session.connection().map(|connection| connection.door());
    match door {
        Ok(Door::Redirecting) => ListedSlots::Own,
        Ok(Door::Plain) | Err(_) => ListedSlots::All,
    }
}

fn listed<T>(
    local: &mut Local<'_>,
    now: Now,
    question: impl Fn(&mut Local<'_>, Now) -> T,
) -> Listed<T> {
    Listed {
        table: local.table_of_lists(),
        answer: question(local, now),
    }
}

/// The answers, if all are by this table.
fn of_table<T>(table: Table, answers: Vec<Listed<T>>) -> Option<Vec<T>> {
    answers.into_iter().map(|answer| answer.by(table)).collect()
}
