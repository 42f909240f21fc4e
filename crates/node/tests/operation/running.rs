//! A real node as its operator sees it: how it starts and stops, what it logs,
//! what it tells about itself over HTTP, and whom it lets in.

use crate::program::{
    Client, Node, bulk, eventually, http_get, in_memory, run, simple, stderr, stdout,
};
use rufous_ports::free_port;
use rufous_resp::Reply;
use rufous_skip::{Missing, skip};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};

#[test]
fn a_node_stops_in_good_order_with_a_client_connected() {
    for signal in ["TERM", "INT"] {
        let mut node = Node::start(&[]);
        let mut client = node.client();
        assert_eq!(client.call("SET a 1"), simple("OK"));
        node.signal(signal);
        assert_eq!(node.wait().code(), Some(0), "{}", node.log());
        assert_eq!(client.reply(), None);
        let log = node.log();
        assert!(
            log.contains(&format!("SIG{signal}")) && log.contains("stopped"),
            "{log}"
        );
    }
}

/// A client that does not take its replies: more of them than the sockets have
/// room for wait in the node, and a stop waits for them.
fn busy_client(node: &Node) -> Client {
    const VALUE: usize = 1024 * 1024;
    let mut client = node.client();
    assert_eq!(
        client.call(&format!("SET big {}", "x".repeat(VALUE))),
        simple("OK")
    );
    for _ in 0..64 {
        client.send("GET big");
    }
    let mut sent_before = -1.0;
    eventually("replies that wait", || {
        let samples = samples(node);
        let made = samples
            .get("rufous_commands_total{command=\"get\"}")
            .unwrap_or(&0.0)
            * VALUE as f64;
        let sent = sum(&samples, "rufous_sent_bytes_total");
        // Nothing moves any more, and some are left.
        let stuck = made - sent >= VALUE as f64 && sent == sent_before;
        sent_before = sent;
        stuck.then_some(())
    });
    client
}

#[test]
fn while_it_drains_a_node_is_healthy_but_not_ready() {
    let mut node = Node::start(&[]);
    assert_eq!(node.get("/readyz"), (200, "ready\n".into()));
    assert_eq!(node.get("/healthz"), (200, "ok\n".into()));
    let mut client = busy_client(&node);
    node.signal("TERM");
    eventually("the node is not ready", || {
        (node.get("/readyz") == (503, "stopping\n".into())).then_some(())
    });
    assert_eq!(node.get("/healthz").0, 200);
    // What was answered before the stop arrives in full.
    let mut replies = 0;
    while let Some(reply) = client.reply() {
        assert!(matches!(reply, Reply::Bulk(bytes) if bytes.len() == 1024 * 1024));
        replies += 1;
    }
    assert!(replies > 0);
    assert_eq!(node.wait().code(), Some(0), "{}", node.log());
}

#[test]
fn a_second_signal_ends_the_wait() {
    let mut node = Node::start(&[]);
    let _client = busy_client(&node);
    node.signal("TERM");
    eventually("the node stops", || {
        (node.get("/readyz").0 == 503).then_some(())
    });
    node.signal("INT");
    assert_eq!(node.wait().code(), Some(1), "{}", node.log());
}

#[test]
fn the_log_file_is_opened_anew_at_sighup() {
    let node = Node::start(&[]);
    let old = node.dir.path().join("old");
    std::fs::rename(node.log_path(), &old).expect("renamed");
    node.signal("HUP");
    eventually("a new log", || node.log().contains("SIGHUP").then_some(()));
    assert!(
        !std::fs::read_to_string(old)
            .expect("a log")
            .contains("SIGHUP")
    );
    assert_eq!(node.client().call("PING"), simple("PONG"));
}

