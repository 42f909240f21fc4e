//! AUTH: proves that the client may use the server.
//!
//! There is one user, `default`; its password is the setting `requirepass`.
//! Guessing over one connection ends with it: after [`MOST_FAILURES`] wrong
//! passwords the answer is the last thing the connection carries. Guessing over many connections is slow
//! ([`crate::front::guesses`]). Commands
//! before authentication are few, and their size is bounded by the parser.

use super::spec;
use crate::command::SessionCommand;
use crate::front::guesses::Turn;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Reply};

/// Wrong passwords after which a connection is closed.
pub(crate) const MOST_FAILURES: u32 = 16;

/// Nothing was checked.
const TOO_MANY: &str =
    "ERR too many wrong passwords came from this address: try again in a few seconds";

const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

pub static AUTH: SessionCommand = SessionCommand {
    spec: spec(
        "auth",
        "1.0.0",
        -2,
        Flags::FAST
            .or(Flags::NOSCRIPT)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::LOCAL)
            .or(Flags::SECRET_ALL),
        "[username] password",
        "Authenticates the connection.",
    ),
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (user, password): (&[u8], _) = match args.len() {
        2 if session.local.config().requirepass.is_empty() => {
            return Err(Failure::from(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
            ));
        }
        2 => (b"default", args.get(1)),
        3 => (args.get(1), args.get(2)),
        _ => return Err(Failure::SYNTAX),
    };
    authenticate(session, user, password)?;
    reply.ok();
    Ok(())
}

/// Checks user and password, for `AUTH` and `HELLO`.
pub(super) fn authenticate(
    session: &mut Session<'_>,
    user: &[u8],
    password: &[u8],
) -> Result<(), Failure> {
    let connection = session.connection()?;
    if connection.guess.take() == Some(Turn::Never) && !connection.authenticated {
        session.local.note_auth_refusal();
        session.close_after_reply();
        return Err(Failure::from(TOO_MANY));
    }
    let expected = session.local.config().requirepass.as_bytes();
    let right = expected.is_empty() || equal_in_constant_time(expected, password);
    if user == b"default" && right {
        let connection = session.connection()?;
        connection.authenticated = true;
        connection.auth_failures = 0;
        return Ok(());
    }
    let connection = session.connection()?;
    connection.auth_failures += 1;
    let (failures, peer) = (connection.auth_failures, connection.info.peer.clone());
    session.local.note_auth_failure(session.now, &peer);
    if failures >= MOST_FAILURES {
        session.close_after_reply();
    }
    Err(Failure::from(WRONG))
}

/// Takes the same time wherever the two differ: as long as `given` is.
fn equal_in_constant_time(expected: &[u8], given: &[u8]) -> bool {
    let mut difference = u8::from(expected.len() != given.len());
    for (index, byte) in given.iter().enumerate() {
        difference |= byte ^ expected[index % expected.len()];
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::Rig;
    use rufous_base::{ConnInfo, Origin};

    fn protected() -> Rig {
        let mut rig = Rig::new(2);
        rig.check("CONFIG SET requirepass secret", "+OK\r\n");
        rig
    }

    #[test]
    fn nothing_but_authentication_without_the_password() {
        let mut rig = protected();
        let client = rig.connect(1);
        rig.check_on(client, "GET k", "-NOAUTH Authentication required.\r\n");
        rig.check_on(
            client,
            "CLIENT LIST",
            "-NOAUTH Authentication required.\r\n",
        );
        rig.check_on(client, "AUTH wrong", &format!("-{WRONG}\r\n"));
        rig.check_on(client, "AUTH root secret", &format!("-{WRONG}\r\n"));
        rig.check_on(client, "AUTH secret more words", "-ERR syntax error\r\n");
        rig.check_on(client, "AUTH secret", "+OK\r\n");
        rig.check_on(client, "GET k", "$-1\r\n");
        rig.check_on(client, "AUTH default secret", "+OK\r\n");
        let counted = rig.run("INFO stats");
        assert!(
            counted.contains("\r\nacl_access_denied_auth:2\r\n"),
            "{counted}"
        );
    }

    #[test]
    fn without_a_configured_password() {
        let mut rig = Rig::new(1);
        assert!(
            rig.run("AUTH x")
                .starts_with("-ERR AUTH <password> called without any password")
        );
        rig.check("AUTH default anything", "+OK\r\n");
        rig.check("AUTH nobody anything", &format!("-{WRONG}\r\n"));
    }

    #[test]
    fn guessing_ends_the_connection() {
        let mut rig = protected();
        let client = rig.connect(0);
        for _ in 0..MOST_FAILURES {
            assert!(!rig.is_closed(client));
            rig.check_on(client, "AUTH guess", &format!("-{WRONG}\r\n"));
        }
        assert!(rig.is_closed(client));
    }

    #[test]
    fn an_address_that_guesses_is_slow_and_clients_that_are_there_are_not() {
        let mut rig = protected();
        let there = rig.connect(0);
        rig.check_on(there, "AUTH secret", "+OK\r\n");
        let wrong = format!("-{WRONG}\r\n");
        // Each on a connection of its own, at any worker.
        for guess in 0..21 {
            let client = rig.connect(guess % 2);
            rig.check_on(client, "AUTH guess", &wrong);
        }
        let next = rig.connect(0);
        rig.check_on(next, "AUTH guess", &wrong);
        let late = rig.connect(1);
        rig.check_on(late, "HELLO 3 AUTH default secret", "");
        let refused: Vec<_> = (0..40)
            .filter(|guess| {
                let client = rig.connect(guess % 2);
                let reply = rig.run_on(client, "AUTH secret");
                assert!(
                    reply.is_empty() || reply == format!("-{TOO_MANY}\r\n"),
                    "{reply}"
                );
                !reply.is_empty() && rig.is_closed(client)
            })
            .collect();
        assert_eq!(
            refused.len(),
            21,
            "two seconds of attempts wait, one in 100 ms"
        );
        // An established connection waits for nothing.
        rig.check_on(there, "GET k", "$-1\r\n");
        rig.check_on(there, "AUTH default secret", "+OK\r\n");
        let other = ConnInfo {
            peer: "10.0.0.9:50000".into(),
            local: "10.0.0.1:6379".into(),
            is_local: false,
            origin: Origin::Client,
            certificate: None,
        };
        let other = rig.connect_as(0, other);
        rig.check_on(other, "AUTH secret", "+OK\r\n");
        // The right password is accepted in its turn.
        rig.advance_ms(300);
        assert!(rig.take(late).starts_with("%7\r\n"));
        let counted = rig.run("INFO stats");
        assert!(
            counted.contains("\r\nauth_attempts_delayed:20\r\n"),
            "{counted}"
        );
        assert!(
            counted.contains("\r\nauth_attempts_refused:21\r\n"),
            "{counted}"
        );
        rig.advance_ms(120_000);
        let client = rig.connect(1);
        rig.check_on(client, "AUTH secret", "+OK\r\n");
    }

    #[test]
    fn clients_are_free_once_the_password_is_taken_away() {
        let mut rig = protected();
        let client = rig.connect(1);
        rig.check_on(client, "GET k", "-NOAUTH Authentication required.\r\n");
        rig.check("CONFIG SET requirepass \"\"", "+OK\r\n");
        rig.check_on(client, "GET k", "$-1\r\n");
    }

    #[test]
    fn comparison() {
        assert!(equal_in_constant_time(b"abc", b"abc"));
        for other in [&b"abd"[..], b"ab", b"abcd", b"", b"abcabc"] {
            assert!(!equal_in_constant_time(b"abc", other));
        }
    }
}
