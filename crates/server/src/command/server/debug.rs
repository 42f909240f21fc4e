//! DEBUG: what test suites and benchmarks need to look inside. Off unless `enable-debug-command` allows
//! it, as in Redis.

use crate::command::{SessionCommand, help};
use crate::config::DebugCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static COMMANDS: &[&SessionCommand] = &[
    &DEBUG,
    &WORKER,
    &OWNER,
    &SLEEP,
    &SET_ACTIVE_EXPIRE,
    &ERROR,
    &HELP,
];

/// The longest text of an error made to order.
const LONGEST_ERROR: usize = 1024;

/// The longest sleep, so that a slip of the finger does not stop a worker for good.
const LONGEST_SLEEP_S: f64 = 86_400.0;

const NOT_ALLOWED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.";

const fn spec(
    name: &'static str,
    summary: &'static str,
    arity: i32,
    syntax: &'static str,
    flags: Flags,
) -> Spec {
    Spec {
        name,
        summary,
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity,
        flags: Flags::ADMIN
            .or(Flags::NOSCRIPT)
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(flags),
        keys: Keys::None,
        syntax,
    }
}

pub static DEBUG: SessionCommand = SessionCommand {
    spec: spec(
        "debug",
        "A container for debugging commands.",
        -2,
        "",
        Flags::CONTAINER,
    ),
    run: |_, _, _| Err(Failure::wrong_arity("debug")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec("debug|help", "Lists the subcommands.", 2, "", Flags::NONE),
    run: |session, _, reply| {
        allow(session)?;
        help::list_subcommands(session, "debug", reply)
    },
};

pub static WORKER: SessionCommand = SessionCommand {
    spec: spec(
        "debug|worker",
        "Returns the worker that serves this connection.",
        2,
        "",
        Flags::NONE,
    ),
    run: |session, _, reply| {
        allow(session)?;
        reply.integer(i64::from(session.local.id().0));
        Ok(())
    },
};

pub static OWNER: SessionCommand = SessionCommand {
    spec: spec(
        "debug|owner",
        "Returns the worker that owns a key.",
        3,
        "key",
        Flags::NONE,
    ),
    run: |session, args, reply| {
        allow(session)?;
        reply.integer(i64::from(session.local.owner(args.get(2)).0));
        Ok(())
    },
};

pub static SLEEP: SessionCommand = SessionCommand {
    spec: spec(
        "debug|sleep",
        "Blocks the worker of this connection.",
        3,
        "seconds",
        Flags::SLOW,
    ),
    run: sleep,
};

pub static ERROR: SessionCommand = SessionCommand {
    spec: spec(
        "debug|error",
        "Replies with an error, for testing clients.",
        3,
        "message",
        Flags::NONE,
    ),
    run: |session, args, _| {
        allow(session)?;
        let text = args.get(2);
        let text = &text[..text.len().min(LONGEST_ERROR)];
        Err(String::from_utf8_lossy(text).into_owned().into())
    },
};

pub static SET_ACTIVE_EXPIRE: SessionCommand = SessionCommand {
    spec: spec(
        "debug|set-active-expire",
        "Sets whether expired keys are removed actively (1) or only on access (0).",
        3,
        "<0 | 1>",
        Flags::NONE,
    ),
    run: |session, args, reply| {
        allow(session)?;
        let expire = match args.get(2) {
            b"0" => false,
            b"1" => true,
            _ => return Err(Failure::SYNTAX),
        };
        session.ask_all(
            reply,
            move |local, _| local.expire_by_itself(expire),
            |_, _, reply| reply.ok(),
        );
        Ok(())
    },
};

/// Refuses connections that may not use DEBUG.
fn allow(session: &mut Session<'_>) -> Result<(), Failure> {
    let setting = session.local.config().enable_debug_command;
    let info = &session.connection()?.info;
    let is_allowed = match setting {
        DebugCommand::Yes => true,
        DebugCommand::Local => info.is_local || info.is_internal(),
        DebugCommand::No => false,
    };
    if is_allowed {
        return Ok(());
    }
    Err(Failure::from(NOT_ALLOWED))
}

fn sleep(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    allow(session)?;
    let seconds = std::str::from_utf8(args.get(2))
        .ok()
        .and_then(|text| text.parse::<f64>().ok());
    let Some(seconds) = seconds.filter(|s| (0.0..=LONGEST_SLEEP_S).contains(s)) else {
        return Err(Failure::NOT_A_FLOAT);
    };
    let us = (seconds * 1e6) as u64;
    session.local.stall(us);
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::NOT_ALLOWED;
    use crate::config::{Config, DebugCommand};
    use crate::front::testing::Rig;
    use rufous_base::{ConnInfo, NodeEffect, Origin};

    #[test]
    fn it_is_off_unless_it_is_enabled_at_the_start() {
        let refused = format!("-{NOT_ALLOWED}\r\n");
        for (setting, here, elsewhere) in [
            (DebugCommand::No, false, false),
            (DebugCommand::Local, true, false),
            (DebugCommand::Yes, true, true),
        ] {
            let config = Config {
                enable_debug_command: setting,
                protected_mode: false,
                ..Config::in_memory()
            };
            let mut rig = Rig::exactly(1, config);
            let elsewhere_info = ConnInfo {
                peer: "203.0.113.5:1".into(),
                local: "203.0.113.6:6379".into(),
                is_local: false,
                origin: Origin::Client,
                certificate: None,
            };
            let clients = [rig.connect(0), rig.connect_as(0, elsewhere_info)];
            for (client, is_allowed) in clients.into_iter().zip([here, elsewhere]) {
                for line in [
                    "DEBUG HELP",
                    "DEBUG WORKER",
                    "DEBUG OWNER k",
                    "DEBUG SLEEP 0",
                    "DEBUG SET-ACTIVE-EXPIRE 1",
                    "DEBUG ERROR own",
                ] {
                    let reply = rig.run_on(client, line);
                    assert_eq!(reply == refused, !is_allowed, "{setting:?} {line}: {reply}");
                }
            }
            assert!(
                rig.run("CONFIG SET enable-debug-command maybe")
                    .contains("can't set immutable config")
            );
        }
    }

    #[test]
    fn sleep_asks_the_driver_and_shows_in_the_slow_log() {
        let mut rig = Rig::new(1);
        rig.check("DEBUG SLEEP 0.25", "+OK\r\n");
        assert_eq!(rig.node_effects, [NodeEffect::Stall(250_000)]);
        assert!(
            rig.run("SLOWLOG GET")
                .contains(":250000\r\n*3\r\n$5\r\nDEBUG\r\n$5\r\nSLEEP\r\n")
        );
        for bad in ["x", "-1", "nan", "inf", "1e9"] {
            rig.check(
                &format!("DEBUG SLEEP {bad}"),
                "-ERR value is not a valid float\r\n",
            );
        }
    }

    #[test]
    fn keys_stay_while_active_expiry_is_off() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            rig.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
            for key in ["a", "b", "c", "d"] {
                rig.check(&format!("SET {key} 1 PX 10"), "+OK\r\n");
            }
            rig.advance_ms(1000);
            rig.check("DBSIZE", ":4\r\n");
            rig.check("GET a", "$-1\r\n");
            rig.check("DEBUG SET-ACTIVE-EXPIRE 1", "+OK\r\n");
            rig.advance_ms(1000);
            rig.check("DBSIZE", ":0\r\n");
            rig.check("DEBUG SET-ACTIVE-EXPIRE 2", "-ERR syntax error\r\n");
        }
    }

    #[test]
    fn errors_to_order() {
        let mut rig = Rig::new(1);
        let client = rig.connect(0);
        rig.send(
            client,
            b"*3\r\n$5\r\nDEBUG\r\n$5\r\nERROR\r\n$15\r\nLOADING a\r\n-b c\r\n",
        );
        let reply = rig.take(client);
        assert!(
            reply.starts_with("-LOADING a") && reply.ends_with("-b c\r\n"),
            "{reply}"
        );
        assert_eq!(reply.matches("\r\n").count(), 1, "{reply}");
        let long = rig.run(&format!("DEBUG ERROR {}", "x".repeat(5000)));
        assert!(long.len() < 5000);
    }

    #[test]
    fn where_things_are() {
        let mut rig = Rig::new(3);
        let client = rig.connect(2);
        rig.check_on(client, "DEBUG WORKER", ":2\r\n");
        rig.check_on(client, "DEBUG OWNER foo", ":2\r\n");
        rig.check_on(client, "DEBUG OWNER 123456789", ":2\r\n");
        rig.check_on(client, "DEBUG OWNER a{foo}", ":2\r\n");
        assert!(rig.run("DEBUG HELP").contains("+SLEEP seconds\r\n"));
        rig.check(
            "DEBUG NOSUCH",
            "-ERR unknown subcommand 'NOSUCH'. Try DEBUG HELP.\r\n",
        );
    }
}
