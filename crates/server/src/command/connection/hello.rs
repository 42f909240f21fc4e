//! HELLO: the version of the protocol, and on the way password and name.

use super::{auth, client, spec};
use crate::command::SessionCommand;
use crate::front::session::Session;
use crate::identity;
use rufous_base::Args;
use rufous_command::options::{self, is};
use rufous_command::{Failure, Flags, Reply};
use rufous_resp::Proto;

const LOG_IN_FIRST: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";

pub static HELLO: SessionCommand = SessionCommand {
    spec: spec(
        "hello",
        "6.0.0",
        -1,
        Flags::FAST
            .or(Flags::NOSCRIPT)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::LOCAL)
            .or(Flags::SECRET_AUTH),
        "[protover [AUTH username password] [SETNAME clientname]]",
        "Greets the server: chooses the protocol's version, authenticates and names the connection.",
    ),
    run,
};

#[derive(Default)]
struct Wanted<'a> {
    resp3: Option<bool>,
    user: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let wanted = parse(&args)?;
    if let Some((user, password)) = wanted.user {
        auth::authenticate(session, user, password)?;
    }
    let connection = session.connection()?;
    if !connection.authenticated {
        return Err(Failure::from(LOG_IN_FIRST));
    }
    if let Some(name) = wanted.name {
        connection.name = name.to_vec();
    }
    if let Some(resp3) = wanted.resp3 {
        connection.resp3 = resp3;
    }
    reply.proto = if connection.resp3 {
        Proto::Resp3
    } else {
        Proto::Resp2
    };
    let (id, version) = (connection.client_id, if connection.resp3 { 3 } else { 2 });
    let mode = connection.door().mode();
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(identity::PROTOCOL_NAME.as_bytes());
    reply.bulk(b"version");
    reply.bulk(identity::REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(version);
    reply.bulk(b"id");
    reply.integer(id as i64);
    reply.bulk(b"mode");
    reply.bulk(mode.as_bytes());
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

fn parse<'a>(args: &'a Args<'_>) -> Result<Wanted<'a>, Failure> {
    let mut wanted = Wanted::default();
    if args.len() > 1 {
        wanted.resp3 = Some(match options::integer(args.get(1)) {
            Ok(2) => false,
            Ok(3) => true,
            Ok(_) => return Err(Failure::from("NOPROTO unsupported protocol version")),
            Err(_) => {
                return Err(Failure::from(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        });
    }
    let mut at = 2;
    while at < args.len() {
        let word = args.get(at);
        let more = args.len() - 1 - at;
        if is(word, "AUTH") && more >= 2 {
            wanted.user = Some((args.get(at + 1), args.get(at + 2)));
            at += 3;
        } else if is(word, "SETNAME") && more >= 1 {
            client::identity::check_name(args.get(at + 1))?;
            wanted.name = Some(args.get(at + 1));
            at += 2;
        } else {
            let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
            return Err(format!("ERR Syntax error in HELLO option '{word}'").into());
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::Rig;

    #[test]
    fn both_versions_in_the_order_of_fields() {
        let mut rig = Rig::new(1);
        let fields = |proto: u8| {
            format!(
                "$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$5\r\nproto\r\n:{proto}\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
            )
        };
        rig.check("HELLO", &format!("*14\r\n{}", fields(2)));
        rig.check("HELLO 3", &format!("%7\r\n{}", fields(3)));
        rig.check("GET none", "_\r\n");
        rig.check("HELLO", &format!("%7\r\n{}", fields(3)));
        rig.check("HELLO 2 SETNAME me", &format!("*14\r\n{}", fields(2)));
        rig.check("CLIENT GETNAME", "$2\r\nme\r\n");
        rig.check("GET none", "$-1\r\n");
    }

    #[test]
    fn refusals_change_nothing() {
        let mut rig = Rig::new(1);
        rig.check("HELLO 4", "-NOPROTO unsupported protocol version\r\n");
        rig.check(
            "HELLO x",
            "-ERR Protocol version is not an integer or out of range\r\n",
        );
        rig.check(
            "HELLO 3 WHAT",
            "-ERR Syntax error in HELLO option 'WHAT'\r\n",
        );
        rig.check(
            "HELLO 3 AUTH default",
            "-ERR Syntax error in HELLO option 'AUTH'\r\n",
        );
        rig.check(
            "HELLO 3 AUTH nobody x",
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        );
        let name = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
        rig.check("HELLO 3 SETNAME \u{7f}", name);
        rig.check("GET none", "$-1\r\n");
    }

    #[test]
    fn the_password_on_the_way() {
        let mut rig = Rig::new(1);
        rig.check("CONFIG SET requirepass secret", "+OK\r\n");
        let client = rig.connect(0);
        rig.check_on(client, "HELLO 3", &format!("-{LOG_IN_FIRST}\r\n"));
        assert!(
            rig.run_on(client, "HELLO 3 AUTH default secret")
                .starts_with("%7\r\n")
        );
        rig.check_on(client, "GET none", "_\r\n");
    }
}
