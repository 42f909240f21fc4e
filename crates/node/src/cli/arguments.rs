//! Settings as options of the command line. They are made of the table of
//! settings, so that none can be missing or called otherwise.

use crate::settings::options::{self, OPTIONS};
use crate::settings::sources::{Effective, Given, Problem, load};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use rufous_server::config::params::PARAMS;
use std::path::PathBuf;

/// What `rufous server` and its relatives take.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    file: Option<PathBuf>,
    settings: Vec<(String, String)>,
}

impl Arguments {
    /// The settings in force: file and environment included.
    pub(super) fn load(self) -> Result<Effective, Vec<Problem>> {
        // Variables that are no UTF-8 are nobody's of ours.
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            name.starts_with("RUFOUS_")
                .then(|| (name, value.to_string_lossy().into_owned()))
        });
        let mut environment: Vec<_> = environment.collect();
        environment.sort();
        let from_environment = environment
            .iter()
            .find(|(name, value)| name == "RUFOUS_CONFIG" && !value.is_empty());
        let file = self
            .file
            .or_else(|| from_environment.map(|(_, value)| PathBuf::from(value)));
        load(&Given {
            file,
            environment,
            command_line: self.settings,
        })
    }
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Settings in TOML; also the environment variable RUFOUS_CONFIG");
        let command = command.args_override_self(true).arg(file);
        let command = OPTIONS
            .iter()
            .fold(command, |command, option| command.arg(argument(option)));
        // Facts can be stated too, so that command lines for Redis work.
        let facts = PARAMS
            .iter()
            .filter(|param| options::find(param.name).is_none());
        facts.fold(command, |command, param| {
            command.arg(
                Arg::new(param.name)
                    .long(param.name)
                    .hide(true)
                    .action(ArgAction::Set),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(option: &'static options::StartOption) -> Arg {
    let help = PARAMS
        .iter()
        .find(|param| param.name == option.name)
        .map_or("", |param| param.help);
    let default = match options::default_text(option.name).as_str() {
        "" => String::new(),
        text => format!(" [default: {text}]"),
    };
    let arg = Arg::new(option.name)
        .long(option.name)
        .value_name(option.value)
        .help_heading(option.group.title())
        .help(format!("{help}{default}"));
    if matches!(option.name, "bind" | "save") {
        // As Redis has it: several behind one --bind, and one --save after another.
        return arg.num_args(1..).action(ArgAction::Append);
    }
    let arg = arg.allow_hyphen_values(true).action(ArgAction::Set);
    match options::choices(option.name) {
        choices if choices.is_empty() => arg,
        choices => arg
            .value_parser(PossibleValuesParser::new(choices))
            .ignore_case(true),
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = Self::default();
        arguments.update_from_arg_matches(matches)?;
        Ok(arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.file = matches.get_one::<PathBuf>("config").cloned();
        for param in PARAMS {
            if let Some(values) = matches.try_get_many::<String>(param.name).ok().flatten() {
                let values: Vec<&str> = values.map(String::as_str).collect();
                self.settings
                    .push((param.name.to_owned(), values.join(" ")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Vec<(String, String)>, String> {
        let command = Arguments::augment_args(Command::new("test"));
        let matches = command
            .try_get_matches_from(line.split(' '))
            .map_err(|error| error.to_string())?;
        Ok(Arguments::from_arg_matches(&matches)
            .map_err(|error| error.to_string())?
            .settings)
    }

    fn check(line: &str, expected: &[(&str, &str)]) {
        let expected = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(parse(line), Ok(expected), "{line}");
    }

    #[test]
    fn options_as_redis_has_them() {
        check(
            "t --port 7000 --bind 127.0.0.1 ::1 --timeout 5",
            &[
                ("bind", "127.0.0.1 ::1"),
                ("port", "7000"),
                ("timeout", "5"),
            ],
        );
        check("t --bind=-::1 --bind *", &[("bind", "-::1 *")]);
        check(
            "t --slowlog-log-slower-than -1",
            &[("slowlog-log-slower-than", "-1")],
        );
        check("t --port 1 --port 2", &[("port", "2")]);
        check(
            "t --appendonly no --save=",
            &[("appendonly", "no"), ("save", "")],
        );
        check("t --save 60 1 --save 5 100", &[("save", "60 1 5 100")]);
        check("t --loglevel WARNING", &[("loglevel", "WARNING")]);
    }

    #[test]
    fn unknown_options_and_values_are_refused() {
        let error = parse("t --prot 7000").expect_err("unknown");
        assert!(error.contains("'--port'"), "{error}");
        let error = parse("t --maxmemory-policy lru").expect_err("unknown");
        assert!(error.contains("noeviction"), "{error}");
        assert!(parse("t 7000").is_err());
    }
}
