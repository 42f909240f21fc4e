//! Passwords and secrets in files of their own, so that they are in no command line, environment or
//! configuration file.

use super::params::Set;
use std::io::Read;
use std::path::Path;

pub const SET_REQUIREPASS_FILE: Set = |config, value| {
    config.requirepass_file = value.into();
    Ok(())
};

/// Limit on the bytes of such a file.
const MAX_FILE: u64 = 4096;

/// What stands for a secret that is set where settings are shown.
pub fn shown(secret: &str) -> String {
    match secret {
        "" => String::new(),
        _ => "(hidden)".into(),
    }
}

/// The only line of a file.
pub fn read(path: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("'{path}' {why}"));
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(Path::new(path));
    let done = opened.and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
    if let Err(error) = done {
        return wrong(&format!("cannot be read: {error}"));
    }
    if bytes.len() as u64 > MAX_FILE {
        return wrong("has more bytes than a secret may have");
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return wrong("is not text in UTF-8");
    };
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return wrong("is empty");
    }
    if text.contains('\n') {
        return wrong("has more than one line");
    }
    Ok(text.to_owned())
}

/// A secret that is given in one of two ways, or in none.
pub fn one_of(value: &str, file: (&'static str, &str)) -> Result<String, (&'static str, String)> {
    let (setting, path) = file;
    match (value, path) {
        (_, "") => Ok(value.to_owned()),
        ("", path) => read(path).map_err(|why| (setting, why)),
        _ => {
            let value = setting.trim_end_matches("-file");
            Err((
                setting,
                format!("{value} is set as well: remove one of the two"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }

    #[test]
    fn a_file_has_one_line() {
        let check = |bytes: &[u8], expected: Result<&str, &str>| {
            let file = file(bytes);
            match (read(&file.path().display().to_string()), expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (read, _) => panic!("{bytes:?}: {read:?}"),
            }
        };
        check(b"a secret\n", Ok("a secret"));
        check(b" a secret \r\n", Ok(" a secret "));
        check(b"", Err("is empty"));
        check(b"\n\n", Err("is empty"));
        check(b"a\nb\n", Err("more than one line"));
        check(&[b'a'; 5000], Err("more bytes"));
        check(&[0xff], Err("not text"));
        assert!(read("/dev/null/x").is_err_and(|why| why.contains("cannot be read")));
    }

    #[test]
    fn one_way_is_enough() {
        let file = file(b"from a file\n");
        let path = file.path().display().to_string();
        assert_eq!(one_of("given", ("x-file", "")), Ok("given".into()));
        assert_eq!(one_of("", ("x-file", &path)), Ok("from a file".into()));
        assert_eq!(one_of("", ("x-file", "")), Ok(String::new()));
        let both = one_of("given", ("x-file", &path));
        assert!(both.is_err_and(|(name, why)| name == "x-file" && why.starts_with("x is set")));
    }
}
