//! CONFIG SET: changes settings, all of those named or none.

use super::{ADMIN, spec};
use crate::command::SessionCommand;
use crate::config::Config;
use crate::config::params::{self, Set};
use crate::front::orders::SaveAnswer;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Reply};

pub static SET: SessionCommand = SessionCommand {
    spec: spec(
        "config|set",
        -4,
        ADMIN.or(Flags::SECRET_SETTINGS),
        "O(N) where N is the number of parameters",
        "parameter value [parameter value ...]",
        "Changes settings of the running server.",
    ),
    run,
};

struct Change {
    name: &'static str,
    /// `None`: fixed, and being set to what it is.
    set: Option<Set>,
    value: String,
}

impl Change {
    fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        self.set.map_or(Ok(()), |set| {
            set(config, &self.value).map_err(|why| failed(self.name, &why))
        })
    }
}

fn failed(name: &str, why: &str) -> Failure {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}").into()
}

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let changes = parse(&args, session.local.config())?;
    session
        .local
        .change_settings(|config| changes.iter().try_for_each(|change| change.apply(config)))?;
    if changes.iter().any(|change| change.name == "appendonly") {
        return switch_log(session);
    }
    session.ask_all(
        reply,
        |local, _| local.take_settings(),
        move |local, _, reply| {
            if changes.iter().any(|change| change.name == "maxclients") {
                local.announce_maxclients();
            }
            reply.ok();
        },
    );
    Ok(())
}

/// Replies once logging is what the settings say.
fn switch_log(session: &mut Session<'_>) -> Result<(), Failure> {
    session.switch_log(|local, answer, reply| {
        local.announce_maxclients();
        match answer {
            SaveAnswer::Failed(why) => reply.error(&not_yet(local.config(), &why).into()),
            _ => reply.ok(),
        }
    });
    Ok(())
}

fn not_yet(config: &Config, why: &str) -> String {
    if config.appendonly {
        format!(
            "ERR The log is not in use yet: {why}. The node tries again every 5 seconds, and then \
             INFO persistence shows aof_enabled:1; CONFIG SET appendonly no gives up"
        )
    } else {
        format!("ERR The end of the log is not recorded yet: {why}. The node tries again")
    }
}

fn parse(args: &Args<'_>, config: &Config) -> Result<Vec<Change>, Failure> {
    if args.len() % 2 == 1 {
        return Err(Failure::wrong_arity("config|set"));
    }
    let mut found = Vec::new();
    for at in (2..args.len()).step_by(2) {
        let Some(param) = params::find(args.get(at)) else {
            let name = String::from_utf8_lossy(&args.get(at)[..args.get(at).len().min(128)]);
            return Err(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )
            .into());
        };
        found.push((param, args.get(at + 1)));
    }
    let mut changes: Vec<Change> = Vec::with_capacity(found.len());
    for (param, value) in found {
        // Tools that write back a whole configuration change nothing by what is fixed.
        if param.set.is_none() && (param.get)(config).as_bytes() != value {
            return Err(failed(param.name, "can't set immutable config"));
        }
        if changes.iter().any(|change| change.name == param.name) {
            return Err(failed(param.name, "duplicate parameter"));
        }
        let value =
            std::str::from_utf8(value).map_err(|_| failed(param.name, "argument is not UTF-8"))?;
        changes.push(Change {
            name: param.name,
            set: param.set,
            value: value.into(),
        });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;
    use rufous_base::NodeEffect;

    #[test]
    fn settings_change_on_every_worker() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            rig.check("CONFIG SET timeout 7 maxclients 99", "+OK\r\n");
            assert!(rig.node_effects.contains(&NodeEffect::MaxClients(99)));
            for worker in 0..workers {
                let client = rig.connect(worker);
                rig.check_on(
                    client,
                    "CONFIG GET timeout",
                    "*2\r\n$7\r\ntimeout\r\n$1\r\n7\r\n",
                );
            }
        }
    }

    #[test]
    fn all_or_none() {
        let mut rig = Rig::new(2);
        let refusal = "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 4294967295 inclusive\r\n";
        rig.check("CONFIG SET timeout 7 maxclients 0", refusal);
        rig.check("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
        let unknown = "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n";
        rig.check("CONFIG SET timeout 7 foo 2", unknown);
        rig.check("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
    }

    #[test]
    fn changes_at_several_workers_at_once_all_stay() {
        let mut rig = Rig::new(3);
        let clients: Vec<_> = (0..3).map(|worker| rig.connect(worker)).collect();
        let settings = ["timeout 5", "slowlog-max-len 6", "lfu-decay-time 7"];
        for (client, setting) in clients.iter().zip(settings) {
            rig.send_only(*client, format!("CONFIG SET {setting}\r\n").as_bytes());
        }
        rig.settle();
        for client in clients {
            assert_eq!(rig.take(client), "+OK\r\n");
            rig.check_on(
                client,
                "CONFIG GET timeout",
                "*2\r\n$7\r\ntimeout\r\n$1\r\n5\r\n",
            );
            rig.check_on(
                client,
                "CONFIG GET slowlog-m*",
                "*2\r\n$15\r\nslowlog-max-len\r\n$1\r\n6\r\n",
            );
            rig.check_on(
                client,
                "CONFIG GET lfu-d*",
                "*2\r\n$14\r\nlfu-decay-time\r\n$1\r\n7\r\n",
            );
        }
    }

    #[test]
    fn what_is_fixed_takes_what_it_is() {
        let mut rig = Rig::new(2);
        let port = rig.fronts[0].config.port;
        rig.check(
            &format!("CONFIG SET port {port} daemonize no timeout 9"),
            "+OK\r\n",
        );
        rig.check("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n9\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        let mut check = |request: &str, name: &str, why: &str| {
            let reply = format!(
                "-ERR CONFIG SET failed (possibly related to argument '{name}') - {why}\r\n"
            );
            rig.check(request, &reply);
        };
        check("CONFIG SET port 1", "port", "can't set immutable config");
        check(
            "CONFIG SET daemonize yes",
            "daemonize",
            "can't set immutable config",
        );
        check(
            "CONFIG SET timeout 1 timeout 2",
            "timeout",
            "duplicate parameter",
        );
        check(
            "CONFIG SET maxmemory x",
            "maxmemory",
            "argument must be a memory value",
        );
        check(
            "CONFIG SET timeout abc",
            "timeout",
            "argument couldn't be parsed into an integer",
        );
        check(
            "CONFIG SET protected-mode maybe",
            "protected-mode",
            "argument must be 'yes' or 'no'",
        );
        check(
            "CONFIG SET appendonly yes",
            "appendonly",
            "the server was started without a data folder",
        );
        check("CONFIG SET save 60", "save", "Invalid save parameters");
        check(
            "CONFIG SET rdbchecksum no",
            "rdbchecksum",
            "it can only be 'yes': everything on disk has a checksum",
        );
        rig.check(
            "CONFIG SET maxmemory",
            "-ERR wrong number of arguments for 'config|set' command\r\n",
        );
        rig.check(
            "CONFIG SET timeout 1 x",
            "-ERR wrong number of arguments for 'config|set' command\r\n",
        );
        rig.check("CONFIG SET maxmemory 0 appendonly no save \"\"", "+OK\r\n");
    }
}
