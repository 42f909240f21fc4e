//! CLIENT LIST, CLIENT INFO: connections as lines of text.

use super::super::spec;
use super::filter::Kind;
use super::{ADMIN, line};
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::options::{self, is};
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};
use std::collections::BTreeSet;

pub static LIST: SessionCommand = SessionCommand {
    spec: Spec {
        name: "client|list",
        summary: "Lists connections.",
        since: "2.4.0",
        group: Group::Connection,
        complexity: "O(N) where N is the number of connections",
        arity: -2,
        flags: ADMIN.or(Flags::LOADING).or(Flags::STALE),
        keys: Keys::None,
        syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
    },
    run,
};

pub static INFO: SessionCommand = SessionCommand {
    spec: spec(
        "client|info",
        "6.2.0",
        2,
        Flags::NOSCRIPT.or(Flags::UNPAUSED),
        "",
        "Describes the connection.",
    ),
    run: |session, _, reply| {
        let (worker, table, now) = (session.local.id(), session.local.table(), session.now);
        let mut text = line::describe(session.connection()?, worker, table, now);
        text.push('\n');
        reply.verbatim(*b"txt", &text);
        Ok(())
    },
};

#[derive(Clone)]
enum Which {
    All,
    Ids(BTreeSet<u64>),
    Kind(Kind),
}

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let which = parse(&args)?;
    session.ask_all(
        reply,
        move |local, now| {
            let chosen = local.clients().filter(|c| match &which {
                Which::All => true,
                Which::Ids(ids) => ids.contains(&c.client_id),
                Which::Kind(kind) => kind.covers(c),
            });
            chosen
                .map(|c| {
                    (
                        c.client_id,
                        line::describe(c, local.id(), local.table(), now),
                    )
                })
                .collect::<Vec<_>>()
        },
        |_, lines, reply| {
            let mut lines: Vec<_> = lines.into_iter().flatten().collect();
            lines.sort_unstable();
            let text: String = lines
                .into_iter()
                .flat_map(|(_, line)| [line, "\n".into()])
                .collect();
            reply.verbatim(*b"txt", &text);
        },
    );
    Ok(())
}

fn parse(args: &Args<'_>) -> Result<Which, Failure> {
    match args.len() {
        2 => Ok(Which::All),
        4 if is(args.get(2), "TYPE") => Ok(Which::Kind(Kind::parse(args.get(3))?)),
        4.. if is(args.get(2), "ID") => {
            let ids = args.iter_from(3).map(|arg| {
                let id =
                    options::integer(arg).map_err(|_| Failure::from("ERR Invalid client ID"))?;
                u64::try_from(id).map_err(|_| Failure::from("ERR Invalid client ID"))
            });
            Ok(Which::Ids(ids.collect::<Result<_, _>>()?))
        }
        _ => Err(Failure::SYNTAX),
    }
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn connections_of_all_workers() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let other = rig.connect(workers - 1);
            rig.check_on(other, "CLIENT SETNAME other", "+OK\r\n");
            let all = rig.run("CLIENT LIST");
            assert!(
                all.contains(" name=other ") && all.contains(" cmd=client|list "),
                "{all}"
            );
            assert_eq!(all.matches(" laddr=").count(), 2, "{all}");
            let id = rig.run_on(other, "CLIENT ID");
            let one = rig.run(&format!(
                "CLIENT LIST ID {} 99",
                id.trim_matches([':', '\r', '\n'])
            ));
            assert!(
                one.contains(" name=other ") && one.matches("addr=").count() == 2,
                "{one}"
            );
            // Its worker, also where another one answers.
            assert!(
                one.ends_with(&format!(" worker={}\n\r\n", workers - 1)),
                "{one}"
            );
            rig.check("CLIENT LIST TYPE pubsub", "$0\r\n\r\n");
            assert_eq!(
                rig.run("CLIENT LIST TYPE Normal").matches("laddr=").count(),
                2
            );
        }
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        rig.check("CLIENT LIST ID", "-ERR syntax error\r\n");
        rig.check("CLIENT LIST ID x", "-ERR Invalid client ID\r\n");
        rig.check("CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'\r\n");
        rig.check("CLIENT LIST foo", "-ERR syntax error\r\n");
    }

    #[test]
    fn the_fields_of_a_line() {
        let mut rig = Rig::new(1);
        rig.run("PING");
        rig.advance_ms(2_500);
        let line = rig.run("CLIENT INFO");
        let body = line.split_once("\r\n").expect("a bulk").1;
        let names: Vec<_> = body
            .trim()
            .split(' ')
            .filter_map(|f| f.split_once('='))
            .map(|f| f.0)
            .collect();
        let expected = "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver worker";
        assert_eq!(names.join(" "), expected);
        assert!(
            body.starts_with("id=1 addr=127.0.0.1:")
                && body.contains(" age=2 idle=0 flags=N db=0 "),
            "{body}"
        );
    }
}
