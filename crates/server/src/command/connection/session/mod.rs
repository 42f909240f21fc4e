//! SESSION: a session that goes on at another connection, of any node.

#[cfg(test)]
mod tests;
mod token;

use crate::command::{SessionCommand, help};
use crate::front::catching_up::{self, Found, Late, Wanted};
use crate::front::local::Local;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::options::{is, unsigned};
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};
use rufous_kernel::replicate::vector::Vector;
use rufous_kernel::worker::Lack;
use std::fmt::Write;
use std::sync::Arc;
use token::Realm;

const DEFAULT_TIMEOUT_MS: u64 = 1_000;
const MOST_TIMEOUT_MS: u64 = 60_000;

const fn spec(name: &'static str, arity: i32, summary: &'static str) -> Spec {
    Spec {
        name,
        summary,
        since: "7.2.4",
        group: Group::Connection,
        complexity: "O(N) where N is the number of workers of all nodes",
        arity,
        flags: Flags::FAST
            .or(Flags::NOSCRIPT)
            .or(Flags::NO_MULTI)
            .or(Flags::AFTER_OTHERS),
        keys: Keys::None,
        syntax: "",
    }
}

pub static SESSION: SessionCommand = SessionCommand {
    spec: Spec {
        complexity: "",
        flags: Flags::CONTAINER,
        ..spec(
            "session",
            -2,
            "A container for commands on sessions that go on at other connections.",
        )
    },
    run: |_, _, _| Err(Failure::wrong_arity("session")),
};

pub static TOKEN: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "[TIMEOUT milliseconds]",
        ..spec(
            "session|token",
            -2,
            "Returns a token for all that the session has read and written of lattice keys.",
        )
    },
    run: token,
};

pub static RESUME: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "token [token ...] [TIMEOUT milliseconds]",
        ..spec(
            "session|resume",
            -3,
            "Waits until this connection shows all that sessions with these tokens have read and written of lattice keys.",
        )
    },
    run: resume,
};

pub static HELP: SessionCommand = SessionCommand {
    spec: Spec {
        complexity: "",
        flags: Flags::NONE,
        ..spec("session|help", 2, "Lists the subcommands.")
    },
    run: |session, _, reply| help::list_subcommands(session, "session", reply),
};

fn token(session: &mut Session<'_>, args: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    let (tokens, timeout_ms) = with_timeout(&args)?;
    if tokens > 0 {
        return Err(Failure::SYNTAX);
    }
    let realm = Realm::of(session.local.shared());
    let wanted = (Wanted::Seen, timeout_ms * 1000);
    catching_up::ask(session, wanted, move |_, found, reply| {
        let mut all = Vec::new();
        for found in found {
            match found {
                Found::Seen(vector) => all.push(vector),
                Found::Lacks(late) => return reply.error(&unknown(&late)),
                Found::Here { .. } => {}
            }
        }
        reply.bulk(&realm.encode(&Vector::joined(all)));
    });
    Ok(())
}

fn resume(session: &mut Session<'_>, args: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    let (tokens, timeout_ms) = with_timeout(&args)?;
    if tokens == 0 {
        return Err(Failure::SYNTAX);
    }
    let realm = Realm::of(session.local.shared());
    let all = args
        .iter_from(2)
        .take(tokens)
        .map(|text| realm.decode(text));
    let all: Result<Vec<Vector>, _> = all.collect();
    let all = all.map_err(|_| {
        Failure::from("ERR the token is not one of this cluster: give what SESSION TOKEN replied")
    })?;
    let seen = Wanted::Here(Arc::new(Vector::joined(all)));
    let wanted = (seen, timeout_ms * 1000);
    catching_up::ask(session, wanted, move |local, found, reply| {
        answer(local, &found, reply);
    });
    Ok(())
}

fn answer(local: &mut Local<'_>, found: &[Found], reply: &mut Reply<'_>) {
    let late = found.iter().find_map(|found| match found {
        Found::Lacks(late) => Some(late),
        _ => None,
    });
    match late {
        Some(late) => {
            local.note_session_behind();
            reply.error(&behind(late));
        }
        None => {
            let waited = Found::Here { waited: true };
            local.note_session_resumed(found.contains(&waited));
            reply.ok();
        }
    }
}

/// The number of arguments before the timeout, and the timeout.
fn with_timeout(args: &Args<'_>) -> Result<(usize, u64), Failure> {
    let count = args.len() - 2;
    if count < 2 || !is(args.get(args.len() - 2), "timeout") {
        return Ok((count, DEFAULT_TIMEOUT_MS));
    }
    let timeout_ms = unsigned(args.get(args.len() - 1))?;
    if timeout_ms > MOST_TIMEOUT_MS {
        let text = format!("ERR the timeout is at most {MOST_TIMEOUT_MS} milliseconds");
        return Err(text.into());
    }
    Ok((count - 2, timeout_ms))
}

fn unknown(late: &Late) -> Failure {
    let ms = late.waited_ms;
    let mut text = format!(
        "BEHIND for {ms} ms, this node could not tell what the session has seen: it compares its data with that of another node"
    );
    text += instead(late);
    text.into()
}

fn behind(late: &Late) -> Failure {
    let mut text = "BEHIND ".to_owned();
    match &late.lack {
        Lack::Unserved => {
            let ms = late.waited_ms;
            let _ = write!(
                text,
                "after {ms} ms, this node does not serve lattice keys yet (INFO cluster: cluster_lattice_waits)"
            );
        }
        Lack::Of(nodes) => {
            let ms = late.waited_ms;
            let _ = write!(text, "after {ms} ms, this node lacks changes");
            let mut word = " of";
            for (node, is_up) in nodes {
                let _ = match (node, is_up) {
                    (None, _) => write!(text, "{word} its other workers"),
                    (Some(node), true) => write!(text, "{word} n{node}"),
                    (Some(node), false) => {
                        write!(text, "{word} n{node}, which it does not reach")
                    }
                };
                word = " and of";
            }
        }
    }
    text += instead(late);
    text.into()
}

/// What the client can do.
fn instead(late: &Late) -> &'static str {
    match (late.stops, &late.lack) {
        (true, _) => ". It stops: try at another node",
        (false, Lack::Of(nodes)) if nodes.is_empty() => ". Try again",
        (false, _) => ". Try again, or at another node",
    }
}
