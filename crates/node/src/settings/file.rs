//! The configuration file: TOML whose keys are the names of the settings, all
//! at top level, and `[[keyspace]]` tables.
//!
//! Everything that is wrong is reported at once, each with its line.

use super::options;
use super::sources::Problem;
use rufous_kernel::keyspace::Keyspace;
use rufous_server::config::{keyspaces, params::PARAMS};
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The largest file that is read: no configuration is that long.
const MOST_BYTES: u64 = 1024 * 1024;

/// A setting as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) line: usize,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) settings: Vec<Entry>,
    /// With their lines.
    pub(super) keyspaces: Vec<(Keyspace, usize)>,
}

/// Reads and parses the file.
pub(super) fn read(path: &Path, problems: &mut Vec<Problem>) -> File {
    let at = path.display().to_string();
    let text = std::fs::metadata(path).and_then(|found| {
        if found.len() > MOST_BYTES {
            return Err(std::io::Error::other(format!(
                "more than {MOST_BYTES} bytes"
            )));
        }
        std::fs::read_to_string(path)
    });
    match text {
        Ok(text) => parse(&at, &text, problems),
        Err(error) => {
            problems.push(Problem::new(
                at,
                format!("cannot read the configuration file: {error}"),
            ));
            File::default()
        }
    }
}

/// Parses the text of a file that is called `at` in messages.
pub(super) fn parse(at: &str, text: &str, problems: &mut Vec<Problem>) -> File {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut wrong: Vec<(usize, String)> = Vec::new();
    for error in errors {
        let line = line_of(text, error.span().unwrap_or_default());
        wrong.push((line, error.message().replace('\n', ", ")));
    }
    let (mut entries, mut keyspaces) = (Vec::new(), Vec::new());
    for (key, value) in table.get_ref().iter() {
        let (key, line) = (key.get_ref().as_ref(), line_of(text, key.span()));
        if key == "keyspace" {
            keyspaces = keyspaces_of(text, line, value.get_ref(), &mut wrong);
            continue;
        }
        let Some(name) = PARAMS
            .iter()
            .map(|param| param.name)
            .find(|name| *name == key)
        else {
            wrong.push((line, unknown(key, value.get_ref())));
            continue;
        };
        match text_of(name, value.get_ref()) {
            Ok(value) => entries.push(Entry { name, value, line }),
            Err(why) => wrong.push((line, format!("{name}: {why}"))),
        }
    }
    wrong.sort();
    problems.extend(
        wrong
            .into_iter()
            .map(|(line, what)| Problem::new(format!("{at}:{line}"), what)),
    );
    entries.sort_by_key(|entry| entry.line);
    File {
        settings: entries,
        keyspaces,
    }
}

/// What `[[keyspace]]` tables say.
fn keyspaces_of(
    text: &str,
    line: usize,
    value: &DeValue<'_>,
    wrong: &mut Vec<(usize, String)>,
) -> Vec<(Keyspace, usize)> {
    let DeValue::Array(tables) = value else {
        wrong.push((line, "keyspaces are tables: [[keyspace]]".into()));
        return Vec::new();
    };
    let mut all = Vec::new();
    for table in tables.iter() {
        let line = line_of(text, table.span());
        let mut refuse = |line, why: String| wrong.push((line, format!("keyspace: {why}")));
        let DeValue::Table(table) = table.get_ref() else {
            refuse(line, "give tables: [[keyspace]]".into());
            continue;
        };
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let Some(name) = name else {
            refuse(line, "a name is missing".into());
            continue;
        };
        let mut keyspace = Keyspace::new(name, b"");
        for needed in ["prefix", "regime"] {
            if table.get(needed).is_none() {
                refuse(line, format!("'{name}' has no {needed}"));
            }
        }
        for (option, value) in table
            .iter()
            .filter(|(option, _)| option.get_ref() != "name")
        {
            let (at, option) = (line_of(text, option.span()), option.get_ref().as_ref());
            let set = text_of(option, value.get_ref())
                .and_then(|value| keyspaces::set(&mut keyspace, option, value.as_bytes()));
            if let Err(why) = set {
                refuse(at, format!("'{name}': {why}"));
            }
        }
        if keyspace.is_lattice() && table.get("threads").is_none() {
            keyspace.threads = 0;
        }
        if let Some(why) = keyspaces::contradiction(&keyspace, table.get("cut").is_some()) {
            refuse(line, format!("'{name}': {why}"));
        }
        all.push((keyspace, line));
    }
    all
}

fn line_of(text: &str, span: Range<usize>) -> usize {
    1 + text
        .bytes()
        .take(span.start)
        .filter(|byte| *byte == b'\n')
        .count()
}

fn unknown(key: &str, value: &DeValue<'_>) -> String {
    if value.is_table() {
        return format!(
            "unknown section '{key}': settings belong at the top level, without [sections]"
        );
    }
    match options::nearest(key) {
        Some(meant) => format!("unknown setting '{key}'; did you mean '{meant}'?"),
        None => format!("unknown setting '{key}'; `rufous server --help` lists all of them"),
    }
}

