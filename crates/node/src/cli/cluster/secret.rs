//! The secret that the nodes of a cluster on this machine prove to each other: a file in the cluster's folder.

use anyhow::{Context, Result, anyhow};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Makes the secret, if there is none yet.
pub(super) fn make(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let mut random = [0; SECRET_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| anyhow!("the operating system gave no random numbers: {error}"))?;
    let written = write(path, &random);
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The secret, if there is one, as nodes read it from the file.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whole or not at all, and readable by this user alone.
fn write(path: &Path, random: &[u8]) -> std::io::Result<()> {
    let made = path.with_extension("new");
    // What a start that was killed has left.
    if made.exists() {
        fs::remove_file(&made)?;
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&made)?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(file, "{digits}")?;
    file.sync_all()?;
    fs::rename(&made, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_made_once_and_for_this_user() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        fs::write(path.with_extension("new"), "half").expect("written");
        make(&path).expect("made");
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(text.trim_end().len(), 2 * SECRET_BYTES);
        let about = fs::metadata(&path).expect("there");
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        make(&path).expect("there already");
        let again = fs::read_to_string(&path).expect("read");
        assert_eq!(again, text);
        let other = tempfile::tempdir().expect("a folder");
        let other = other.path().join("secret");
        make(&other).expect("made");
        assert_ne!(fs::read_to_string(&other).expect("read"), text);
    }
}
