//! SAVE, and what the commands on snapshots have in common.

use crate::command::SessionCommand;
use crate::front::orders::{SaveAnswer, SaveOrder};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub(super) const FLAGS: Flags = Flags::ADMIN.or(Flags::NOSCRIPT);

pub(super) const NO_FOLDER: &str =
    "ERR Data is in memory only and cannot be saved: the server was started without a data folder";

pub(super) const BUSY: &str = "ERR Background save already in progress";

pub static SAVE: SessionCommand = SessionCommand {
    spec: Spec {
        name: "save",
        summary: "Takes a snapshot, and replies when it is on disk. Other clients are served meanwhile.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(N) where N is the total number of keys",
        arity: 1,
        flags: FLAGS.or(Flags::NO_MULTI),
        keys: Keys::None,
        syntax: "",
    },
    run,
};

fn run(session: &mut Session<'_>, _: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    session.order_save(SaveOrder::Save, |_, answer, reply| match answer {
        SaveAnswer::Saved => reply.ok(),
        other => refuse(&other, BUSY, reply),
    });
    Ok(())
}

/// The reply to an order that was not carried out.
pub(super) fn refuse(answer: &SaveAnswer, busy: &'static str, reply: &mut Reply<'_>) {
    match answer {
        SaveAnswer::Busy => reply.error(&busy.into()),
        SaveAnswer::NoFolder => reply.error(&NO_FOLDER.into()),
        SaveAnswer::Failed(why) => reply.error(&format!("ERR {why}").into()),
        _ => reply.error(&"ERR unexpected internal reply".into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::front::orders::{SaveAnswer, SaveOrder};
    use crate::front::testing::Rig;

    /// Runs a request at the last of `workers`, and gives the coordinator's answer to its order.
    #[track_caller]
    fn check(request: &str, order: SaveOrder, answer: SaveAnswer, expected: &str) {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            rig.fronts[0].durability.orders.take_them();
            let client = rig.connect(workers - 1);
            rig.send(client, format!("{request}\r\nPING\r\n").as_bytes());
            assert_eq!(
                rig.take(client),
                "",
                "{request} waits, and the next behind it"
            );
            let mut asked = rig.fronts[0].durability.orders.take();
            let asked = asked.pop_front().expect("an order");
            assert_eq!(asked.order, order);
            rig.fronts[0]
                .durability
                .orders
                .answer(asked, answer.clone());
            rig.advance_ms(100);
            assert_eq!(
                rig.take(client),
                format!("{expected}+PONG\r\n"),
                "{request}"
            );
        }
    }

    #[test]
    fn replies_are_those_of_redis() {
        let background = |schedule| SaveOrder::Background { schedule };
        check("SAVE", SaveOrder::Save, SaveAnswer::Saved, "+OK\r\n");
        check(
            "SAVE",
            SaveOrder::Save,
            SaveAnswer::Busy,
            "-ERR Background save already in progress\r\n",
        );
        check(
            "SAVE",
            SaveOrder::Save,
            SaveAnswer::Failed("no room".into()),
            "-ERR no room\r\n",
        );
        check(
            "BGSAVE",
            background(false),
            SaveAnswer::Started,
            "+Background saving started\r\n",
        );
        check(
            "BGSAVE",
            background(false),
            SaveAnswer::Busy,
            "-ERR Background save already in progress\r\n",
        );
        check(
            "BGSAVE schedule",
            background(true),
            SaveAnswer::Scheduled,
            "+Background saving scheduled\r\n",
        );
        check(
            "BGREWRITEAOF",
            SaveOrder::Rewrite,
            SaveAnswer::Started,
            "+Background append only file rewriting started\r\n",
        );
        check(
            "BGREWRITEAOF",
            SaveOrder::Rewrite,
            SaveAnswer::Scheduled,
            "+Background append only file rewriting scheduled\r\n",
        );
        check(
            "BGREWRITEAOF",
            SaveOrder::Rewrite,
            SaveAnswer::Busy,
            "-ERR Background append only file rewriting already in progress\r\n",
        );
    }

    #[test]
    fn without_a_folder_there_is_nothing_to_save_to() {
        for workers in [1, 2] {
            let mut rig = Rig::new(workers);
            for request in ["SAVE", "BGSAVE", "BGREWRITEAOF", "BACKUP PIN"] {
                let client = rig.connect(workers - 1);
                rig.send(client, format!("{request}\r\n").as_bytes());
                let reply = rig.take(client);
                assert!(reply.starts_with("-ERR Data is in memory only"), "{reply}");
            }
            rig.check("BGSAVE now", "-ERR syntax error\r\n");
        }
    }

    #[test]
    fn the_time_of_the_last_save() {
        let mut rig = Rig::new(2);
        rig.check("LASTSAVE", ":1700000000\r\n");
        rig.fronts[0].durability.info.node.last_save_time_s = 1_700_000_777;
        for worker in 0..2 {
            let client = rig.connect(worker);
            rig.check_on(client, "LASTSAVE", ":1700000777\r\n");
        }
    }
}