#[test]
fn logs_are_objects_where_that_is_asked_for_and_their_level_changes() {
    let node = Node::start(&["--log-format", "json"]);
    let mut client = node.client();
    let lines = || node.log().matches("SIGHUP").count();
    let hang_up = || node.signal("HUP");
    hang_up();
    eventually("a line", || (lines() == 1).then_some(()));
    // Lines of level INFO stop some time after the change; from then on they stay away.
    assert_eq!(client.call("CONFIG SET loglevel warning"), simple("OK"));
    eventually("no more lines", || {
        let before = lines();
        hang_up();
        std::thread::sleep(std::time::Duration::from_millis(50));
        (lines() == before).then_some(())
    });
    assert_eq!(
        client.call("CONFIG GET loglevel"),
        Reply::Array(vec![bulk("loglevel"), bulk("warning")])
    );
    assert_eq!(client.call("CONFIG SET loglevel debug"), simple("OK"));
    let before = lines();
    eventually("lines again", || {
        hang_up();
        (lines() > before).then_some(())
    });
    for line in node.log().lines() {
        let object: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(
            object["level"].is_string() && object["timestamp"].is_string(),
            "{line}"
        );
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let output = run(&mut in_memory(&[
        "server",
        "--port",
        &port,
        "--admin-port",
        "0",
    ]));
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        text.contains(&format!("rufous: cannot listen on 127.0.0.1:{port}"))
            && text.contains("--port"),
        "{text}"
    );
    let output = run(&mut in_memory(&[
        "server",
        "--port",
        &free_port().expect("a free port").to_string(),
        "--admin-port",
        &port,
    ]));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("admin-port"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_terminal_or_nothing_at_all_gets_a_banner() {
    let mut node = in_memory(&[]);
    let port = free_port().expect("a free port").to_string();
    node.env("RUFOUS_PORT", &port)
        .env("RUFOUS_ADMIN_PORT", "0")
        .env("RUFOUS_WORKERS", "1");
    let mut child = node
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("spawned");
    let mut out = child.stdout.take().expect("a pipe");
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    while !text.contains("Ctrl-C") {
        let got = out.read(&mut chunk).expect("read");
        assert!(got > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&chunk[..got]));
    }
    let kill = Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .expect("kill");
    assert!(kill.success() && child.wait().expect("an end").success());
    assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
    assert!(
        text.contains(&format!("redis-cli -p {port} set greeting hello")),
        "{text}"
    );
}

/// All samples of a family together.
fn sum(samples: &BTreeMap<String, f64>, name: &str) -> f64 {
    let of = |series: &str| series == name || series.starts_with(&format!("{name}{{"));
    samples
        .iter()
        .filter(|(series, _)| of(series))
        .map(|(_, value)| value)
        .sum()
}

/// The samples of `/metrics`, each line checked.
fn samples(node: &Node) -> BTreeMap<String, f64> {
    let (status, text) = node.get("/metrics");
    assert_eq!(status, 200);
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut helped = "";
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped = rest.split(' ').next().unwrap_or_default();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert_eq!(name, helped, "HELP comes first");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(kinds.insert(name, kind).is_none(), "{name} comes twice");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().unwrap_or_default();
            assert_eq!(name, helped, "{line}");
            assert!(
                name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "{line}"
            );
            check_labels(&series[name.len()..]);
            let value: f64 = value.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
            assert!(
                samples.insert(series.to_owned(), value).is_none(),
                "{series} comes twice"
            );
        }
    }
    samples
}

fn check_labels(labels: &str) {
    if labels.is_empty() {
        return;
    }
    let inner = labels
        .strip_prefix('{')
        .and_then(|l| l.strip_suffix('}'))
        .unwrap_or_else(|| panic!("{labels}"));
    for label in inner.split(',') {
        let (name, value) = label.split_once('=').unwrap_or_else(|| panic!("{labels}"));
        assert!(
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
            "{labels}"
        );
        let value = value
            .strip_prefix('"')
            .and_then(|v| v.strip_suffix('"'))
            .unwrap_or_else(|| panic!("{labels}"));
        assert!(!value.contains(['"', '\n']), "{labels}");
    }
}

#[test]
fn metrics_follow_what_clients_do() {
    let node = Node::start(&[]);
    let before = samples(&node);
    let mut client = node.client();
    for n in 0..100 {
        assert_eq!(client.call(&format!("SET key:{n} value")), simple("OK"));
    }
    assert!(matches!(client.call("INCR key:0"), Reply::Error(_)));
    assert!(matches!(client.call("NOSUCHCOMMAND"), Reply::Error(_)));
    let after = eventually("the figures of all that", || {
        let after = samples(&node);
        (after.get("rufous_commands_total{command=\"incr\"}") == Some(&1.0)).then_some(after)
    });
    assert_eq!(after["rufous_commands_total{command=\"set\"}"], 100.0);
    assert_eq!(sum(&after, "rufous_keys"), 100.0);
    assert_eq!(sum(&after, "rufous_worker_up"), 2.0);
    assert_eq!(sum(&after, "rufous_clients"), 1.0);
    assert_eq!(after["rufous_error_replies_total{error=\"ERR\"}"], 2.0);
    assert!(sum(&after, "rufous_worker_commands_total") >= 101.0);
    for name in [
        "rufous_received_bytes_total",
        "rufous_sent_bytes_total",
        "rufous_turns_total",
        "rufous_connections_total",
    ] {
        assert!(sum(&after, name) > sum(&before, name), "{name}");
    }
    for name in [
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_open_fds",
        "rufous_memory_bytes",
    ] {
        assert!(sum(&after, name) > 0.0, "{name}");
    }
    for name in before.keys().filter(|name| {
        name.split('{')
            .next()
            .is_some_and(|name| name.ends_with("_total"))
    }) {
        assert!(
            after.get(name).is_none_or(|value| value >= &before[name]),
            "{name} went down"
        );
    }
}

