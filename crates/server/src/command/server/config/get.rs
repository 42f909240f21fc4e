//! CONFIG GET: settings whose names match patterns.

use super::{ADMIN, spec};
use crate::command::SessionCommand;
use crate::config::params::PARAMS;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Reply};
use rufous_datatype::glob::glob_match;

pub static GET: SessionCommand = SessionCommand {
    spec: spec(
        "config|get",
        -3,
        ADMIN.or(Flags::LOCAL),
        "O(N) where N is the number of patterns",
        "parameter [parameter ...]",
        "Returns the settings whose names match a pattern.",
    ),
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let matches = |name: &str| {
        args.iter_from(2)
            .any(|p| glob_match(p, name.as_bytes(), true))
    };
    let found: Vec<_> = PARAMS.iter().filter(|param| matches(param.name)).collect();
    reply.map(found.len());
    for param in found {
        reply.bulk(param.name.as_bytes());
        reply.bulk((param.get)(session.local.config()).as_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn patterns() {
        let mut rig = Rig::new(1);
        rig.check("CONFIG GET nosuch", "*0\r\n");
        rig.check("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
        rig.check(
            "CONFIG GET MAXCLIENTS",
            "*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n",
        );
        rig.check(
            "CONFIG GET maxcl* maxclients",
            "*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n",
        );
        assert!(
            rig.run("CONFIG GET *")
                .contains("\r\nappendonly\r\n$2\r\nno\r\n")
        );
        rig.run("HELLO 3");
        rig.check(
            "CONFIG GET databases",
            "%1\r\n$9\r\ndatabases\r\n$2\r\n16\r\n",
        );
    }
}
