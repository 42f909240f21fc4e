//! `rufous check-config` and the settings of a real node: where they come
//! from, which one decides, and what is said of wrong ones.

use crate::program::{Client, Node, bulk, program, run, simple, stderr, stdout};
use rufous_node::settings::sources::{Given, load};
use rufous_ports::free_port;
use rufous_resp::Reply;
use rufous_server::config::Config;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

#[test]
fn the_last_source_decides_and_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("r.toml");
    std::fs::write(&file, "port = 7001\ntimeout = 11\n\nmaxclients = 12\n").expect("written");
    let path = file.display().to_string();
    let output = run(
        program(&["check-config", "--config", &path, "--port", "7003"])
            .env("RUFOUS_PORT", "7002")
            .env("RUFOUS_TIMEOUT", "22")
            .env("RUFOUS_SOMETHING_ELSE", "1"),
    );
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    let check = |name: &str, value: &str, origin: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name} = ")))
            .unwrap_or_default();
        let (setting, comment) = line.split_once('#').unwrap_or_default();
        assert_eq!(
            (setting.trim(), comment.trim()),
            (&*format!("{name} = {value}"), origin),
            "{text}"
        );
    };
    check("port", "7003", "command line");
    check("timeout", "22", "environment RUFOUS_TIMEOUT");
    check("maxclients", "12", &format!("{path}:4"));
    check("tcp-keepalive", "300", "default");
    assert!(
        stderr(&output).contains("RUFOUS_SOMETHING_ELSE is no setting"),
        "{}",
        stderr(&output)
    );
    // The file may be named in the environment; what was printed is a file again.
    let printed = dir.path().join("printed.toml");
    std::fs::write(&printed, &text).expect("written");
    let again = run(program(&["check-config"]).env("RUFOUS_CONFIG", &printed));
    let values = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned())
            .collect()
    };
    assert_eq!(values(&stdout(&again)), values(&text), "{}", stderr(&again));
}

#[test]
fn wrong_settings_are_all_told_with_their_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("r.toml");
    std::fs::write(&file, "port = 99999\nmax-clients = 7\n").expect("written");
    let path = file.display().to_string();
    for command in ["check-config", "server"] {
        let output = run(program(&[command, "--config", &path]).env("RUFOUS_TIMEOUT", "soon"));
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains(&format!(
                "{path}:1: port = '99999': argument must be between"
            )),
            "{text}"
        );
        assert!(
            text.contains(&format!(
                "{path}:2: unknown setting 'max-clients'; did you mean 'maxclients'?"
            )),
            "{text}"
        );
        assert!(
            text.contains("environment RUFOUS_TIMEOUT: timeout = 'soon'"),
            "{text}"
        );
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_file_that_is_missing_and_options_that_are_unknown() {
    let output = run(&mut program(&["check-config", "--config", "/no/such/file"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("/no/such/file: cannot read the configuration file"),
        "{}",
        stderr(&output)
    );
    let output = run(&mut program(&["server", "--prot", "7000"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--port"), "{}", stderr(&output));
}

#[test]
fn the_example_has_every_setting_with_its_default() {
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/rufous.toml");
    let effective = load(&Given {
        file: Some(example),
        ..Given::default()
    })
    .expect("valid");
    assert_eq!(effective.config, Config::default());
    for option in rufous_node::settings::options::OPTIONS {
        assert!(
            effective.is_given(option.name),
            "{} is missing in deploy/rufous.toml",
            option.name
        );
    }
}

#[test]
fn help_and_version() {
    let output = run(&mut program(&["--version"]));
    assert_eq!(
        stdout(&output).trim(),
        format!("rufous {}", env!("CARGO_PKG_VERSION"))
    );
    let help = stdout(&run(&mut program(&["server", "--help"])));
    for option in rufous_node::settings::options::OPTIONS {
        assert!(
            help.contains(&format!("--{}", option.name)),
            "{}",
            option.name
        );
    }
    assert!(help.contains("Examples:"), "{help}");
}

#[test]
fn a_node_uses_its_settings() {
    let socket_dir = tempfile::tempdir().expect("a directory");
    let socket = socket_dir.path().join("r.sock");
    let socket_text = socket.display().to_string();
    let _node = Node::start(&[
        "--unixsocket",
        &socket_text,
        "--unixsocketperm",
        "700",
        "--tcp-keepalive",
        "77",
        "--timeout",
        "5000",
    ]);
    let mut client = Client::new(UnixStream::connect(&socket).expect("a connection"));
    assert_eq!(client.call("PING"), simple("PONG"));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&socket).expect("a socket").permissions(),
    );
    assert_eq!(mode & 0o777, 0o700);
    for (name, value) in [
        ("timeout", "5000"),
        ("tcp-keepalive", "77"),
        ("unixsocketperm", "700"),
        ("workers", "2"),
    ] {
        assert_eq!(
            client.call(&format!("CONFIG GET {name}")),
            Reply::Array(vec![bulk(name), bulk(value)])
        );
    }
}

#[test]
fn passwords_are_taken_and_not_shown() {
    let node = Node::start(&["--requirepass", "s3cret"]);
    let mut client = node.client();
    assert!(matches!(client.call("GET a"), Reply::Error(text) if text.starts_with(b"NOAUTH")));
    assert_eq!(client.call("AUTH s3cret"), simple("OK"));
    assert_eq!(client.call("SET a b"), simple("OK"));
    assert!(!node.log().contains("s3cret"));
    let output = run(&mut program(&["check-config", "--requirepass", "s3cret"]));
    assert!(output.status.success() && !stdout(&output).contains("s3cret"));
}

#[test]
fn a_data_folder_serves_one_node_at_a_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().join("data").display().to_string();
    let node = Node::start(&["--dir", &folder, "--appendonly", "yes"]);
    let port = free_port().expect("a free port").to_string();
    let output = run(&mut program(&[
        "server",
        "--dir",
        &folder,
        "--port",
        &port,
        "--admin-port",
        "0",
    ]));
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    let expected = format!(
        "the data folder {folder} is in use by process {}",
        node.child.id()
    );
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn a_directory_is_made_where_it_is_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    let deep = dir.path().join("a/b");
    let deep_text = deep.display().to_string();
    // Not for a node that has nothing to put there.
    drop(Node::start(&["--dir", &deep_text]));
    assert!(!deep.exists());
    drop(Node::start(&["--dir", &deep_text, "--appendonly", "yes"]));
    assert!(deep.is_dir());
    let output = run(&mut program(&[
        "server",
        "--dir",
        "/dev/null/x",
        "--port",
        &free_port().expect("a free port").to_string(),
    ]));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("command line: dir: '/dev/null/x'"),
        "{}",
        stderr(&output)
    );
}
