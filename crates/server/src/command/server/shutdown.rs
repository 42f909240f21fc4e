//! SHUTDOWN: stops the node, after a snapshot where one is wanted or where
//! nothing else would keep the data.

use super::save::refuse;
use crate::command::SessionCommand;
use crate::front::orders::{SaveAnswer, SaveOrder};
use crate::front::session::Session;
use rufous_base::Args;
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
    let config = session.local.config();
    // With a log nothing is missing on disk that a snapshot could add, once it is in use.
    let logged = config.folder && config.appendonly;
    let unlogged = config.folder && !config.appendonly && !config.save.is_empty();
    if nosave {
        session.local.shared().forgo_last_save();
    }
    if !save && (nosave || !(unlogged || logged)) {
        session.local.shut_down();
        return Ok(());
    }
    let order = if logged && !save {
        SaveOrder::BeforeStopUnlessLogged
    } else {
        SaveOrder::BeforeStop
    };
    session.order_save(order, move |local, answer, reply| {
        let keeps_nothing = !save && answer == SaveAnswer::NoFolder;
        if force || answer == SaveAnswer::Saved || keeps_nothing {
            local.shut_down();
            return;
        }
        tracing::error!(
            ?answer,
            "not stopping: data could not be saved; SHUTDOWN FORCE stops all the same"
        );
        refuse(&answer, "ERR Errors trying to SHUTDOWN. Check logs.", reply);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::front::orders::{SaveAnswer, SaveOrder};
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

    /// A node with a data folder, whose orders the test answers.
    fn with_folder(workers: usize, appendonly: bool, save: bool) -> Rig {
        let config = Config::default();
        let save = if save {
            config.save.clone()
        } else {
            Vec::new()
        };
        let config = Config {
            appendonly,
            save,
            ..config
        };
        let mut rig = Rig::with_config(workers, config);
        rig.fronts[0].durability.orders.take_them();
        rig
    }

    #[test]
    fn what_no_log_has_is_saved_before() {
        let (always, unless_logged) = (SaveOrder::BeforeStop, SaveOrder::BeforeStopUnlessLogged);
        for (appendonly, save, request, order) in [
            (true, true, "SHUTDOWN", Some(unless_logged)),
            (true, true, "SHUTDOWN NOSAVE", None),
            (true, true, "SHUTDOWN SAVE", Some(always)),
            (false, true, "SHUTDOWN", Some(always)),
            (false, true, "SHUTDOWN NOSAVE", None),
            (false, false, "SHUTDOWN", None),
            (false, false, "SHUTDOWN SAVE", Some(always)),
        ] {
            let mut rig = with_folder(2, appendonly, save);
            let client = rig.connect(1);
            rig.send(client, format!("{request}\r\n").as_bytes());
            let asked = rig.fronts[0].durability.orders.take().pop_front();
            let found = asked.as_ref().map(|asked| asked.order);
            assert_eq!(found, order, "{request} {appendonly} {save}");
            if let Some(asked) = asked {
                assert_eq!(rig.node_effects, []);
                rig.fronts[0]
                    .durability
                    .orders
                    .answer(asked, SaveAnswer::Saved);
                rig.advance_ms(100);
            }
            assert_eq!(rig.node_effects, [NodeEffect::Shutdown], "{request}");
        }
    }

    #[test]
    fn a_save_that_fails_stops_only_where_forced() {
        for (request, expected) in [
            ("SHUTDOWN SAVE", "-ERR no room\r\n"),
            ("SHUTDOWN SAVE FORCE", ""),
        ] {
            let mut rig = with_folder(1, true, true);
            let client = rig.connect(0);
            rig.send(client, format!("{request}\r\n").as_bytes());
            let mut orders = rig.fronts[0].durability.orders.take();
            let asked = orders.pop_front().expect("an order");
            rig.fronts[0]
                .durability
                .orders
                .answer(asked, SaveAnswer::Failed("no room".into()));
            rig.advance_ms(100);
            assert_eq!(rig.take(client), expected);
            assert_eq!(rig.node_effects.is_empty(), !expected.is_empty());
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
                .starts_with("-ERR Data is in memory only")
        );
        assert_eq!(rig.node_effects, []);
    }
}