/// A value as the command line would have it.
fn text_of(name: &str, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(true) => Ok("yes".into()),
        DeValue::Boolean(false) => Ok("no".into()),
        // Permission bits are octal, with or without TOML's 0o before them.
        DeValue::Integer(number)
            if number.radix() == 10 || (name == "unixsocketperm" && number.radix() == 8) =>
        {
            Ok(number.as_str().to_owned())
        }
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|_| "the number is too large".into()),
        DeValue::Array(values) if name == "bind" => {
            let texts = values.iter().map(|value| value.get_ref().as_str());
            let texts: Option<Vec<_>> = texts.collect();
            texts
                .map(|texts| texts.join(" "))
                .ok_or_else(|| "addresses are text in quotes".into())
        }
        _ => Err(format!(
            "{} is no value for it: give text in quotes, a number, or true or false",
            value.type_str()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_kernel::keyspace::Regime;

    fn check(text: &str, expected: &[(&str, &str, usize)], wrong: &[&str]) {
        let mut problems = Vec::new();
        let entries = parse("r.toml", text, &mut problems).settings;
        let entries: Vec<_> = entries
            .iter()
            .map(|e| (e.name, e.value.as_str(), e.line))
            .collect();
        assert_eq!(entries, expected, "{text}");
        let problems: Vec<_> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(problems.len(), wrong.len(), "{problems:?}");
        for (problem, part) in problems.iter().zip(wrong) {
            assert!(
                problem.starts_with(part),
                "{problem} should start with {part}"
            );
        }
    }

    #[test]
    fn values_of_every_kind() {
        check(
            "# first\nport = 7_000\n\nbind = [\"127.0.0.1\", '-::1']\npin = false\nloglevel='debug'\n",
            &[
                ("port", "7000", 2),
                ("bind", "127.0.0.1 -::1", 4),
                ("pin", "no", 5),
                ("loglevel", "debug", 6),
            ],
            &[],
        );
        check(
            "port = 0x1_0\nunixsocketperm = 0o750",
            &[("port", "16", 1), ("unixsocketperm", "750", 2)],
            &[],
        );
        check(
            "unixsocketperm = 750\nslowlog-log-slower-than = -1",
            &[
                ("unixsocketperm", "750", 1),
                ("slowlog-log-slower-than", "-1", 2),
            ],
            &[],
        );
        check("", &[], &[]);
    }

    #[test]
    fn everything_wrong_is_told_with_its_line() {
        check(
            "port = 7000\nprot = 1\nfoo-bar-baz = 2\nmaxclients = 1.5\n[network]\nx = 1\n",
            &[("port", "7000", 1)],
            &[
                "r.toml:2: unknown setting 'prot'; did you mean 'port'?",
                "r.toml:3: unknown setting 'foo-bar-baz'; `rufous",
                "r.toml:4: maxclients: float is no value for it",
                "r.toml:5: unknown section 'network'",
            ],
        );
    }

    #[test]
    fn keyspaces_are_tables_and_all_that_is_wrong_with_them_is_told() {
        let mut problems = Vec::new();
        let text = "port = 1\n[[keyspace]]\nname = \"carts\"\nprefix = \"cart:\"\nregime = \"lattice\"\n\
            gossip-ms = 7\n[[keyspace]]\nname = 'paid'\nregime = 'strict'\nprefix = 'p'\n";
        let file = parse("r.toml", text, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let carts = Keyspace {
            regime: Regime::Lattice,
            threads: 0,
            gossip_ms: 7,
            ..Keyspace::new("carts", b"cart:")
        };
        let paid = Keyspace::new("paid", b"p");
        assert_eq!(file.keyspaces, [(carts, 2), (paid, 7)]);
        let text = "[[keyspace]]\nname = 'a'\nregime = 'loose'\n[[keyspace]]\nprefix = 'p'\n\
            [[keyspace]]\nname='b'\nprefix='q'\nregime='strict'\ncolour='red'\nthreads=[1]\n";
        parse("r.toml", text, &mut problems);
        let problems: Vec<_> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(
            problems,
            [
                "r.toml:1: keyspace: 'a' has no prefix",
                "r.toml:3: keyspace: 'a': the regime is 'lattice' or 'strict'",
                "r.toml:4: keyspace: a name is missing",
                "r.toml:10: keyspace: 'b': a keyspace has no 'colour'",
                "r.toml:11: keyspace: 'b': array is no value for it: give text in quotes, a number, or true or false",
            ]
        );
        let mut problems = Vec::new();
        parse("r.toml", "keyspace = 1\n", &mut problems);
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn syntax_errors_and_duplicates() {
        let count = |text: &str| {
            let mut problems = Vec::new();
            parse("r.toml", text, &mut problems);
            problems
        };
        for (text, line) in [
            ("port 7000", 1),
            ("\nport = \n", 2),
            ("port = 1\nport = 2", 2),
            ("a = \"x", 1),
        ] {
            let problems = count(text);
            let start = format!("r.toml:{line}: ");
            assert!(
                problems.iter().any(|p| p.to_string().starts_with(&start)),
                "{text:?}: {problems:?}"
            );
        }
    }
}
