//! BACKUP: keeps the files of an instant in place while they are copied.
//! `rufous backup create` is what sends it.

use super::save::{BUSY, FLAGS, refuse};
use crate::command::{SessionCommand, help};
use crate::front::orders::{Pinned, SaveAnswer, SaveOrder};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

const fn spec(
    name: &'static str,
    arity: i32,
    flags: Flags,
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since: "7.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity,
        flags,
        keys: Keys::None,
        syntax,
    }
}

pub static BACKUP: SessionCommand = SessionCommand {
    spec: spec(
        "backup",
        -2,
        Flags::CONTAINER,
        "",
        "A container for commands on backups.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("backup")),
};

pub static PIN: SessionCommand = SessionCommand {
    spec: spec(
        "backup|pin",
        2,
        FLAGS.or(Flags::NO_MULTI),
        "",
        "Returns files that hold the data of this instant. They stay until they are unpinned, or the connection closes.",
    ),
    run: pin,
};

pub static UNPIN: SessionCommand = SessionCommand {
    spec: spec(
        "backup|unpin",
        3,
        FLAGS.or(Flags::NO_MULTI),
        "id",
        "Lets go of the files of a pin.",
    ),
    run: unpin,
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "backup|help",
        2,
        Flags::LOADING.or(Flags::STALE),
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "backup", reply),
};

fn pin(session: &mut Session<'_>, _: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    let conn = session.conn;
    session.order_save(SaveOrder::Pin, move |local, answer, reply| match answer {
        SaveAnswer::Pinned(pinned) => {
            local.keep_pin(conn, pinned.id);
            show(&pinned, reply);
        }
        other => refuse(&other, BUSY, reply),
    });
    Ok(())
}

fn show(pinned: &Pinned, reply: &mut Reply<'_>) {
    reply.map(4);
    reply.bulk(b"id");
    reply.integer(pinned.id as i64);
    reply.bulk(b"unix-us");
    reply.integer(pinned.unix_us as i64);
    reply.bulk(b"manifest-without-seed");
    reply.bulk(&pinned.shown_manifest());
    reply.bulk(b"files");
    reply.array(pinned.files.len());
    for (name, bytes) in &pinned.files {
        reply.array(2);
        reply.bulk(name.as_bytes());
        reply.integer(*bytes as i64);
    }
}

fn unpin(session: &mut Session<'_>, args: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    let id = rufous_command::options::integer(args.get(2))?;
    let id = u64::try_from(id).map_err(|_| Failure::from("ERR no such pin"))?;
    session.local.forget_pin(id);
    session.order_save(SaveOrder::Unpin(id), |_, answer, reply| match answer {
        SaveAnswer::Unpinned(found) => reply.integer(i64::from(found)),
        other => refuse(&other, BUSY, reply),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::orders::{Asked, Pinned, SaveAnswer, SaveOrder};
    use crate::front::testing::Rig;
    use rufous_kernel::durable::Manifest;

    fn rig(workers: usize) -> Rig {
        let rig = Rig::new(workers);
        let mut rig = rig;
        rig.fronts[0].durability.orders.take_them();
        rig
    }

    fn next_order(rig: &mut Rig) -> Option<Asked> {
        let mut orders = rig.fronts[0].durability.orders.take();
        assert!(orders.len() <= 1);
        orders.pop_front()
    }

    fn manifest(hash_seed: u64) -> Vec<u8> {
        let manifest = Manifest {
            generation: 7,
            logs_from: 7,
            logs_until: None,
            workers: 1,
            hash_seed,
            run: 1,
            saved_ms: 5,
            snapshots: Vec::new(),
        };
        manifest.encode()
    }

    fn pinned(id: u64) -> SaveAnswer {
        SaveAnswer::Pinned(Pinned {
            id,
            manifest: manifest(0x0123_4567_89ab_cdef),
            files: vec![("snap-1-0".into(), 7)],
            unix_us: 9,
        })
    }

    #[test]
    fn pins_are_shown_and_let_go() {
        for workers in [1, 3] {
            let mut rig = rig(workers);
            let client = rig.connect(workers - 1);
            rig.send(client, b"BACKUP PIN\r\n");
            let asked = next_order(&mut rig).expect("an order");
            assert_eq!(asked.order, SaveOrder::Pin);
            rig.fronts[0].durability.orders.answer(asked, pinned(4));
            rig.advance_ms(100);
            // The seed is told to no client.
            let manifest = String::from_utf8(manifest(0)).expect("text");
            let shown = format!(
                "*8\r\n$2\r\nid\r\n:4\r\n$7\r\nunix-us\r\n:9\r\n$21\r\nmanifest-without-seed\r\n${}\r\n{manifest}\r\n$5\r\nfiles\r\n*1\r\n*2\r\n$8\r\nsnap-1-0\r\n:7\r\n",
                manifest.len()
            );
            assert_eq!(rig.take(client), shown);
            rig.send(client, b"BACKUP UNPIN 4\r\n");
            let asked = next_order(&mut rig).expect("an order");
            assert_eq!(asked.order, SaveOrder::Unpin(4));
            rig.fronts[0]
                .durability
                .orders
                .answer(asked, SaveAnswer::Unpinned(true));
            rig.advance_ms(100);
            assert_eq!(rig.take(client), ":1\r\n");
            rig.close(client);
            assert!(next_order(&mut rig).is_none(), "it is unpinned already");
        }
    }

    #[test]
    fn a_connection_that_closes_lets_go_of_its_pins() {
        for (workers, closes_first) in [(1, false), (3, false), (1, true), (3, true)] {
            let mut rig = rig(workers);
            let client = rig.connect(workers - 1);
            rig.send(client, b"BACKUP PIN\r\n");
            let asked = next_order(&mut rig).expect("an order");
            if closes_first {
                rig.close(client);
            }
            rig.fronts[0].durability.orders.answer(asked, pinned(4));
            rig.advance_ms(100);
            if !closes_first {
                assert!(next_order(&mut rig).is_none());
                rig.close(client);
            }
            rig.settle();
            let asked = next_order(&mut rig).expect("an order");
            assert_eq!(asked.order, SaveOrder::Unpin(4));
            rig.fronts[0]
                .durability
                .orders
                .answer(asked, SaveAnswer::Unpinned(true));
        }
    }
}
