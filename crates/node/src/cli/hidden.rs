//! Keeps passwords out of the process list: the program that is started with one on its command line
//! executes itself again, with the password in its environment instead.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Options with passwords, and the variables that mean the same: of all commands, and of `backup`.
const HIDDEN: [(&str, &str); 4] = [
    ("--requirepass", "RUFOUS_REQUIREPASS"),
    ("--password", "RUFOUS_REQUIREPASS"),
    ("--cluster-secret", "RUFOUS_CLUSTER_SECRET"),
    ("--cluster-etcd-password", "RUFOUS_CLUSTER_ETCD_PASSWORD"),
];
const HIDDEN_OF_BACKUP: [(&str, &str); 1] = [("--password", "RUFOUS_PASSWORD")];

/// Returns if there is nothing to hide, or if that is not possible here.
pub(super) fn hide_passwords() {
    let words: Vec<OsString> = std::env::args_os().collect();
    let (Some((program, words)), Ok(path)) = (words.split_first(), std::env::current_exe()) else {
        return;
    };
    let (kept, moved) = split(words);
    if moved.is_empty() {
        return;
    }
    let error = Command::new(path)
        .arg0(program)
        .args(kept)
        .envs(moved)
        .exec();
    eprintln!("rufous: warning: the process list shows the password of the command line: {error}");
}

/// The words without those that have passwords, and these as variables.
fn split(words: &[OsString]) -> (Vec<&OsStr>, Vec<(&'static str, &OsStr)>) {
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    let hidden = match words.first() {
        Some(first) if first == "backup" => &HIDDEN_OF_BACKUP[..],
        _ => &HIDDEN[..],
    };
    let mut words = words.iter().map(OsString::as_os_str).peekable();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        let found = hidden.iter().find_map(|(option, variable)| {
            let rest = bytes.strip_prefix(option.as_bytes())?;
            (rest.is_empty() || rest[0] == b'=').then_some((*variable, rest))
        });
        match found {
            Some((variable, [])) => match words.next_if(|value| !value.is_empty()) {
                Some(value) => moved.push((variable, value)),
                None => kept.push(word),
            },
            // An empty one says that there is none, and does so as an option alone.
            Some((variable, value)) if value.len() > 1 => {
                moved.push((variable, OsStr::from_bytes(&value[1..])));
            }
            _ => kept.push(word),
        }
    }
    (kept, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[&str], kept: &[&str], moved: &[(&str, &str)]) {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let (found, variables) = split(&words);
        assert_eq!(found, kept, "{line:?}");
        let expected: Vec<_> = moved.iter().map(|(n, v)| (*n, OsStr::new(*v))).collect();
        assert_eq!(variables, expected, "{line:?}");
    }

    #[test]
    fn passwords_become_variables() {
        check(
            &["server", "--port", "1", "--requirepass", "x", "--pin", "no"],
            &["server", "--port", "1", "--pin", "no"],
            &[("RUFOUS_REQUIREPASS", "x")],
        );
        check(
            &["server", "--requirepass=x=y", "--cluster-secret", "s"],
            &["server"],
            &[
                ("RUFOUS_REQUIREPASS", "x=y"),
                ("RUFOUS_CLUSTER_SECRET", "s"),
            ],
        );
        check(
            &["cluster", "status", "--password", "-x"],
            &["cluster", "status"],
            &[("RUFOUS_REQUIREPASS", "-x")],
        );
        check(
            &["backup", "create", "--password=x"],
            &["backup", "create"],
            &[("RUFOUS_PASSWORD", "x")],
        );
        // Files are no secrets, and no password is none.
        let plain = [
            "server",
            "--requirepass-file",
            "f",
            "--cluster-secret-file=g",
            "--requirepass",
            "",
            "--requirepass=",
        ];
        check(&plain, &plain, &[]);
        check(&["--requirepass"], &["--requirepass"], &[]);
    }
}
