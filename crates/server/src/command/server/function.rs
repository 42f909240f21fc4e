//! FUNCTION: libraries of functions, of which a node has none as it runs no scripts. What clients
//! ask of an empty collection is answered: it can be listed and emptied.

use crate::command::{SessionCommand, help};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static COMMANDS: &[&SessionCommand] = &[&FUNCTION, &FLUSH, &LIST, &HELP];

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
        group: Group::Scripting,
        complexity: "O(1)",
        arity,
        flags,
        keys: Keys::None,
        syntax,
    }
}

pub static FUNCTION: SessionCommand = SessionCommand {
    spec: spec(
        "function",
        -2,
        Flags::CONTAINER,
        "",
        "A container for commands on functions.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("function")),
};

pub static FLUSH: SessionCommand = SessionCommand {
    spec: spec(
        "function|flush",
        -2,
        Flags::WRITE.or(Flags::NOSCRIPT),
        "[ASYNC | SYNC]",
        "Removes all libraries. Functions are not supported, so this has no effect.",
    ),
    run: flush,
};

pub static LIST: SessionCommand = SessionCommand {
    spec: spec(
        "function|list",
        -2,
        Flags::NOSCRIPT,
        "[LIBRARYNAME library-name-pattern] [WITHCODE]",
        "Lists the libraries. Functions are not supported, so the list is empty.",
    ),
    run: list,
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "function|help",
        2,
        Flags::LOADING.or(Flags::STALE),
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "function", reply),
};

fn flush(_: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let known = match args.len() {
        2 => true,
        3 => [&b"ASYNC"[..], b"SYNC"]
            .iter()
            .any(|mode| args.get(2).eq_ignore_ascii_case(mode)),
        _ => false,
    };
    if !known {
        return Err(Failure::from(
            "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
        ));
    }
    reply.ok();
    Ok(())
}

fn list(_: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (mut named, mut with_code) = (false, false);
    let mut at = 2;
    while at < args.len() {
        let option = args.get(at);
        if !with_code && option.eq_ignore_ascii_case(b"WITHCODE") {
            with_code = true;
        } else if !named && option.eq_ignore_ascii_case(b"LIBRARYNAME") {
            at += 1;
            if at == args.len() {
                return Err(Failure::from("ERR library name argument was not given"));
            }
            named = true;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    reply.array(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn there_are_no_functions_to_remove() {
        let mut rig = Rig::new(1);
        for request in [
            "FUNCTION FLUSH",
            "FUNCTION flush async",
            "FUNCTION FLUSH SYNC",
        ] {
            rig.check(request, "+OK\r\n");
        }
        for request in ["FUNCTION FLUSH now", "FUNCTION FLUSH SYNC ASYNC"] {
            rig.check(
                request,
                "-ERR FUNCTION FLUSH only supports SYNC|ASYNC option\r\n",
            );
        }
    }

    #[test]
    fn there_are_no_functions_to_list() {
        let mut rig = Rig::new(1);
        for request in [
            "FUNCTION LIST",
            "FUNCTION LIST WITHCODE LIBRARYNAME lib*",
            "FUNCTION LIST libraryname a withcode",
        ] {
            rig.check(request, "*0\r\n");
        }
        rig.check(
            "FUNCTION LIST LIBRARYNAME",
            "-ERR library name argument was not given\r\n",
        );
        for request in [
            "FUNCTION LIST a",
            "FUNCTION LIST WITHCODE WITHCODE",
            "FUNCTION LIST LIBRARYNAME a LIBRARYNAME b",
        ] {
            rig.check(request, "-ERR syntax error\r\n");
        }
    }

    #[test]
    fn none_can_be_loaded() {
        Rig::new(1).check(
            "FUNCTION LOAD code",
            "-ERR unknown subcommand 'LOAD'. Try FUNCTION HELP.\r\n",
        );
    }
}
