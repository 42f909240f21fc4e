//! A command between `BEGIN` and `COMMIT` on keys of other nodes: a transaction over slots tells the values of its keys, and
//! records watches of them where the level demands that. Then the command runs on copies, as if the keys were this node's.

use super::far::{Far, NEVER, in_db};
use super::open::Waiting;
use super::watches::Watches;
use super::{Apart, OTHER_VERSION, refused};
use crate::front::Message;
use crate::front::transaction::begun::given_up;
use crate::front::transaction::step::Step;
use rufous_base::slot::slot_of;
use rufous_base::{ConnId, Effects, Output};
use rufous_cluster::composing::Composer;
use rufous_command::{Failure, Reply};
use rufous_kernel::body::{self, Deed, Fetched};
use rufous_kernel::lock::KeyName;
use rufous_kernel::worker::Transacted;
use std::collections::BTreeMap;

const TOO_LARGE: &str = "ERR values of keys of other nodes are copied for a transaction, 4194304 bytes at a time: the command was not executed";
const NOT_TOLD: &str = "TRYAGAIN Nodes with keys of the command have not answered in time, see CLUSTER STATUS: it was not executed, \
                        and the transaction goes on";

/// Has the keys of a command copied. Its reply comes later.
pub(in super::super) fn fetch(apart: &mut Apart<'_>, step: Box<Step>) -> Result<(), Failure> {
    let placement = apart.front.kernel.placement();
    let mut keys = step.taken.iter();
    if let Some(keyspace) = keys.find_map(|(_, key)| placement.lattice(key)) {
        return Err(format!("CROSSNODE A command of a transaction has a key of keyspace '{}', which is of regime lattice, and one of another node: use two commands", keyspace.name).into());
    }
    let header = step.header;
    let number = match step.watcher {
        Some(_) => apart.number_watches(header.conn),
        None => 0,
    };
    let mut composer = Composer::new(true, false);
    for (db, key) in &step.taken {
        composer.add_deed(in_db(*db), Deed::Fetch { watcher: number }, key);
    }
    apart.begin(&header, composer, Watches::Fetch { number, step })
}

/// The slots have told the values, or not.
pub(super) fn on_fetched(
    apart: &mut Apart<'_>,
    waiting: Waiting,
    transacted: &Transacted,
    fx: &mut Effects<Message>,
) {
    let Watches::Fetch { number, step } = waiting.watches else {
        return;
    };
    let header = waiting.header;
    let mut out = Output::default();
    let told: &[u8] = match transacted.is_committed {
        Some(true) => &transacted.told,
        _ => &[],
    };
    let fetched = fetched(&step.taken, told);
    if number > 0 {
        note_watches(apart, header.conn, number, &fetched);
    }
    let why = match transacted.is_committed {
        Some(true) => run_fetched(apart, *step, fetched, &mut out),
        Some(false) => Err(refused(&transacted.told).unwrap_or(NOT_TOLD.into())),
        None => Err(NOT_TOLD.into()),
    };
    if let Err(why) = why {
        Reply::new(&mut out, header.resp3).error(&why);
    }
    apart.front.deliver(header.conn, header.seq, &out, fx);
}

/// What is told of each key, if it was.
type Told<'t> = Vec<(KeyName, Option<Fetched<'t>>)>;

/// Each slot tells of its keys in the order in which they were asked for.
fn fetched<'t>(keys: &[KeyName], told: &'t [u8]) -> Told<'t> {
    let slots = body::told(told).unwrap_or_default().into_iter();
    let slots = slots.map(|told| (told.slot, told.replies.into_iter()));
    let mut slots: BTreeMap<u16, _> = slots.collect();
    let mut next = |key: &KeyName| Fetched::read(slots.get_mut(&slot_of(&key.1))?.next()?);
    keys.iter().map(|key| (key.clone(), next(key))).collect()
}

/// The slots have recorded watches; those that have told nothing may have, too.
fn note_watches(apart: &mut Apart<'_>, conn: ConnId, number: u64, fetched: &Told<'_>) {
    let connection = apart.front.connection(conn);
    let transaction = connection.map(|connection| &connection.transaction);
    // The watch of a key that was at this node before `BEGIN` is lost with its slot.
    let is_lost =
        |key| transaction.is_some_and(|own| own.watched.contains(key) && own.far.since(key) == 0);
    let keys = fetched.iter().map(|(key, fetched)| {
        let since = fetched.as_ref().map_or(NEVER, |fetched| fetched.since);
        (key.clone(), if is_lost(key) { NEVER } else { since })
    });
    let keys = keys.collect();
    apart.watches_begun(conn, Far { number, keys });
}

fn run_fetched(
    apart: &mut Apart<'_>,
    mut step: Step,
    fetched: Told<'_>,
    out: &mut Output,
) -> Result<(), Failure> {
    let conn = step.header.conn;
    let (front, now) = (&mut apart.front, apart.now);
    let connection = front.connections.get(conn);
    let Some(begun) = connection.and_then(|c| c.transaction.begun.as_deref_mut()) else {
        return Ok(());
    };
    if let Some(why) = &begun.given_up {
        return Err(given_up(why));
    }
    let kernel = &mut front.kernel;
    fetched.into_iter().try_for_each(|(key, fetched)| {
        let fetched = fetched.ok_or(Failure::from(TOO_LARGE))?;
        let is_copied = kernel.copy_told(&mut begun.open, key, fetched.effects, now);
        is_copied.then_some(()).ok_or(Failure::from(OTHER_VERSION))
    })?;
    step.is_copied = true;
    apart.front.run_step(now, step, None, out);
    Ok(())
}
