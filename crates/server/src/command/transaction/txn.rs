//! TXN: the transactions of this node's clients.

use super::spec;
use crate::command::{SessionCommand, help};
use crate::front::session::Session;
use crate::front::transaction::listed::Listed;
use rufous_base::Args;
use rufous_command::options;
use rufous_command::{Failure, Flags, Reply, Spec};

/// They are about other connections.
const ADMIN: Flags = Flags::ADMIN;

pub static TXN: SessionCommand = SessionCommand {
    spec: spec(
        "txn",
        "7.2.4",
        -2,
        Flags::CONTAINER,
        "",
        "A container for commands on the transactions of this node's clients.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("txn")),
};

pub static LIST: SessionCommand = SessionCommand {
    spec: spec(
        "txn|list",
        "7.2.4",
        2,
        ADMIN,
        "O(N) where N is the number of connections",
        "Lists the transactions that clients of this node have begun and not ended, and those over slots without an outcome.",
    ),
    run: |session, _, reply| {
        all(session, reply, |listed, reply| {
            let text: String = listed.iter().map(Listed::line).collect();
            reply.verbatim(*b"txt", &text);
        });
        Ok(())
    },
};

pub static INFO: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "client-id",
        ..spec(
            "txn|info",
            "7.2.4",
            3,
            ADMIN,
            "O(N) where N is the number of connections",
            "Describes the transactions of a client of this node.",
        )
    },
    run: |session, args, reply| {
        let client = client_id(&args)?;
        all(session, reply, move |listed, reply| {
            let its: Vec<&Listed> = listed.iter().filter(|one| one.client == client).collect();
            reply.array(its.len());
            for one in its {
                reply.map(one.fields.len());
                for (name, value) in &one.fields {
                    reply.bulk(name.as_bytes());
                    reply.bulk(value.as_bytes());
                }
            }
        });
        Ok(())
    },
};

pub static KILL: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "client-id",
        ..spec(
            "txn|kill",
            "7.2.4",
            3,
            ADMIN,
            "O(N) where N is the number of connections",
            "Aborts the transaction that a client of this node has begun with BEGIN.",
        )
    },
    run: |session, args, reply| {
        let client = client_id(&args)?;
        session.ask_all(
            reply,
            move |local, now| local.kill_transaction(now, client),
            |_, killed, reply| reply.count(killed.iter().filter(|was| **was).count()),
        );
        Ok(())
    },
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "txn|help",
        "7.2.4",
        2,
        Flags::NONE,
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "txn", reply),
};

