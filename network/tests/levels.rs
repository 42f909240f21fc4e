//! The demonstration of levels on real nodes, for some seconds: right clients see what their level promises, and
//! careless ones are found.

use std::path::Path;
use std::process::{Command, Output};

use rufous_skip::{Missing, skip};

/// None where this machine cannot run it.
fn levels(arguments: &[&str]) -> Option<Output> {
    let program = Path::new(env!("CARGO_BIN_EXE_rufous-network"));
    if !program.with_file_name("rufous").is_file() {
        skip(Missing::Permission(
            "the server: cargo build -p rufous-node",
        ));
        return None;
    }
    let obstacle = Command::new(program).arg("obstacle").output().unwrap();
    let obstacle = String::from_utf8_lossy(&obstacle.stdout).into_owned();
    if !obstacle.trim().is_empty() {
        skip(Missing::Permission(obstacle.trim()));
        return None;
    }
    // What a failed run keeps goes with it.
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(["levels", "--seed", "1", "--seconds", "5"]);
    let output = command
        .args(arguments)
        .env("TMPDIR", folder.path())
        .output();
    Some(output.unwrap())
}

#[test]
fn levels_keep_their_promises_while_a_node_is_killed() {
    let Some(output) = levels(&[]) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert_eq!(said.matches("saw        no anomaly").count(), 10, "{said}");
}

#[test]
fn broken_promises_are_found() {
    let Some(output) = levels(&["--careless"]) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("did not keep their promise"), "{said}");
}
