//! CLUSTER COUNTKEYSINSLOT, GETKEYSINSLOT: keys of a slot that this node answers for.
//! Those of lattice keyspaces are in no slot, and copies are other nodes' to tell of.

use super::{known, spec};
use crate::command::SessionCommand;
use crate::front::local::Local;
use crate::front::session::Session;
use rufous_base::limits::SLOTS;
use rufous_base::slot::worker_of_slot;
use rufous_base::{Args, Now};
use rufous_command::{Failure, Reply, options};

/// Names in one reply.
const MOST: usize = 1 << 20;

pub(super) static COUNTKEYSINSLOT: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|countkeysinslot",
        "3.0.0",
        "O(1)",
        3,
        "slot",
        "Returns the number of keys of a slot that the node answers for.",
    ),
    run: |session, args, reply| {
        let slot = slot(session, &args)?;
        let db = usize::from(session.db()?);
        let workers = session.local.workers();
        session.ask_one(
            reply,
            worker_of_slot(slot, workers),
            move |local, _| local.slot_len(db, slot),
            |_, count, reply| reply.count(count),
        );
        Ok(())
    },
};

pub(super) static GETKEYSINSLOT: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|getkeysinslot",
        "3.0.0",
        "O(N) where N is the number of keys of the worker that has the slot",
        4,
        "slot count",
        "Returns names of keys of a slot that the node answers for.",
    ),
    run: |session, args, reply| {
        let slot = slot(session, &args)?;
        let count = options::integer(args.get(3))?;
        let count =
            usize::try_from(count).map_err(|_| Failure::from("ERR Invalid number of keys"))?;
        of_slot(session, reply, slot, count.min(MOST), |names, reply| {
            reply.array(names.names.len());
            for name in &names.names {
                reply.bulk(name);
            }
        })
    },
};

fn slot(session: &Session<'_>, args: &Args<'_>) -> Result<u16, Failure> {
    known(session)?;
    let slot = options::integer(args.get(2)).ok();
    let slot = slot.and_then(|slot| u16::try_from(slot).ok());
    slot.filter(|slot| usize::from(*slot) < SLOTS)
        .ok_or_else(|| "ERR Invalid slot".into())
}

/// What was found of a slot.
struct Found {
    count: usize,
    names: Vec<Box<[u8]>>,
}

/// Looks for so many names, or counts them all where no number is that large.
fn of_slot(
    session: &mut Session<'_>,
    reply: &mut Reply<'_>,
    slot: u16,
    most: usize,
    tell: fn(&Found, &mut Reply<'_>),
) -> Result<(), Failure> {
    let db = usize::from(session.db()?);
    let workers = session.local.workers();
    session.ask_one(
        reply,
        worker_of_slot(slot, workers),
        move |local, now| find(local, now, (db, slot), most),
        move |_, found, reply| tell(&found, reply),
    );
    Ok(())
}

fn find(local: &mut Local<'_>, now: Now, (db, slot): (usize, u16), most: usize) -> Found {
    let mut found = Found {
        count: 0,
        names: Vec::new(),
    };
    let mut cursor = Some(0).filter(|_| most > 0);
    while let Some(from) = cursor {
        cursor = local.scan_slot((db, slot), from, now, &mut |key| {
            if found.count >= most {
                return;
            }
            found.count += 1;
            if most < usize::MAX {
                found.names.push(key.into());
            }
        });
        cursor = cursor.filter(|_| found.count < most);
    }
    found
}