/// Shows the transactions of all workers, by their clients.
fn all(
    session: &mut Session<'_>,
    reply: &mut Reply<'_>,
    show: impl FnOnce(&[Listed], &mut Reply<'_>) + Send + 'static,
) {
    session.ask_all(
        reply,
        |local, now| local.transactions(now),
        move |_, listed, reply| {
            let mut listed: Vec<Listed> = listed.into_iter().flatten().collect();
            listed.sort_by_key(|one| one.client);
            show(&listed, reply);
        },
    );
}

fn client_id(args: &Args<'_>) -> Result<u64, Failure> {
    let id = options::integer(args.get(2)).ok();
    let id = id.and_then(|id| u64::try_from(id).ok());
    id.ok_or(Failure::from(
        "ERR Invalid client ID: TXN LIST shows those of clients with transactions",
    ))
}

#[cfg(test)]
mod tests {
    use crate::front::testing::{Client, Rig};

    fn id_of(rig: &mut Rig, client: Client) -> String {
        let id = rig.run_on(client, "CLIENT ID");
        id.trim_matches([':', '\r', '\n']).to_owned()
    }

    #[test]
    fn transactions_of_all_workers_are_listed_and_described() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            rig.check("TXN LIST", "$0\r\n\r\n");
            let client = rig.connect(workers - 1);
            rig.check_on(client, "CLIENT SETNAME till", "+OK\r\n");
            rig.check_on(
                client,
                "BEGIN OPTIMISTIC ISOLATION LEVEL SERIALIZABLE",
                "+OK\r\n",
            );
            rig.check_on(client, "INCR a", ":1\r\n");
            rig.check_on(client, "SAVEPOINT s", "+OK\r\n");
            rig.check_on(client, "GET b", "$-1\r\n");
            let id = id_of(&mut rig, client);
            rig.advance_ms(1500);
            let list = rig.run("TXN LIST");
            let begins = format!("id={id} addr=");
            let line = list.lines().find(|line| line.starts_with(&begins));
            let line = line.unwrap_or_else(|| panic!("{list}"));
            let worker = workers - 1;
            let rest = format!(
                " name=till worker={worker} state=open age-ms=1500 idle-ms=1500 level=serializable commands=1 keys=2 \
                 watched=2 savepoints=1 bytes="
            );
            assert!(line.contains(&rest), "{line}");
            let shown = rig.run(&format!("TXN INFO {id}"));
            assert!(shown.starts_with("*1\r\n*26\r\n$2\r\nid\r\n"), "{shown}");
            assert!(shown.contains("$5\r\nstate\r\n$4\r\nopen\r\n"), "{shown}");
            rig.check("TXN INFO 999", "*0\r\n");
            rig.run_on(client, "ROLLBACK");
            rig.check("TXN LIST", "$0\r\n\r\n");
        }
    }

    #[test]
    fn a_killed_one_only_ends() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let client = rig.connect(workers - 1);
            let id = id_of(&mut rig, client);
            let kill = format!("TXN KILL {id}");
            rig.check(&kill, ":0\r\n");
            rig.run_on(client, "BEGIN");
            rig.check_on(client, "SET a 1", "+OK\r\n");
            rig.advance_ms(700);
            rig.check(&kill, ":1\r\n");
            rig.check(&kill, ":0\r\n");
            let list = rig.run("TXN LIST");
            assert!(list.contains(" state=aborted age-ms=700 "), "{list}");
            let over =
                "-ERR ended by TXN KILL: the transaction is aborted, end it with ROLLBACK\r\n";
            rig.check_on(client, "SET a 2", over);
            let discarded = "-EXECABORT Transaction discarded because of: ended by TXN KILL\r\n";
            rig.check_on(client, "COMMIT", discarded);
            rig.check("GET a", "$-1\r\n");
            rig.check_on(client, "SET a 3", "+OK\r\n");
        }
    }

    /// A command of a killed transaction that waits for its keys runs no more.
    #[test]
    fn a_command_that_waits_for_keys_ends_with_its_transaction() {
        let keys = ["a", "b", "c", "d", "e", "f"];
        for level in ["READ-COMMITTED", "SERIALIZABLE"] {
            for other in &keys[1..] {
                let mut rig = Rig::new(3);
                let (client, killer) = (rig.connect(0), rig.connect(0));
                let id = id_of(&mut rig, client);
                rig.run_on(client, &format!("BEGIN {level}"));
                rig.check_on(client, "SET a 2", "+OK\r\n");
                rig.send_only(client, format!("MSET a 3 {other} 3\r\n").as_bytes());
                rig.send_only(killer, format!("TXN KILL {id}\r\n").as_bytes());
                rig.settle();
                assert_eq!(rig.take(killer), ":1\r\n");
                rig.take(client);
                assert!(rig.run_on(client, "COMMIT").starts_with("-EXECABORT "));
                for key in keys {
                    rig.check(&format!("SETNX {key} 1"), ":1\r\n");
                }
                let all = keys.join(" ");
                rig.check_on(client, &format!("EXISTS {all}"), ":6\r\n");
                rig.check_on(client, &format!("DEL {all}"), ":6\r\n");
                let none = format!("MSETNX a 1 {other} 1");
                rig.check_on(client, &none, ":1\r\n");
            }
        }
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        let invalid =
            "-ERR Invalid client ID: TXN LIST shows those of clients with transactions\r\n";
        rig.check("TXN KILL x", invalid);
        rig.check("TXN INFO -1", invalid);
        rig.check(
            "TXN",
            "-ERR wrong number of arguments for 'txn' command\r\n",
        );
        rig.check(
            "TXN FOO",
            "-ERR unknown subcommand 'FOO'. Try TXN HELP.\r\n",
        );
        assert!(rig.run("TXN HELP").contains("+KILL client-id\r\n"));
        for words in [
            "ISOLATION",
            "x y",
            "OPTIMISTIC ISOLATION LEVEL",
            "SERIALIZABLE OPTIMISTIC",
        ] {
            rig.check(&format!("BEGIN {words}"), "-ERR syntax error\r\n");
        }
        rig.check("BEGIN ISOLATION item-cut", "+OK\r\n");
        rig.check("ROLLBACK", "+OK\r\n");
        rig.check("BEGIN optimistic", "+OK\r\n");
    }
}
