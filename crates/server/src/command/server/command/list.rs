//! COMMAND LIST: the names of commands.

use super::{ALL, spec};
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::options::is;
use rufous_command::{Failure, Reply, Spec};
use rufous_datatype::glob::glob_match;

pub static LIST: SessionCommand = SessionCommand {
    spec: spec(
        "command|list",
        "7.0.0",
        -2,
        ALL,
        "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
        "Returns the names of commands.",
    ),
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let word = args.get(4);
    let chosen = |spec: &Spec| match args.get(3) {
        by if is(by, "PATTERN") => glob_match(word, spec.name.as_bytes(), true),
        by if is(by, "ACLCAT") => spec
            .categories()
            .iter()
            .any(|c| c.as_bytes()[1..].eq_ignore_ascii_case(word)),
        // There are no modules.
        _ => args.len() == 2,
    };
    let filter_known = ["MODULE", "ACLCAT", "PATTERN"]
        .into_iter()
        .any(|by| is(args.get(3), by));
    if args.len() != 2 && !(args.len() == 5 && is(args.get(2), "FILTERBY") && filter_known) {
        return Err(Failure::SYNTAX);
    }
    let specs = session.local.table().specs().map(|(_, spec)| spec);
    let names: Vec<_> = specs
        .filter(|spec| chosen(spec))
        .map(|spec| spec.name)
        .collect();
    reply.array(names.len());
    names
        .into_iter()
        .for_each(|name| reply.bulk(name.as_bytes()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn filters() {
        let mut rig = Rig::new(1);
        let all = rig.run("COMMAND LIST");
        assert!(
            all.contains("$3\r\nget\r\n") && all.contains("$10\r\nconfig|get\r\n"),
            "{all}"
        );
        rig.check("COMMAND LIST FILTERBY PATTERN PIN*", "*1\r\n$4\r\nping\r\n");
        rig.check("COMMAND LIST FILTERBY MODULE m", "*0\r\n");
        rig.check("COMMAND LIST FILTERBY ACLCAT nosuch", "*0\r\n");
        let connection = rig.run("COMMAND LIST FILTERBY ACLCAT connection");
        assert!(connection.contains("$4\r\nauth\r\n") && !connection.contains("$3\r\nget\r\n"));
        rig.check("COMMAND LIST foo", "-ERR syntax error\r\n");
        rig.check("COMMAND LIST FILTERBY foo bar", "-ERR syntax error\r\n");
    }
}