#[test]
fn the_admin_port_is_bounded_and_answers_only_what_it_knows() {
    let node = Node::start(&[]);
    assert_eq!(node.get("/nothing").0, 404);
    let (status, index) = node.get("/");
    assert!(status == 200 && index.contains("/metrics"), "{index}");
    let mut long = TcpStream::connect(("127.0.0.1", node.admin)).expect("a connection");
    let head = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}",
        "x".repeat(64 * 1024)
    );
    let _ = long.write_all(head.as_bytes());
    let mut answer = Vec::new();
    let _ = long.read_to_end(&mut answer);
    assert!(
        !answer.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    // Idle connections take all places; when they are gone, there is room again.
    let idle: Vec<_> = (0..200)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", node.admin)).ok())
        .collect();
    assert_eq!(node.client().call("PING"), simple("PONG"));
    drop(idle);
    eventually("an answer", || {
        http_get(node.admin, "/healthz")
            .ok()
            .filter(|(status, _)| *status == 200)
    });
}

#[test]
fn the_most_clients_change_while_the_node_runs() {
    let node = Node::start(&["--maxclients", "3"]);
    let mut first = node.client();
    let mut others = [node.client(), node.client()];
    others
        .iter_mut()
        .for_each(|client| assert_eq!(client.call("PING"), simple("PONG")));
    let refused = Reply::Error("ERR max number of clients reached".into());
    assert_eq!(node.client().reply(), Some(refused));
    assert_eq!(first.call("CONFIG SET maxclients 5"), simple("OK"));
    eventually("room", || {
        let mut client = node.client();
        client.send("PING");
        (client.reply() == Some(simple("PONG"))).then_some(())
    });
}

/// An address of this machine that is not loopback, if it has one: the one it
/// would send from. Nothing is sent.
fn outer_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket
        .local_addr()
        .ok()
        .map(|address| address.ip())
        .filter(|ip| !ip.is_loopback())
}

#[test]
fn protected_mode_lets_this_machine_in() {
    let node = Node::start(&["--bind", "0.0.0.0"]);
    assert_eq!(node.client().call("PING"), simple("PONG"));
    assert_eq!(
        Client::connect(("127.0.0.2", node.port)).call("PING"),
        simple("PONG")
    );
    // A client of this machine is one by any of its addresses.
    if let Some(ip) = outer_address() {
        assert_eq!(
            Client::connect((ip, node.port)).call("PING"),
            simple("PONG")
        );
    }
}

/// Another machine, as far as the node can tell: in a network of our own the
/// route to the node's address leaves from an address that is neither loopback
/// nor the node's.
#[test]
fn protected_mode_turns_other_machines_away() {
    const NETWORK: &str = "ip link set lo up
ip addr add 10.231.0.1/32 dev lo && ip addr add 10.231.0.2/32 dev lo
ip route replace local 10.231.0.1 dev lo table local src 10.231.0.2";
    const CONVERSE: &str = r#"
"$PROGRAM" server --port 7000 --bind 0.0.0.0 --workers 1 --admin-port 0 --loglevel nothing --appendonly no --save '' & node=$!
trap 'kill $node' EXIT
for i in $(seq 300); do (exec 5<>/dev/tcp/127.0.0.1/7000) 2>/dev/null && break; sleep 0.1; done
exec 5<>/dev/tcp/10.231.0.1/7000; timeout 30 cat <&5
exec 6<>/dev/tcp/127.0.0.1/7000; printf 'PING\r\nQUIT\r\n' >&6; timeout 30 cat <&6"#;
    let in_network = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["-rn", "bash", "-ec", script])
            .env("PROGRAM", env!("CARGO_BIN_EXE_rufous"));
        command.output()
    };
    if !in_network(NETWORK).is_ok_and(|output| output.status.success()) {
        skip(Missing::Permission(
            "permission to create network namespaces (unshare -rn)",
        ));
        return;
    }
    let output = in_network(&format!("{NETWORK}\n{CONVERSE}")).expect("it ran before");
    let text = stdout(&output);
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("-DENIED Rufous is running in protected mode"),
        "{text} {}",
        stderr(&output)
    );
    assert_eq!(lines[1..], ["+PONG", "+OK"], "{text}");
}

/// A node that may open so many files, without metrics.
fn with_files(files: u32, port: u16) -> Command {
    let mut command = Command::new("bash");
    let script = r#"ulimit -n "$FILES" && exec "$PROGRAM" server --port "$PORT" --workers 1 --admin-port 0 --appendonly no --save ''"#;
    command.args(["-c", script]).env("FILES", files.to_string());
    command
        .env("PROGRAM", env!("CARGO_BIN_EXE_rufous"))
        .env("PORT", port.to_string());
    command
}

#[test]
fn without_enough_files_fewer_clients_are_let_in() {
    let output = run(&mut with_files(128, free_port().expect("a free port")));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("128 open files are too few"),
        "{}",
        stderr(&output)
    );
    let port = free_port().expect("a free port");
    let mut child = with_files(200, port)
        .stderr(Stdio::piped())
        .spawn()
        .expect("spawned");
    eventually("the node listens", || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let shown = Client::connect(("127.0.0.1", port)).call("CONFIG GET maxclients");
    child.kill().expect("killed");
    let log = stderr(&child.wait_with_output().expect("an end"));
    assert_eq!(
        shown,
        Reply::Array(vec![bulk("maxclients"), bulk("72")]),
        "{log}"
    );
    assert!(log.contains("maxclients is lowered"), "{log}");
}
