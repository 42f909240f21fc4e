//! The parts of the comparison with the peers; each measures one promise and returns a [`Report`].

pub mod commands;
pub mod cross;
mod durable;
pub mod eviction;
pub mod load;
pub mod log;
pub mod memory;
pub mod pauses;
pub mod scaling;
pub mod short_commands;
pub mod snapshot;
pub mod type_memory;
pub mod type_pauses;
pub mod types;

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::loadgen::template::Shape;
use crate::options::{Options, Part, RUFOUS};
use crate::procfs::Machine;
use crate::report::{Report, Setting};
use crate::servers::{Server, pin_this_thread};

/// Keys and values of the rows that do not say otherwise.
pub const SHAPE: Shape = Shape {
    key_bytes: 8,
    value_bytes: 64,
};

/// What every section needs.
pub struct Context {
    pub options: Options,
    pub setting: Setting,
}

impl Context {
    /// Notes which version of a server was measured.
    pub fn note_version(&mut self, server: &Server) -> Result<()> {
        if self.setting.versions.contains_key(&server.name) {
            return Ok(());
        }
        let info = server.client()?.call(&["INFO", "server"])?.text()?;
        self.setting
            .versions
            .insert(server.name.clone(), version(&info));
        Ok(())
    }
}

/// Forks answer Redis's version for compatibility, and their own beside it.
pub fn version(info: &str) -> String {
    ["rufous_version:", "valkey_version:", "redis_version:"]
        .iter()
        .find_map(|field| info.lines().find_map(|line| line.strip_prefix(field)))
        .unwrap_or("of unknown version")
        .trim()
        .to_owned()
}

/// The command that prints a section, for its page.
pub fn command(part: &str) -> String {
    format!("cargo xtask bench-peers --only {part}")
}

/// Runs the chosen parts; one that fails does not keep the others from running.
pub fn run(options: Options) -> Result<()> {
    // Read before pinning, after which this process sees one processor only.
    let setting = Setting {
        machine: Machine::read(),
        versions: BTreeMap::new(),
    };
    pin_this_thread(options.load_core)?;
    let mut context = Context { options, setting };
    type Section = fn(&mut Context) -> Result<Report>;
    let sections: [(Part, &str, Section); 13] = [
        (Part::Commands, "commands", commands::run),
        (Part::Memory, "memory", memory::run),
        (Part::Cross, "cross", cross::run),
        (Part::Scaling, "scaling", scaling::run),
        (Part::Pauses, "pauses", pauses::run),
        (Part::Log, "log", log::run),
        (Part::Snapshot, "snapshot", snapshot::run),
        (Part::Load, "load", load::run),
        (Part::Eviction, "eviction", eviction::run),
        (Part::Types, "types", types::run),
        (Part::TypeMemory, "type-memory", type_memory::run),
        (Part::TypePauses, "type-pauses", type_pauses::run),
        (Part::ShortCommands, "short-commands", short_commands::run),
    ];
    let (mut failed, mut json) = (Vec::new(), serde_json::Map::new());
    for (part, name, section) in sections {
        if !context.options.runs(part) {
            continue;
        }
        let report = match section(&mut context) {
            Ok(report) => report,
            Err(error) => {
                eprintln!("{name}: {error:#}");
                failed.push(name);
                continue;
            }
        };
        if context.options.json {
            json.insert(name.to_owned(), report.json(&context.setting));
        } else if context.options.markdown {
            println!("{}", report.markdown(&context.setting));
        } else {
            println!("{}", report.terminal());
        }
        if let Some(dir) = context.options.out() {
            report.write(&dir, &context.setting)?;
        }
    }
    if context.options.json {
        println!("{}", serde_json::to_string_pretty(&json)?);
    }
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(())
}

/// The colours of a chart: Rufous first.
fn series_order(names: &[String]) -> Vec<String> {
    let mut order: Vec<String> = names.to_vec();
    order.sort_by_key(|name| name != RUFOUS);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_known_by_their_own_version() {
        assert_eq!(
            version("# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\n"),
            "8.0.1"
        );
        assert_eq!(version("redis_version:7.0.15\r\n"), "7.0.15");
        assert_eq!(version(""), "of unknown version");
    }

    #[test]
    fn rufous_comes_first_in_charts() {
        let names = ["redis", "valkey", "rufous"].map(str::to_owned);
        assert_eq!(series_order(&names), ["rufous", "redis", "valkey"]);
    }
}
