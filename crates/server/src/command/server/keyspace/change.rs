//! KEYSPACE CREATE, ALTER and DROP.

use super::spec;
use crate::command::SessionCommand;
use crate::config::keyspaces;
use crate::front::session::Session;
use rufous_base::{Args, Output};
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Reply};
use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime, Resolve};

/// Held by every worker, and so not while others of a list hold keys.
const CHANGES: Flags = Flags::ADMIN
    .or(Flags::NOSCRIPT)
    .or(Flags::NO_MULTI)
    .or(Flags::WRITE);

pub static CREATE: SessionCommand = SessionCommand {
    spec: spec(
        "keyspace|create",
        -7,
        CHANGES,
        "name PREFIX prefix REGIME <LATTICE | STRICT> [LEVEL level] [THREADS <threads | ALL>] \
         [REPLICAS replicas] [RESOLVE <NEWEST | LARGEST | SMALLEST | REFUSE>] [CUT <YES | NO>] [EVICT <YES | NO>] [GOSSIP milliseconds]",
        "Makes a keyspace of all keys that begin with a prefix.",
    ),
    run: create,
};

pub static ALTER: SessionCommand = SessionCommand {
    spec: spec(
        "keyspace|alter",
        -5,
        CHANGES,
        "name [PREFIX prefix] [REGIME <LATTICE | STRICT>] [LEVEL level] [THREADS <threads | ALL>] \
         [REPLICAS replicas] [RESOLVE <NEWEST | LARGEST | SMALLEST | REFUSE>] [CUT <YES | NO>] [EVICT <YES | NO>] [GOSSIP milliseconds]",
        "Changes a keyspace, and converts its keys.",
    ),
    run: alter,
};

pub static DROP: SessionCommand = SessionCommand {
    spec: spec(
        "keyspace|drop",
        3,
        CHANGES,
        "name",
        "Removes a keyspace, but never its keys: one of regime lattice that has keys stays.",
    ),
    run: drop_keyspace,
};

fn create(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let mut keyspace = Keyspace::new(name(args.get(2))?, b"");
    let given = read_options(&mut keyspace, &args)?;
    for needed in ["prefix", "regime"] {
        if !given.contains(&needed) {
            let text = format!("ERR {} is missing", needed.to_uppercase());
            return Err(text.into());
        }
    }
    // A replica on every worker is what one asks for a lattice for.
    if keyspace.is_lattice() && !given.contains(&"threads") {
        keyspace.threads = 0;
    }
    change_table(session, reply, |table| {
        table.with(keyspace).map_err(|why| why.to_string())
    })
}

fn alter(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let name = name(args.get(2))?;
    let found = session.local.keyspaces().get(name).cloned();
    let mut keyspace = found.ok_or(Failure::from("ERR no such keyspace"))?;
    let (before, kept_siblings) = (keyspace.regime, keyspace.level.keeps_siblings());
    let given = read_options(&mut keyspace, &args)?;
    match (before, keyspace.regime) {
        (Regime::Lattice, Regime::Strict) => {
            // What only a lattice keyspace has, unless it was asked for.
            let plain = Keyspace::new("", b"");
            for (option, value) in keyspaces::options(&plain) {
                let of_lattice = ["level", "threads", "resolve", "cut"].contains(&option);
                if of_lattice && !given.contains(&option) {
                    keyspaces::set(&mut keyspace, option, &value).map_err(failure)?;
                }
            }
        }
        (Regime::Strict, Regime::Lattice) if !given.contains(&"threads") => keyspace.threads = 0,
        _ => {}
    }
    // What has several values only there is resolved, and so is the option.
    if kept_siblings && !keyspace.level.keeps_siblings() && !given.contains(&"resolve") {
        keyspace.resolve = Resolve::Newest;
    }
    change_table(session, reply, |table| {
        table.altered(keyspace).map_err(|why| why.to_string())
    })
}

fn drop_keyspace(
    session: &mut Session<'_>,
    args: Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let name = name(args.get(2))?;
    change_table(session, reply, |table| {
        table.without(name).map_err(|why| why.to_string())
    })
}

fn name(arg: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(arg).map_err(|_| Failure::from("ERR a keyspace's name is text"))
}

/// Reads what follows the name; returns which options were given.
fn read_options(keyspace: &mut Keyspace, args: &Args<'_>) -> Result<Vec<&'static str>, Failure> {
    let mut given = Vec::new();
    let mut at = 3;
    while at < args.len() {
        let word = args.get(at);
        let option = keyspaces::OPTIONS
            .into_iter()
            .find(|option| is(word, option) || *option == "gossip-ms" && is(word, "gossip"))
            .ok_or(Failure::SYNTAX)?;
        if given.contains(&option) {
            return Err(Failure::SYNTAX);
        }
        given.push(option);
        at += 1;
        // CUT may stand alone.
        let is_flag = |arg: &[u8]| is(arg, "yes") || is(arg, "no");
        if option == "cut" && (at == args.len() || !is_flag(args.get(at))) {
            keyspace.cut = true;
            continue;
        }
        if at == args.len() {
            return Err(Failure::SYNTAX);
        }
        keyspaces::set(keyspace, option, args.get(at)).map_err(failure)?;
        at += 1;
    }
    let is_cut_given = given.contains(&"cut");
    if let Some(why) = keyspaces::contradiction(keyspace, is_cut_given) {
        return Err(failure(why));
    }
    Ok(given)
}

/// Has all workers take over what `edit` makes of the table. The reply comes
/// when they have.
fn change_table(
    session: &mut Session<'_>,
    reply: &mut Reply<'_>,
    edit: impl FnOnce(&Keyspaces) -> Result<Keyspaces, String>,
) -> Result<(), Failure> {
    let before = session.local.keyspaces();
    let table = edit(before).map_err(failure)?;
    let is_lattice = before.has_lattice() || table.has_lattice();
    if let Some(failure) = session.local.refused_tables(is_lattice) {
        return Err(failure);
    }
    let mut done = Output::default();
    Reply::new(&mut done, false).ok();
    session.change_keyspaces(table, done, reply)
}

fn failure(why: String) -> Failure {
    format!("ERR {why}").into()
}
