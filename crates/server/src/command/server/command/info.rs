//! COMMAND INFO: arity, flags and key positions, for clients that route.

use super::{ALL, access, spec, subcommands, top_level};
use crate::command::SessionCommand;
use rufous_command::{Keys, Reply, Spec, Table};

pub static INFO: SessionCommand = SessionCommand {
    spec: spec(
        "command|info",
        "2.8.13",
        -2,
        ALL,
        "[command-name [command-name ...]]",
        "Describes commands.",
    ),
    run: |session, args, reply| {
        let table: &Table = session.local.table();
        if args.len() == 2 {
            describe_all(table, reply);
            return Ok(());
        }
        reply.array(args.len() - 2);
        for name in args.iter_from(2) {
            match table.find(name) {
                Some(id) => describe(table, table.spec(id), reply),
                None => reply.null(),
            }
        }
        Ok(())
    },
};

pub(super) fn describe_all(table: &Table, reply: &mut Reply<'_>) {
    reply.array(top_level(table).count());
    top_level(table).for_each(|spec| describe(table, spec, reply));
}

fn describe(table: &Table, spec: &'static Spec, reply: &mut Reply<'_>) {
    let (first, last, step) = match spec.keys {
        Keys::None => (0, 0, 0),
        Keys::Range { first, last, step } => (first, last, step),
        Keys::Custom { shown, .. } | Keys::Open { shown, .. } => shown,
    };
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(i64::from(spec.arity));
    names(spec.flags.names().collect(), reply);
    reply.integer(i64::from(first));
    reply.integer(i64::from(last));
    reply.integer(i64::from(step));
    names(spec.categories(), reply);
    reply.set(0);
    key_specs(spec, reply);
    let subcommands: Vec<_> = subcommands(table, spec).collect();
    reply.array(subcommands.len());
    subcommands
        .into_iter()
        .for_each(|sub| describe(table, sub, reply));
}

fn names(names: Vec<&str>, reply: &mut Reply<'_>) {
    reply.set(names.len());
    names.into_iter().for_each(|name| reply.simple(name));
}

fn key_specs(spec: &Spec, reply: &mut Reply<'_>) {
    if matches!(spec.keys, Keys::None) {
        return reply.set(0);
    }
    reply.set(1);
    reply.map(3);
    reply.bulk(b"flags");
    names(access::of(spec, 0).to_vec(), reply);
    let range = match spec.keys {
        // The last key as counted from the first, or from the end.
        Keys::Range { first, last, step } => Some((
            first,
            if last < 0 {
                last
            } else {
                last - i16::from(first)
            },
            step,
        )),
        Keys::None | Keys::Custom { .. } | Keys::Open { .. } => None,
    };
    reply.bulk(b"begin_search");
    match range {
        Some((first, ..)) => kind("index", &[("index", i64::from(first))], reply),
        None => kind("unknown", &[], reply),
    }
    reply.bulk(b"find_keys");
    match range {
        Some((_, last, step)) => {
            let fields = [
                ("lastkey", i64::from(last)),
                ("keystep", i64::from(step)),
                ("limit", 0),
            ];
            kind("range", &fields, reply);
        }
        None => kind("unknown", &[], reply),
    }
}

fn kind(name: &str, fields: &[(&str, i64)], reply: &mut Reply<'_>) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(name.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn the_form_is_that_of_redis() {
        let mut rig = Rig::new(1);
        // As redis-server 7 answers.
        let get = "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n";
        rig.check("COMMAND INFO GET", &format!("*1\r\n{get}"));
        rig.check("COMMAND INFO nosuch", "*1\r\n$-1\r\n");
        let config = rig.run("COMMAND INFO config");
        assert!(
            config.starts_with("*1\r\n*10\r\n$6\r\nconfig\r\n:-2\r\n"),
            "{config}"
        );
        assert!(config.contains("$10\r\nconfig|set\r\n:-4\r\n"), "{config}");
        rig.run("HELLO 3");
        assert!(
            rig.run("COMMAND INFO set")
                .contains("~2\r\n+write\r\n+denyoom\r\n")
        );
    }
}
