//! Two processes and one data folder.

use rufous_runtime::{DirError, lock_data_dir};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const FOLDER: &str = "RUFOUS_TEST_LOCKS_FOLDER";

/// No test of its own: the other process of the test below.
#[test]
fn the_other_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let _lock = lock_data_dir(&PathBuf::from(folder)).expect("free");
    println!("\nlocked");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_second_process_is_told_who_uses_the_folder_until_that_one_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data");
    let mut other = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "the_other_process", "--nocapture"])
        .env(FOLDER, &path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let output = BufReader::new(other.stdout.take().expect("piped"));
    let locked = output.lines().any(|line| line.expect("text") == "locked");
    assert!(locked, "the other process has ended");
    let error = lock_data_dir(&path).expect_err("in use");
    assert!(
        matches!(&error, DirError::InUse { pid: Some(pid), .. } if *pid == other.id()),
        "{error}"
    );
    // As hard as it gets: nobody cleans up.
    other.kill().expect("killed");
    other.wait().expect("gone");
    lock_data_dir(&path).expect("free again");
}
