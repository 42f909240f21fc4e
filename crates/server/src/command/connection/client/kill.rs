//! CLIENT KILL: closes connections, by address or by what they have in common.

use super::ADMIN;
use super::filter::Filter;
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static KILL: SessionCommand = SessionCommand {
    spec: Spec {
        name: "client|kill",
        summary: "Closes connections.",
        since: "2.4.0",
        group: Group::Connection,
        complexity: "O(N) where N is the number of connections",
        arity: -3,
        flags: ADMIN.or(Flags::LOADING).or(Flags::STALE),
        keys: Keys::None,
        syntax: "<ip:port | [ID client-id] [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME <YES | NO>] [MAXAGE seconds]>",
    },
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by_address = args.len() == 3;
    let filter = if by_address {
        let peer = Some(String::from_utf8_lossy(args.get(2)).into_owned());
        Filter {
            peer,
            include_caller: true,
            ..Filter::default()
        }
    } else {
        Filter::parse(&args, 2)?
    };
    let caller = session.connection()?.client_id;
    let conn = session.conn;
    session.ask_all(
        reply,
        move |local, now| {
            let chosen: Vec<_> = local
                .clients()
                .filter(|c| {
                    filter.covers(c, now) && (filter.include_caller || c.client_id != caller)
                })
                .map(|c| (c.id, c.client_id))
                .collect();
            for &(id, client_id) in &chosen {
                if client_id != caller {
                    local.close_now(id);
                }
            }
            (chosen.len(), chosen.iter().any(|c| c.1 == caller))
        },
        move |local, killed, reply| {
            let count: usize = killed.iter().map(|k| k.0).sum();
            match (by_address, count) {
                (true, 0) => reply.error(&Failure::from("ERR No such client")),
                (true, _) => reply.ok(),
                (false, _) => reply.count(count),
            }
            // The caller gets its answer first.
            if killed.iter().any(|k| k.1) {
                local.close_after_reply(conn);
            }
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn by_id_at_any_worker() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let victim = rig.connect(workers - 1);
            let id = rig
                .run_on(victim, "CLIENT ID")
                .trim_matches([':', '\r', '\n'])
                .to_owned();
            rig.check(&format!("CLIENT KILL ID {id} TYPE pubsub"), ":0\r\n");
            rig.check(&format!("CLIENT KILL ID {id}"), ":1\r\n");
            assert!(rig.is_closed(victim));
            rig.check(&format!("CLIENT KILL ID {id}"), ":0\r\n");
        }
    }

    #[test]
    fn by_address_in_the_old_form() {
        let mut rig = Rig::new(2);
        let victim = rig.connect(1);
        let peer = rig.peer(victim);
        rig.check(&format!("CLIENT KILL {peer}"), "+OK\r\n");
        assert!(rig.is_closed(victim));
        rig.check(&format!("CLIENT KILL {peer}"), "-ERR No such client\r\n");
    }

    #[test]
    fn the_caller_is_spared_unless_it_says_otherwise_and_gets_its_answer() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let (a, b) = (rig.connect(0), rig.connect(workers - 1));
            rig.check_on(a, "CLIENT KILL TYPE normal", ":1\r\n");
            assert!(rig.is_closed(b) && !rig.is_closed(a));
            rig.check_on(a, "CLIENT KILL USER default SKIPME no", ":1\r\n");
            assert!(rig.is_closed(a));
        }
    }

    #[test]
    fn by_age() {
        let mut rig = Rig::new(1);
        let old = rig.connect(0);
        rig.advance_ms(10_000);
        let young = rig.connect(0);
        rig.check_on(young, "CLIENT KILL MAXAGE 5", ":1\r\n");
        assert!(rig.is_closed(old) && !rig.is_closed(young));
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        rig.check(
            "CLIENT KILL ID x",
            "-ERR client-id should be greater than 0\r\n",
        );
        rig.check(
            "CLIENT KILL ID 0",
            "-ERR client-id should be greater than 0\r\n",
        );
        rig.check("CLIENT KILL TYPE z", "-ERR Unknown client type 'z'\r\n");
        rig.check("CLIENT KILL USER z", "-ERR No such user 'z'\r\n");
        rig.check("CLIENT KILL SKIPME maybe", "-ERR syntax error\r\n");
        rig.check("CLIENT KILL ID 1 SKIPME", "-ERR syntax error\r\n");
        rig.check("CLIENT KILL ID", "-ERR No such client\r\n");
        rig.check(
            "CLIENT KILL",
            "-ERR wrong number of arguments for 'client|kill' command\r\n",
        );
    }
}
