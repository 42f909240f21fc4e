//! SHUTDOWN: stops the node.

use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::{Args, NodeEffect};
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static SHUTDOWN: SessionCommand = SessionCommand {
    spec: Spec {
        name: "shutdown",
        summary: "Stops the server.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: -1,
        flags: Flags::ADMIN
            .or(Flags::NOSCRIPT)
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::NO_MULTI)
            .or(Flags::ALLOW_BUSY),
        keys: Keys::None,
        syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    },
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    let (mut save, mut nosave, mut force, mut abort) = (false, false, false, false);
    for word in args.iter_from(1) {
        match word {
            w if is(w, "SAVE") => save = true,
            w if is(w, "NOSAVE") => nosave = true,
            w if is(w, "FORCE") => force = true,
            w if is(w, "NOW") => {}
            w if is(w, "ABORT") => abort = true,
            _ => return Err(Failure::SYNTAX),
        }
    }
    if save && nosave || abort && args.len() > 2 {
        return Err(Failure::SYNTAX);
    }
    if abort {
        // A node that stops takes no requests any more.
        return Err(Failure::from("ERR No shutdown in progress."));
    }
    if save && !force {
        return Err(Failure::from(
            "ERR Data is kept in memory alone and cannot be saved. Use SHUTDOWN NOSAVE to stop and lose it.",
        ));
    }
    session.front.node.push(NodeEffect::Shutdown);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;
    use rufous_base::NodeEffect;

    #[test]
    fn the_node_is_asked_to_stop() {
        for request in ["SHUTDOWN", "shutdown nosave now", "SHUTDOWN SAVE FORCE"] {
            let mut rig = Rig::new(2);
            rig.check(request, "");
            assert_eq!(rig.node_effects, [NodeEffect::Shutdown]);
        }
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        rig.check("SHUTDOWN foo", "-ERR syntax error\r\n");
        rig.check("SHUTDOWN SAVE NOSAVE", "-ERR syntax error\r\n");
        rig.check("SHUTDOWN ABORT NOW", "-ERR syntax error\r\n");
        rig.check("SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n");
        assert!(
            rig.run("SHUTDOWN SAVE")
                .starts_with("-ERR Data is kept in memory alone")
        );
        assert_eq!(rig.node_effects, []);
    }
}
