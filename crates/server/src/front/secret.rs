//! Secret arguments, such as passwords, in requests that `MONITOR` and `SLOWLOG` would show.

use crate::config::params;
use rufous_base::Args;
use rufous_command::options::is;
use rufous_command::{Flags, Secrets};

/// What is shown instead.
pub(super) const REDACTED: &[u8] = b"(redacted)";

/// Whether argument `index` of the command with these flags is to be hidden.
pub(super) fn is_secret(flags: Flags, args: &Args<'_>, index: usize) -> bool {
    match flags.secrets() {
        Secrets::All => index > 0,
        Secrets::AfterAuth => {
            let follows_auth = |by: usize| index > by && is(args.get(index - by), "AUTH");
            index > 2 && (follows_auth(1) || follows_auth(2))
        }
        Secrets::Settings => index > 2 && index % 2 == 1 && params::is_secret(args.get(index - 1)),
        Secrets::None => false,
    }
}

/// Whether a request has a password that is to be checked.
pub(super) fn has_password(flags: Flags, args: &Args<'_>) -> bool {
    flags.has(Flags::NO_AUTH) && (1..args.len()).any(|index| is_secret(flags, args, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::with_args;

    fn check(name: &str, request: &str, shown: &str) {
        let table = crate::command::table();
        let mut specs = table.specs();
        let found = specs.find(|(_, spec)| spec.name == name);
        let flags = found.expect("a command").1.flags;
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        with_args(&words, |args| {
            let all: Vec<_> = (0..args.len())
                .map(|i| {
                    if is_secret(flags, args, i) {
                        REDACTED
                    } else {
                        args.get(i)
                    }
                })
                .map(String::from_utf8_lossy)
                .collect();
            assert_eq!(all.join(" "), shown);
        });
    }

    #[test]
    fn passwords_are_hidden_and_nothing_else() {
        check("auth", "AUTH x", "AUTH (redacted)");
        check("auth", "AUTH default x", "AUTH (redacted) (redacted)");
        check(
            "hello",
            "HELLO 3 AUTH u p SETNAME n",
            "HELLO 3 AUTH (redacted) (redacted) SETNAME n",
        );
        check(
            "config|set",
            "CONFIG SET RequirePass x timeout 1",
            "CONFIG SET RequirePass (redacted) timeout 1",
        );
        check("set", "SET auth x", "SET auth x");
    }
}
