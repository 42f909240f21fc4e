//! A command between `BEGIN` and `COMMIT` on keys of other nodes: a transaction over slots tells the values of its keys, and
//! records watches of them where the level demands that. Then the command runs on copies, as if the keys were this node's.

use super::watches::{Far, Watches};
use super::{Apart, Waiting, in_db, refused};
use crate::front::Message;
use crate::front::transaction::step::Step;
use rufous_base::slot::slot_of;
use rufous_base::{Effects, Output};
use rufous_cluster::composing::Composer;
use rufous_command::{Failure, Reply};
use rufous_kernel::body::{self, Deed, Fetched};
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
    let why = match transacted.is_committed {
        Some(true) => run_fetched(apart, number, *step, &transacted.told, &mut out),
        Some(false) => Err(refused(&transacted.told).unwrap_or(NOT_TOLD.into())),
        None => Err(NOT_TOLD.into()),
    };
    if let Err(why) = why {
        Reply::new(&mut out, header.resp3).error(&why);
    }
    apart.front.deliver(header.conn, header.seq, &out, fx);
}

fn run_fetched(
    apart: &mut Apart<'_>,
    number: u64,
    mut step: Step,
    told: &[u8],
    out: &mut Output,
) -> Result<(), Failure> {
    let slots = body::told(told).unwrap_or_default().into_iter();
    let slots = slots.map(|told| (told.slot, told.replies.into_iter()));
    let mut slots: BTreeMap<u16, _> = slots.collect();
    // Each slot tells of its keys in the order in which they were asked for.
    let each = step.taken.iter().map(|key| {
        let told = slots.get_mut(&slot_of(&key.1))?.next()?;
        Some((key.clone(), Fetched::read(told)?))
    });
    let each: Vec<Option<_>> = each.collect();
    if number > 0 {
        let watched = each.iter().flatten();
        let keys = watched.map(|(key, fetched)| (key.clone(), fetched.since));
        let keys = keys.collect();
        apart.watches_begun(step.header.conn, Far { number, keys });
    }
    let all: Option<Vec<_>> = each.into_iter().collect();
    let all = all.ok_or(Failure::from(TOO_LARGE))?;
    let now = apart.now;
    if let Some(mut begun) = apart.front.take_begun(step.header.conn) {
        for (key, fetched) in all {
            let open = &mut begun.open;
            apart
                .front
                .kernel
                .copy_told(open, key, fetched.effects, now);
        }
        apart.front.put_begun(step.header.conn, begun);
        step.is_copied = true;
        apart.front.run_step(now, step, None, out);
    }
    Ok(())
}
