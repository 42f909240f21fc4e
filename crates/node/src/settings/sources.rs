//! Settings from all the places where they can be given, with one order of
//! precedence: defaults, then the file, then the environment, then the command
//! line; the last one that names a setting decides.

use super::{file, options};
use rufous_kernel::keyspace::{Keyspace, Keyspaces};
use rufous_server::config::Config;
use rufous_server::config::params::{self, PARAMS};
use rufous_server::config::secrets;
use std::collections::BTreeMap;
use std::fmt;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

/// Where the value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment { variable: String },
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(f, "default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment { variable } => write!(f, "environment {variable}"),
            Origin::CommandLine => write!(f, "command line"),
        }
    }
}

/// What is wrong with the settings, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    at: String,
    what: String,
}

impl Problem {
    pub(super) fn new(at: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// What was given when the server was started.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub file: Option<PathBuf>,
    /// Variables; those that do not start with `RUFOUS_` are no matter.
    pub environment: Vec<(String, String)>,
    /// Settings by name.
    pub command_line: Vec<(String, String)>,
}

/// The settings in force, each with its origin.
#[derive(Clone, Debug)]
pub struct Effective {
    pub config: Config,
    origins: BTreeMap<&'static str, Origin>,
    /// What is odd but no reason not to start.
    pub warnings: Vec<String>,
}

impl Effective {
    pub fn origin(&self, name: &str) -> &Origin {
        self.origins.get(name).unwrap_or(&Origin::Default)
    }

    /// Whether somebody gave the setting.
    pub fn is_given(&self, name: &str) -> bool {
        *self.origin(name) != Origin::Default
    }

