//! What a node tells of its health.

use crate::program::{Node, eventually, program, run, stderr, stdout};

#[test]
fn a_worker_that_does_not_answer_makes_its_node_neither_healthy_nor_ready() {
    let node = Node::start(&["--enable-debug-command", "yes", "--workers", "2"]);
    let mut client = node.client();
    client.send("DEBUG SLEEP 60");
    for page in ["/healthz", "/readyz"] {
        eventually("the node tells", || {
            let (status, text) = node.get(page);
            (status == 503 && text.starts_with("no answer from workers [")).then_some(())
        });
    }
}

#[test]
fn health_can_be_checked_by_the_program_itself() {
    let mut node = Node::start(&[]);
    let admin = node.admin.to_string();
    let check = || run(&mut program(&["check-health", "--admin-port", &admin]));
    let output = check();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    node.signal("TERM");
    node.wait();
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot ask 127.0.0.1"),
        "{}",
        stderr(&output)
    );
}
