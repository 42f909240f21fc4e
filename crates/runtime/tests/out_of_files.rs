//! Accepting when the process has no file descriptor left. Alone in its
//! process, because it takes them all.

mod common;

use common::*;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::File;
use std::net::TcpStream;

#[test]
fn accepting_recovers_when_there_are_files_again() {
    let few = Some(128);
    let limit = Rlimit {
        current: few,
        maximum: few,
    };
    setrlimit(Resource::Nofile, limit).expect("lowering is always allowed");
    let node = echo(config(1));
    assert_eq!(node.fd_limit().now, 128);
    assert!(!node.fd_limit().enough);
    let mut before = client(&node);
    assert_eq!(ask(&mut before, b"before\n"), b"before\n");

    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    // One for the client's end; none for the node's.
    files.pop();
    let mut stranded = TcpStream::connect(address(&node)).expect("the kernel's queue takes it");
    wait_until(&node, |s| s.accept_errors > 1);
    assert_eq!(ask(&mut before, b"meanwhile\n"), b"meanwhile\n");
    drop(files);
    assert_eq!(ask(&mut stranded, b"at last\n"), b"at last\n");
}