    fn apply(&mut self, name: &str, value: &str, origin: Origin) -> Result<(), Problem> {
        let Some(param) = params::find(name.as_bytes()) else {
            return Err(Problem::new(
                origin.to_string(),
                format!("unknown setting '{name}'"),
            ));
        };
        let refuse = |origin: &Origin, why: &str| {
            let shown = if params::is_secret(name.as_bytes()) {
                "(redacted)"
            } else {
                value
            };
            Problem::new(origin.to_string(), format!("{name} = '{shown}': {why}"))
        };
        match options::setter(param.name) {
            Some(set) => set(&mut self.config, value).map_err(|why| refuse(&origin, &why))?,
            // A fact may be stated, as it is.
            None if (param.get)(&self.config) == value => {}
            None => {
                return Err(refuse(
                    &origin,
                    &format!("it can only be '{}'", (param.get)(&self.config)),
                ));
            }
        }
        self.origins.insert(param.name, origin);
        Ok(())
    }
}

impl Effective {
    /// Takes over keyspaces with their lines.
    fn declare(
        &mut self,
        path: &Path,
        keyspaces: Vec<(Keyspace, usize)>,
        problems: &mut Vec<Problem>,
    ) {
        let mut table = Keyspaces::default();
        for (keyspace, line) in keyspaces {
            match table.with(keyspace.clone()) {
                Ok(next) => {
                    table = next;
                    self.config.keyspaces.push(keyspace);
                }
                Err(why) => {
                    let at = format!("{}:{line}", path.display());
                    problems.push(Problem::new(at, format!("keyspace: {why}")));
                }
            }
        }
    }
}

/// Puts everything together; on `Err`, all that is wrong.
pub fn load(given: &Given) -> Result<Effective, Vec<Problem>> {
    let mut effective = Effective {
        config: Config::default(),
        origins: BTreeMap::new(),
        warnings: Vec::new(),
    };
    let mut problems = Vec::new();
    if let Some(path) = &given.file {
        let file = file::read(path, &mut problems);
        effective.declare(path, file.keyspaces, &mut problems);
        for entry in file.settings {
            let origin = Origin::File {
                path: path.clone(),
                line: entry.line,
            };
            problems.extend(effective.apply(entry.name, &entry.value, origin).err());
        }
    }
    for (variable, value) in &given.environment {
        from_environment(&mut effective, variable, value, &mut problems);
    }
    for (name, value) in &given.command_line {
        problems.extend(effective.apply(name, value, Origin::CommandLine).err());
    }
    read_password(&mut effective, &mut problems);
    check(&effective, &mut problems);
    form_cluster(&mut effective, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    if effective.config.port == 0 && effective.config.tls.port == 0 {
        // As Redis has it: no port, no TCP. Without addresses none is opened.
        effective.config.bind.clear();
    }
    Ok(effective)
}

fn from_environment(
    effective: &mut Effective,
    variable: &str,
    value: &str,
    problems: &mut Vec<Problem>,
) {
    // The file itself, and no setting.
    if !variable.starts_with("RUFOUS_") || variable == "RUFOUS_CONFIG" {
        return;
    }
    let origin = Origin::Environment {
        variable: variable.into(),
    };
    let Some(param) = PARAMS
        .iter()
        .find(|param| options::variable(param.name) == variable)
    else {
        // Orchestrators put variables of their own into the environment: not worth a refusal.
        let meant = options::nearest(variable.trim_start_matches("RUFOUS_"));
        let hint = meant.map(|name| format!("; did you mean {}?", options::variable(name)));
        effective.warnings.push(format!(
            "{origin} is no setting{}",
            hint.unwrap_or_default()
        ));
        return;
    };
    if let Err(mut problem) = effective.apply(param.name, value, origin) {
        if value.starts_with("tcp://") {
            problem.what.push_str(
                " (Kubernetes sets this variable for a service called rufous: set enableServiceLinks to false)",
            );
        }
        problems.push(problem);
    }
}

/// The password of clients, if it is in a file.
fn read_password(effective: &mut Effective, problems: &mut Vec<Problem>) {
    let Config {
        requirepass,
        requirepass_file,
        ..
    } = &effective.config;
    match secrets::one_of(requirepass, ("requirepass-file", requirepass_file)) {
        Ok(password) => effective.config.requirepass = password,
        Err((name, what)) => {
            let at = effective.origin(name).to_string();
            problems.push(Problem::new(at, format!("{name}: {what}")));
        }
    }
}

/// What single settings cannot tell.
fn check(effective: &Effective, problems: &mut Vec<Problem>) {
    let config = &effective.config;
    let mut wrong = |name: &str, what: String| {
        problems.push(Problem::new(
            effective.origin(name).to_string(),
            format!("{name}: {what}"),
        ));
    };
    if let Err(why) = check_dir(Path::new(&config.dir)) {
        wrong("dir", why);
    }
    let ports = [config.port, config.tls.port];
    if (ports == [0, 0] || config.bind.is_empty()) && config.unixsocket.is_empty() {
        let name = if ports == [0, 0] { "port" } else { "bind" };
        wrong(
            name,
            "nothing to listen on: set a port with an address, or a unixsocket".into(),
        );
    }
    if config.tls.port == config.port && config.port != 0 {
        wrong(
            "tls-port",
            format!("{} is already the port without TLS", config.port),
        );
    }
    for address in &config.bind {
        let host = address.strip_prefix('-').unwrap_or(address);
        if host != "*"
            && let Err(error) = (host, 0).to_socket_addrs()
        {
            wrong(
                "bind",
                format!("'{host}' is not an address of this machine: {error}"),
            );
        }
    }
    if config.admin_port != 0 {
        if let Err(error) = (config.admin_bind.as_str(), 0).to_socket_addrs() {
            wrong(
                "admin-bind",
                format!(
                    "'{}' is no address of this machine: {error}",
                    config.admin_bind
                ),
            );
        }
        // By default metrics and health are left out where their port is taken.
        if ports.contains(&config.admin_port) && effective.is_given("admin-port") {
            wrong(
                "admin-port",
                format!("{} is already the port for clients", config.admin_port),
            );
        }
    }
}

/// What settings of a cluster come to, together.
fn form_cluster(effective: &mut Effective, problems: &mut Vec<Problem>) {
    match effective.config.clustering.settings(&effective.config) {
        Ok(settings) => effective.config.cluster = settings,
        Err((name, what)) => {
            let at = effective.origin(name).to_string();
            problems.push(Problem::new(at, format!("{name}: {what}")));
        }
    }
}

/// Whether the directory is there or can be made.
fn check_dir(dir: &Path) -> Result<(), String> {
    for ancestor in dir.ancestors() {
        // The empty path ends a relative one: the working directory.
        let ancestor = if ancestor.as_os_str().is_empty() {
            Path::new(".")
        } else {
            ancestor
        };
        match std::fs::metadata(ancestor) {
            Ok(found) if found.is_dir() => return Ok(()),
            Ok(_) => return Err(format!("'{}' is no directory", ancestor.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("'{}': {error}", ancestor.display())),
        }
    }
    Err(format!("'{}' cannot be made", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::super::render;
    use super::*;
    use std::io::Write;

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn given(
        file: Option<&Path>,
        environment: &[(&str, &str)],
        command_line: &[(&str, &str)],
    ) -> Given {
        Given {
            file: file.map(Path::to_owned),
            environment: pairs(environment),
            command_line: pairs(command_line),
        }
    }

    #[test]
    fn the_last_source_decides() -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new()?;
        write!(file, "port = 7001\ntimeout = 1\nmaxclients = 11\n")?;
        let environment = [
            ("RUFOUS_PORT", "7002"),
            ("RUFOUS_TIMEOUT", "2"),
            ("PORT", "1"),
            ("RUFOUS_CONFIG", "x"),
        ];
        let given = given(Some(file.path()), &environment, &[("port", "7003")]);
        let effective = load(&given).expect("valid");
        let config = &effective.config;
        assert_eq!(
            (
                config.port,
                config.timeout_s,
                config.maxclients,
                config.slowlog_max_len
            ),
            (7003, 2, 11, 128)
        );
        let check = |name: &str, origin: &str| {
            assert!(
                effective.origin(name).to_string().ends_with(origin),
                "{name}"
            )
        };
        check("port", "command line");
        check("timeout", "environment RUFOUS_TIMEOUT");
        check("maxclients", ":3");
        check("slowlog-max-len", "default");
        assert!(effective.warnings.is_empty(), "{:?}", effective.warnings);
        Ok(())
    }

    fn check_wrong(given: &Given, expected: &[&str]) {
        let problems: Vec<_> = load(given)
            .err()
            .unwrap_or_default()
            .iter()
            .map(Problem::to_string)
            .collect();
        assert_eq!(problems, expected);
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let environment = [
            ("RUFOUS_PIN", "perhaps"),
            ("RUFOUS_PORT", "tcp://10.0.0.1:6379"),
        ];
        let command_line = [
            ("workers", "0"),
            ("requirepass", "x"),
            ("rdbchecksum", "no"),
            ("databases", "7"),
        ];
        check_wrong(
            &given(None, &environment, &command_line),
            &[
                "environment RUFOUS_PIN: pin = 'perhaps': argument must be 'yes' or 'no'",
                "environment RUFOUS_PORT: port = 'tcp://10.0.0.1:6379': argument couldn't be parsed into an integer (Kubernetes sets this variable for a service called rufous: set enableServiceLinks to false)",
                "command line: workers = '0': argument must be between 1 and 256 inclusive",
                "command line: rdbchecksum = 'no': it can only be 'yes': everything on disk has a checksum",
                "command line: databases = '7': it can only be '16'",
            ],
        );
    }

    #[test]
    fn settings_that_do_not_go_together() {
        check_wrong(
            &given(None, &[], &[("port", "0")]),
            &[
                "command line: port: nothing to listen on: set a port with an address, or a unixsocket",
            ],
        );
        check_wrong(
            &given(None, &[], &[("bind", "")]),
            &[
                "command line: bind: nothing to listen on: set a port with an address, or a unixsocket",
            ],
        );
        check_wrong(
            &given(None, &[], &[("port", "7000"), ("admin-port", "7000")]),
            &["command line: admin-port: 7000 is already the port for clients"],
        );
        check_wrong(
            &given(None, &[], &[("port", "7000"), ("tls-port", "7000")]),
            &["command line: tls-port: 7000 is already the port without TLS"],
        );
        check_wrong(
            &given(None, &[], &[("dir", "/dev/null/x/y")]),
            &["command line: dir: '/dev/null/x/y': Not a directory (os error 20)"],
        );
        check_wrong(
            &given(None, &[], &[("dir", "/dev/null")]),
            &["command line: dir: '/dev/null' is no directory"],
        );
        let socket = given(
            None,
            &[],
            &[("port", "0"), ("unixsocket", "/tmp/x"), ("admin-port", "0")],
        );
        assert!(load(&socket).is_ok_and(|effective| effective.config.bind.is_empty()));
    }

    #[test]
    fn variables_of_others_are_no_reason_to_refuse() {
        let environment = [
            ("RUFOUS_SERVICE_HOST", "10.0.0.1"),
            ("RUFOUS_MAX_CLIENTS", "7"),
        ];
        let effective = load(&given(None, &environment, &[])).expect("valid");
        assert_eq!(
            effective.warnings,
            [
                "environment RUFOUS_SERVICE_HOST is no setting",
                "environment RUFOUS_MAX_CLIENTS is no setting; did you mean RUFOUS_MAXCLIENTS?",
            ]
        );
        assert_eq!(effective.config, Config::default());
    }

    #[test]
    fn what_is_rendered_gives_the_same_settings() -> std::io::Result<()> {
        let command_line = [
            ("unixsocketperm", "750"),
            ("bind", "127.0.0.1 -::1"),
            ("logfile", "a \"b\"\n"),
            ("pin", "no"),
        ];
        let first = load(&given(None, &[], &command_line)).expect("valid");
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(render(&first).as_bytes())?;
        let second = load(&given(Some(file.path()), &[], &[])).expect("valid");
        assert_eq!(second.config, first.config);
        Ok(())
    }

    #[test]
    fn passwords_are_not_shown() {
        let effective = load(&given(None, &[], &[("requirepass", "s3cret")])).expect("valid");
        let text = render(&effective);
        assert!(
            !text.contains("s3cret") && text.contains("# requirepass is set and not shown"),
            "{text}"
        );
    }
}
