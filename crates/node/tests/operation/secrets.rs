//! Passwords and secrets of a real node: where they can be given, and that they show nowhere.

use crate::program::{Node, bulk, program, run, simple, stderr, stdout};
use rufous_ports::free_port;
use rufous_resp::Reply;
use std::os::unix::fs::PermissionsExt;

const PASSWORD: &str = "s3cret-of-clients";
const SECRET: &str = "s3cret-of-nodes-0123";

/// The words with which a process was started, and its environment too.
fn command_line(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
    String::from_utf8_lossy(&words).replace('\0', " ")
}

fn text(reply: Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn passwords_of_the_command_line_are_in_no_process_list() {
    let peers = format!("127.0.0.1:{}", free_port().expect("a port"));
    let node = Node::start(&[
        "--requirepass",
        PASSWORD,
        "--cluster-name",
        "birds",
        "--cluster-listen",
        &peers,
        &format!("--cluster-secret={SECRET}"),
    ]);
    let line = command_line(node.child.id());
    assert!(
        line.contains("--cluster-name birds") && !line.contains("s3cret"),
        "{line}"
    );
    let mut client = node.client();
    assert_eq!(client.call(&format!("AUTH {PASSWORD}")), simple("OK"));
    let shown = |name: &str, value: &str| Reply::Array(vec![bulk(name), bulk(value)]);
    assert_eq!(
        client.call("CONFIG GET cluster-secret"),
        shown("cluster-secret", "(hidden)")
    );
    // As Redis has it, for clients that may read it.
    assert_eq!(
        client.call("CONFIG GET requirepass"),
        shown("requirepass", PASSWORD)
    );
    let all = text(client.call("INFO everything")) + &text(client.call("INFO cluster"));
    assert!(
        all.contains("cluster_members") && !all.contains("s3cret"),
        "{all}"
    );
    let (_, metrics) = node.get("/metrics");
    assert!(!metrics.contains("s3cret"));
    assert!(!node.log().contains("s3cret"), "{}", node.log());
}

#[test]
fn passwords_come_from_files() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{text}\n")).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
        path.display().to_string()
    };
    let (password, secret) = (write("password", PASSWORD), write("secret", SECRET));
    let short = write("short", "too short");
    let node = Node::start(&["--requirepass-file", &password]);
    let mut client = node.client();
    let noauth = b"NOAUTH Authentication required.".to_vec();
    assert_eq!(client.call("GET a"), Reply::Error(noauth));
    assert_eq!(client.call(&format!("AUTH {PASSWORD}")), simple("OK"));
    let peers = format!("0.0.0.0:{}", free_port().expect("a port"));
    let cluster = [
        "--cluster-name",
        "birds",
        "--cluster-listen",
        &peers,
        "--cluster-advertise",
        "127.0.0.1",
    ];
    let check = |more: &[&str]| {
        let output = run(program(&["check-config"]).args(cluster).args(more));
        (output.status.success(), stdout(&output) + &stderr(&output))
    };
    let (is_right, said) = check(&["--cluster-secret-file", &secret]);
    assert!(is_right && !said.contains(SECRET), "{said}");
    for (more, why) in [
        (
            vec![],
            "set cluster-secret-file to a file with the same secret",
        ),
        (
            vec!["--cluster-secret-file", short.as_str()],
            "has 16 to 1024 bytes",
        ),
        (
            vec!["--cluster-secret-file", "/dev/null/none"],
            "cannot be read",
        ),
        (
            vec!["--cluster-secret-file", &secret, "--cluster-secret", SECRET],
            "cluster-secret is set as well",
        ),
        (
            vec![
                "--requirepass-file",
                &password,
                "--requirepass",
                PASSWORD,
                "--cluster-secret-file",
                &secret,
            ],
            "requirepass is set as well",
        ),
    ] {
        let (is_right, said) = check(&more);
        assert!(!is_right && said.contains(why), "{more:?}: {said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    let (is_right, _) = check(&["--cluster-auth", "optional"]);
    assert!(is_right);
}

/// Thousands of guesses a second, each over a connection of its own.
#[test]
fn guesses_over_new_connections_are_slow() {
    let node = Node::start(&["--requirepass", PASSWORD]);
    let mut there = node.client();
    assert_eq!(there.call(&format!("AUTH {PASSWORD}")), simple("OK"));
    let begun = std::time::Instant::now();
    let mut guessing: Vec<_> = (0..200)
        .map(|_| {
            let mut client = node.client();
            client.send("AUTH guess");
            client
        })
        .collect();
    let (mut wrong, mut refused) = (0, 0);
    for client in &mut guessing {
        match client.reply() {
            Some(Reply::Error(text)) if text.starts_with(b"WRONGPASS") => wrong += 1,
            Some(Reply::Error(text)) if text.starts_with(b"ERR too many") => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    // 20 at once, 20 that wait, and one in 100 ms.
    let most = 42 + begun.elapsed().as_millis() as usize / 100;
    assert!(wrong <= most && refused > 0, "{wrong} of {most}, {refused}");
    assert_eq!(there.call("SET a 1"), simple("OK"));
    let info = text(there.call("INFO stats"));
    let refusals = info
        .lines()
        .find(|line| line.starts_with("auth_attempts_refused:"));
    assert_eq!(refusals, Some(&*format!("auth_attempts_refused:{refused}")));
    assert!(
        node.log()
            .contains("many wrong passwords from this address")
    );
}
