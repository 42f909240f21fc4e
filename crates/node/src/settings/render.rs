//! Settings in force as a configuration file, for `rufous check-config`.

use super::options;
use super::sources::Effective;
use rufous_kernel::keyspace::Keyspace;
use rufous_server::config::{keyspaces, params};

/// The settings in force as a configuration file, with the origin of each
/// behind it. Passwords are not shown.
pub fn render(effective: &Effective) -> String {
    let lines = options::OPTIONS.iter().filter_map(|option| {
        let param = params::find(option.name.as_bytes())?;
        let value = (param.get)(&effective.config);
        let line = if params::is_secret(option.name.as_bytes()) && !value.is_empty() {
            format!("# {} is set and not shown", option.name)
        } else {
            format!("{} = {}", option.name, literal(option.name, &value))
        };
        Some(format!("{line:<44} # {}\n", effective.origin(option.name)))
    });
    let keyspaces = effective.config.keyspaces.iter();
    lines.chain(keyspaces.map(table_of)).collect()
}

/// A `[[keyspace]]` table of the configuration file.
fn table_of(keyspace: &Keyspace) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut out = format!("\n[[keyspace]]\nname = {}\n", quoted(&keyspace.name));
    for (name, value) in keyspaces::options(keyspace) {
        let value = quoted(&String::from_utf8_lossy(&value));
        out.push_str(&format!("{name} = {value}\n"));
    }
    out
}

/// A value as TOML.
fn literal(name: &str, value: &str) -> String {
    match value.parse::<i64>() {
        // Octal, and so better not a number.
        Ok(number) if name != "unixsocketperm" => number.to_string(),
        _ => toml::Value::String(value.to_owned()).to_string(),
    }
}
