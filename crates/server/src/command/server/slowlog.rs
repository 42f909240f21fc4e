//! SLOWLOG: commands that took long, of all workers.

use crate::command::{SessionCommand, help};
use crate::front::session::Session;
use crate::front::slow::Entry;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec, options};

pub static COMMANDS: &[&SessionCommand] = &[&SLOWLOG, &GET, &LEN, &RESET, &HELP];

/// Entries that `SLOWLOG GET` returns unless told otherwise.
const SHOWN: usize = 10;

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
        since: "2.2.12",
        group: Group::Server,
        complexity: "O(N) where N is the number of entries",
        arity,
        flags: Flags::LOADING.or(Flags::STALE).or(flags),
        keys: Keys::None,
        syntax,
    }
}

pub static SLOWLOG: SessionCommand = SessionCommand {
    spec: spec(
        "slowlog",
        -2,
        Flags::CONTAINER,
        "",
        "A container for the log of slow commands.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("slowlog")),
};

pub static GET: SessionCommand = SessionCommand {
    spec: spec(
        "slowlog|get",
        -2,
        Flags::ADMIN,
        "[count]",
        "Returns slow commands, the newest first; -1: all.",
    ),
    run: get,
};

pub static LEN: SessionCommand = SessionCommand {
    spec: spec(
        "slowlog|len",
        2,
        Flags::ADMIN,
        "",
        "Returns the number of entries.",
    ),
    run: |session, _, reply| {
        session.ask_all(
            reply,
            |local, _| local.slow().entries.len(),
            |local, lens, reply| {
                reply.count(
                    lens.into_iter()
                        .sum::<usize>()
                        .min(local.config().slowlog_max_len),
                )
            },
        );
        Ok(())
    },
};

pub static RESET: SessionCommand = SessionCommand {
    spec: spec("slowlog|reset", 2, Flags::ADMIN, "", "Removes all entries."),
    run: |session, _, reply| {
        session.ask_all(
            reply,
            |local, _| local.slow().entries.clear(),
            |_, _, reply| reply.ok(),
        );
        Ok(())
    },
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec("slowlog|help", 2, Flags::NONE, "", "Lists the subcommands."),
    run: |session, _, reply| help::list_subcommands(session, "slowlog", reply),
};

fn get(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let refused = || Failure::from("ERR count should be greater than or equal to -1");
    let count = match args.len() {
        2 => SHOWN,
        3 => match options::integer(args.get(2)).map_err(|_| refused())? {
            -1 => usize::MAX,
            count => usize::try_from(count).map_err(|_| refused())?,
        },
        _ => return Err(Failure::wrong_arity("slowlog|get")),
    };
    session.ask_all(
        reply,
        move |local, _| {
            local
                .slow()
                .entries
                .iter()
                .take(count)
                .cloned()
                .collect::<Vec<_>>()
        },
        move |local, entries, reply| {
            let mut entries: Vec<Entry> = entries.into_iter().flatten().collect();
            entries.sort_by_key(|entry| std::cmp::Reverse((entry.unix_us, entry.id)));
            entries.truncate(count.min(local.config().slowlog_max_len));
            reply.array(entries.len());
            entries.iter().for_each(|entry| show(entry, reply));
        },
    );
    Ok(())
}

fn show(entry: &Entry, reply: &mut Reply<'_>) {
    reply.array(6);
    reply.integer(entry.id as i64);
    reply.integer((entry.unix_us / 1_000_000) as i64);
    reply.integer(entry.duration_us as i64);
    reply.array(entry.args.len());
    entry.args.iter().for_each(|arg| reply.bulk(arg));
    reply.bulk(entry.client.as_bytes());
    reply.bulk(&entry.client_name);
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    fn logging_everything(workers: usize) -> Rig {
        let mut rig = Rig::new(workers);
        rig.check("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
        rig.check("SLOWLOG RESET", "+OK\r\n");
        rig
    }

    #[test]
    fn entries_of_all_workers_newest_first() {
        for workers in [1, 3] {
            let mut rig = logging_everything(workers);
            rig.run("CLIENT SETNAME me");
            let other = rig.connect(workers - 1);
            rig.advance_ms(1);
            rig.run_on(other, "PING one");
            rig.advance_ms(1);
            rig.run("PING two");
            rig.run("CONFIG SET slowlog-log-slower-than -1");
            let all = rig.run("SLOWLOG GET -1");
            let at = |word: &str| all.find(word).unwrap_or_else(|| panic!("{word} in {all}"));
            assert!(at("two") < at("one") && at("one") < at("SETNAME"), "{all}");
            assert!(all.contains("$2\r\nme\r\n"), "{all}");
            let newest = rig.run("SLOWLOG GET 2");
            assert!(
                newest.starts_with("*2\r\n*6\r\n") && newest.contains("two"),
                "{newest}"
            );
            assert!(!newest.contains("SETNAME"), "{newest}");
            rig.check("SLOWLOG RESET", "+OK\r\n");
            rig.check("SLOWLOG LEN", ":0\r\n");
        }
    }

    #[test]
    fn commands_on_keys_of_other_workers_are_logged() {
        let mut rig = logging_everything(3);
        for worker in 0..3 {
            let client = rig.connect(worker);
            for key in ["a", "b", "c", "d", "e", "f"] {
                rig.run_on(client, &format!("GET {key}{worker}"));
            }
        }
        let log = rig.run("SLOWLOG GET -1");
        for worker in 0..3 {
            for key in ["a", "b", "c", "d", "e", "f"] {
                let entry = format!("*2\r\n$3\r\nGET\r\n$2\r\n{key}{worker}\r\n");
                assert_eq!(log.matches(&entry).count(), 1, "{key}{worker} in {log}");
            }
        }
    }

    #[test]
    fn the_log_is_bounded_and_long_arguments_are_cut() {
        let mut rig = logging_everything(1);
        rig.check("CONFIG SET slowlog-max-len 3", "+OK\r\n");
        for _ in 0..10 {
            rig.run("PING");
        }
        rig.check("SLOWLOG LEN", ":3\r\n");
        rig.run(&format!("SET k {}", "x".repeat(130)));
        let log = rig.run("SLOWLOG GET 1");
        assert!(log.contains("x... (2 more bytes)\r\n"), "{log}");
        rig.run(&format!("COMMAND INFO {}", "k ".repeat(39).trim_end()));
        assert!(
            rig.run("SLOWLOG GET 1")
                .contains("... (10 more arguments)\r\n")
        );
    }

    #[test]
    fn passwords_are_not_logged() {
        let mut rig = logging_everything(1);
        rig.run("CONFIG SET requirepass secret");
        rig.run("AUTH secret");
        let log = rig.run("SLOWLOG GET -1");
        assert!(
            !log.contains("secret") && log.contains("(redacted)"),
            "{log}"
        );
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        rig.check(
            "SLOWLOG GET x",
            "-ERR count should be greater than or equal to -1\r\n",
        );
        rig.check(
            "SLOWLOG GET -2",
            "-ERR count should be greater than or equal to -1\r\n",
        );
        rig.check("SLOWLOG GET", "*0\r\n");
    }
}
