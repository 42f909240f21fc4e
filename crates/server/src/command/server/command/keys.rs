//! COMMAND GETKEYS, COMMAND GETKEYSANDFLAGS: the keys of a whole request.

use super::{access, spec};
use crate::command::SessionCommand;
use crate::command::connection::quiet;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Keys, Spec, Table};

const SYNTAX: &str = "command [arg [arg ...]]";
const COST: &str = "O(N) where N is the number of arguments";

pub static GETKEYS: SessionCommand = SessionCommand {
    spec: spec(
        "command|getkeys",
        "2.8.13",
        -3,
        COST,
        SYNTAX,
        "Returns the keys of a request.",
    ),
    run: |session, args, reply| {
        let (_, _, keys) = keys_of(session, &args)?;
        reply.array(keys.len());
        keys.into_iter().for_each(|at| reply.bulk(args.get(at)));
        Ok(())
    },
};

pub static GETKEYSANDFLAGS: SessionCommand = SessionCommand {
    spec: spec(
        "command|getkeysandflags",
        "7.0.0",
        -3,
        COST,
        SYNTAX,
        "Returns the keys of a request, and how it treats them.",
    ),
    run: |session, args, reply| {
        let (spec, first, keys) = keys_of(session, &args)?;
        reply.array(keys.len());
        for (nth, at) in keys.into_iter().enumerate() {
            reply.array(2);
            reply.bulk(args.get(at));
            let how = access::of_request(spec, nth, &args, first);
            reply.set(how.len());
            how.iter().for_each(|flag| reply.simple(flag));
        }
        Ok(())
    },
};

/// The command of the request that starts at argument 2, after `QUIET` if that is there, where it starts
/// then, and where among the arguments its keys stand.
fn keys_of(
    session: &Session<'_>,
    args: &Args<'_>,
) -> Result<(&'static Spec, usize, Vec<usize>), Failure> {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    // Of a quiet request, the keys of what follows.
    let first = match quiet::NAME.eq_ignore_ascii_case(args.get(2)) && args.len() > 3 {
        true => 3,
        false => 2,
    };
    for arg in args.iter_from(first) {
        spans.push((bytes.len() as u32, arg.len() as u32));
        bytes.extend_from_slice(arg);
    }
    let request = Args::new(&bytes, &spans, &mut []);
    let spec = resolve(session.local.table(), &request)
        .ok_or(Failure::from("ERR Invalid command specified"))?;
    if matches!(spec.keys, Keys::None) {
        return Err(Failure::from("ERR The command has no key arguments"));
    }
    if !spec.accepts(request.len()) {
        return Err(Failure::from(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let mut found = Vec::new();
    spec.keys.find(&request, 0, &mut found);
    if found.is_empty() {
        return Err(Failure::from("ERR Invalid arguments specified for command"));
    }
    Ok((
        spec,
        first,
        found
            .into_iter()
            .map(|(_, at)| at as usize + first)
            .collect(),
    ))
}

fn resolve(table: &Table, request: &Args<'_>) -> Option<&'static Spec> {
    let id = table.find(request.get(0))?;
    if table.spec(id).flags.has(Flags::CONTAINER) && request.len() > 1 {
        return Some(table.spec(table.find_sub(id, request.get(1))?));
    }
    Some(table.spec(id))
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn keys_with_and_without_flags() {
        let mut rig = Rig::new(1);
        rig.check("COMMAND GETKEYS GET a", "*1\r\n$1\r\na\r\n");
        rig.check("COMMAND GETKEYS set a b EX 1", "*1\r\n$1\r\na\r\n");
        rig.check(
            "COMMAND GETKEYSANDFLAGS GET a",
            "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n",
        );
        rig.check(
            "COMMAND GETKEYS nosuch a",
            "-ERR Invalid command specified\r\n",
        );
        rig.check(
            "COMMAND GETKEYS config nosuch",
            "-ERR Invalid command specified\r\n",
        );
        rig.check(
            "COMMAND GETKEYS config get x",
            "-ERR The command has no key arguments\r\n",
        );
        rig.check(
            "COMMAND GETKEYS get a b",
            "-ERR Invalid number of arguments specified for command\r\n",
        );
        rig.check(
            "COMMAND GETKEYS",
            "-ERR wrong number of arguments for 'command|getkeys' command\r\n",
        );
    }
}
