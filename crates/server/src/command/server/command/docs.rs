//! COMMAND DOCS: the documentation of commands, as `redis-cli` shows it.

use super::syntax::{Argument, Kind, parse};
use super::{ALL, spec, subcommands, top_level};
use crate::command::SessionCommand;
use rufous_command::{Keys, Reply, Spec, Table};

pub static DOCS: SessionCommand = SessionCommand {
    spec: spec(
        "command|docs",
        "7.0.0",
        -2,
        ALL,
        "[command-name [command-name ...]]",
        "Returns the documentation of commands.",
    ),
    run: |session, args, reply| {
        let table: &Table = session.local.table();
        let specs: Vec<&'static Spec> = if args.len() == 2 {
            top_level(table).collect()
        } else {
            args.iter_from(2)
                .filter_map(|name| Some(table.spec(table.find(name)?)))
                .collect()
        };
        reply.map(specs.len());
        specs
            .into_iter()
            .for_each(|spec| document(table, spec, reply));
        Ok(())
    },
};

fn document(table: &Table, spec: &'static Spec, reply: &mut Reply<'_>) {
    let arguments = parse(spec.syntax);
    let subcommands: Vec<_> = subcommands(table, spec).collect();
    reply.bulk(spec.name.as_bytes());
    reply.map(4 + usize::from(!arguments.is_empty()) + usize::from(!subcommands.is_empty()));
    let texts = [
        ("summary", spec.summary),
        ("since", spec.since),
        ("group", spec.group.name()),
        ("complexity", spec.complexity),
    ];
    texts
        .into_iter()
        .for_each(|(name, text)| field(name, text, reply));
    if !arguments.is_empty() {
        let has_keys = !matches!(spec.keys, Keys::None);
        reply.bulk(b"arguments");
        reply.array(arguments.len());
        arguments
            .iter()
            .for_each(|argument| show(argument, has_keys, reply));
    }
    if !subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        subcommands
            .into_iter()
            .for_each(|sub| document(table, sub, reply));
    }
}

fn field(name: &str, text: &str, reply: &mut Reply<'_>) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

fn show(argument: &Argument, has_keys: bool, reply: &mut Reply<'_>) {
    let is_key = has_keys && argument.kind == Kind::Key;
    let kind = if argument.kind == Kind::Key && !has_keys {
        Kind::String
    } else {
        argument.kind
    };
    let is_leaf = argument.arguments.is_empty();
    let flags = [
        (argument.optional, "optional"),
        (argument.multiple, "multiple"),
    ];
    let flags: Vec<_> = flags
        .into_iter()
        .filter(|(on, _)| *on)
        .map(|(_, name)| name)
        .collect();
    let extras = [
        is_leaf,
        is_key,
        argument.token.is_some(),
        !flags.is_empty(),
        !is_leaf,
    ];
    reply.map(2 + extras.into_iter().filter(|present| *present).count());
    field("name", &argument.name, reply);
    field("type", kind.name(), reply);
    if is_leaf {
        field("display_text", &argument.name, reply);
    }
    if is_key {
        reply.bulk(b"key_spec_index");
        reply.integer(0);
    }
    if let Some(token) = &argument.token {
        field("token", token, reply);
    }
    if !flags.is_empty() {
        reply.bulk(b"flags");
        reply.set(flags.len());
        flags.into_iter().for_each(|flag| reply.simple(flag));
    }
    if !is_leaf {
        reply.bulk(b"arguments");
        reply.array(argument.arguments.len());
        argument
            .arguments
            .iter()
            .for_each(|inner| show(inner, has_keys, reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::Rig;

    #[test]
    fn one_command() {
        let mut rig = Rig::new(1);
        let expected = "*2\r\n$4\r\necho\r\n*10\r\n$7\r\nsummary\r\n$20\r\nReturns the message.\r\n$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n$10\r\ncomplexity\r\n$4\r\nO(1)\r\n$9\r\narguments\r\n*1\r\n*6\r\n$4\r\nname\r\n$7\r\nmessage\r\n$4\r\ntype\r\n$6\r\nstring\r\n$12\r\ndisplay_text\r\n$7\r\nmessage\r\n";
        rig.check("COMMAND DOCS ECHO nosuch", expected);
        assert!(
            rig.run("COMMAND DOCS GET")
                .ends_with("$14\r\nkey_spec_index\r\n:0\r\n")
        );
        rig.check("COMMAND DOCS nosuch", "*0\r\n");
        let config = rig.run("COMMAND DOCS config");
        assert!(
            config.contains("subcommands\r\n*") && config.contains("$10\r\nconfig|get\r\n"),
            "{config}"
        );
    }

    #[test]
    fn every_command_is_documented_in_whole_replies() {
        let mut rig = Rig::new(1);
        for hello in ["HELLO 2", "HELLO 3"] {
            rig.run(hello);
            let reply = rig.run("COMMAND DOCS");
            assert_eq!(
                rufous_resp::skip_reply(reply.as_bytes()),
                Ok(Some(reply.len()))
            );
        }
        for (_, spec) in crate::command::table().specs() {
            assert!(
                !spec.summary.is_empty() && !spec.since.is_empty(),
                "{}",
                spec.name
            );
            let takes_none = spec.arity.unsigned_abs() as usize == spec.name.split('|').count()
                && spec.arity > 0;
            assert_eq!(
                takes_none,
                spec.arity > 0 && parse(spec.syntax).is_empty(),
                "{}",
                spec.name
            );
        }
    }
}
