//! CLIENT ID, GETNAME, SETNAME, SETINFO: who a client is and says it is.

use super::super::spec;
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Reply};

pub static ID: SessionCommand = SessionCommand {
    spec: spec(
        "client|id",
        "5.0.0",
        2,
        Flags::NOSCRIPT.or(Flags::UNPAUSED).or(Flags::LOCAL),
        "",
        "Returns the number of the connection.",
    ),
    run: |session, _, reply| {
        reply.integer(session.connection()?.client_id as i64);
        Ok(())
    },
};

pub static GETNAME: SessionCommand = SessionCommand {
    spec: spec(
        "client|getname",
        "2.6.9",
        2,
        Flags::NOSCRIPT.or(Flags::UNPAUSED).or(Flags::LOCAL),
        "",
        "Returns the name of the connection.",
    ),
    run: |session, _, reply| {
        match &session.connection()?.name[..] {
            [] => reply.null(),
            name => reply.bulk(name),
        }
        Ok(())
    },
};

pub static SETNAME: SessionCommand = SessionCommand {
    spec: spec(
        "client|setname",
        "2.6.9",
        3,
        Flags::NOSCRIPT.or(Flags::UNPAUSED).or(Flags::LOCAL),
        "connection-name",
        "Names the connection; the empty name takes the name away.",
    ),
    run: |session, args, reply| {
        check_name(args.get(2))?;
        session.connection()?.name = args.get(2).to_vec();
        reply.ok();
        Ok(())
    },
};

pub static SETINFO: SessionCommand = SessionCommand {
    spec: spec(
        "client|setinfo",
        "7.2.0",
        4,
        Flags::NOSCRIPT.or(Flags::UNPAUSED).or(Flags::LOCAL),
        "<LIB-NAME libname | LIB-VER libver>",
        "Sets the name or version of the client's library.",
    ),
    run: set_info,
};

fn set_info(
    session: &mut Session<'_>,
    args: Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let (option, value) = (args.get(2), args.get(3));
    let connection = session.connection()?;
    let (field, name) = if is(option, "LIB-NAME") {
        (&mut connection.lib_name, "lib-name")
    } else if is(option, "LIB-VER") {
        (&mut connection.lib_version, "lib-ver")
    } else {
        let option = String::from_utf8_lossy(&option[..option.len().min(128)]);
        return Err(format!("ERR Unrecognized option '{option}'").into());
    };
    if !is_printable(value) {
        return Err(
            format!("ERR {name} cannot contain spaces, newlines or special characters.").into(),
        );
    }
    *field = value.to_vec();
    reply.ok();
    Ok(())
}

/// A name stands in lines of text between blanks.
fn is_printable(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

pub(in super::super) fn check_name(name: &[u8]) -> Result<(), Failure> {
    if is_printable(name) {
        return Ok(());
    }
    Err(Failure::from(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn names() {
        let mut rig = Rig::new(1);
        rig.check("CLIENT GETNAME", "$-1\r\n");
        rig.check("CLIENT SETNAME me", "+OK\r\n");
        rig.check("CLIENT GETNAME", "$2\r\nme\r\n");
        rig.check("CLIENT SETNAME \"\"", "+OK\r\n");
        rig.check("CLIENT GETNAME", "$-1\r\n");
        let refusal =
            b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
        assert_eq!(rig.run_words(&[b"CLIENT", b"SETNAME", b"a b"]), refusal);
    }

    #[test]
    fn libraries() {
        let mut rig = Rig::new(1);
        rig.check("CLIENT SETINFO lib-name redis-py", "+OK\r\n");
        rig.check("CLIENT SETINFO LIB-VER 8.1", "+OK\r\n");
        rig.check(
            "CLIENT SETINFO FOO bar",
            "-ERR Unrecognized option 'FOO'\r\n",
        );
        let reply = rig.run_words(&[b"CLIENT", b"SETINFO", b"LIB-NAME", b"a\nb"]);
        assert_eq!(
            reply,
            b"-ERR lib-name cannot contain spaces, newlines or special characters.\r\n"
        );
        assert!(
            rig.run("CLIENT INFO")
                .contains(" lib-name=redis-py lib-ver=8.1 ")
        );
    }

    #[test]
    fn numbers_differ_over_all_workers() {
        let mut rig = Rig::new(3);
        let mut seen = std::collections::BTreeSet::new();
        for worker in [0, 1, 2, 2, 1, 0] {
            let client = rig.connect(worker);
            assert!(seen.insert(rig.run_on(client, "CLIENT ID")));
        }
    }
}
