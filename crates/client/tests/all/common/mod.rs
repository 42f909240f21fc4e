//! Servers as processes of their own, killed with the test.

use rufous_client::{Addr, Client, Value, cmd};
use rufous_ports::free_ports;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a slow and busy machine.
const HANG: Duration = Duration::from_secs(120);

pub(crate) struct Process {
    child: Child,
    _dir: tempfile::TempDir,
}

impl Process {
    pub(crate) fn start(program: &str, args: &[String]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let log = std::fs::File::create(dir.path().join("log")).expect("a file");
        let child = Command::new(program)
            .args(args)
            .arg("--dir")
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("started");
        Self { child, _dir: dir }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for what must happen in the end.
pub(crate) async fn wait_until<F: Future<Output = bool>>(
    what: &str,
    mut reached: impl FnMut() -> F,
) {
    let begin = Instant::now();
    while !reached().await {
        assert!(begin.elapsed() < HANG, "did not happen: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let begin = Instant::now();
    loop {
        match Client::connect(url).await {
            Ok(client) => return client,
            Err(error) => assert!(begin.elapsed() < HANG, "{url}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The program `rufous`, beside which this test was built; it is built where it is not there yet.
pub(crate) fn rufous() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.ancestors().nth(2).expect("target/debug/deps/test");
    let program = folder.join("rufous");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let target = folder.parent().expect("target");
        let built = Command::new(cargo)
            .args(["build", "-p", "rufous-node", "--target-dir"])
            .arg(target)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .status();
        assert!(built.expect("cargo runs").success());
    }
    program
}

pub(crate) fn start_rufous(port: u16, more: &[&str]) -> Process {
    let fixed = [
        "server",
        "--bind",
        "127.0.0.1",
        "--workers",
        "2",
        "--admin-port",
        "0",
    ];
    let mut args: Vec<String> = fixed.map(str::to_owned).to_vec();
    args.extend(["--appendonly", "no", "--save", "", "--pin", "no"].map(str::to_owned));
    args.extend(["--port".to_owned(), port.to_string()]);
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    Process::start(rufous().to_str().expect("UTF-8"), &args)
}

pub(crate) struct RedisNode {
    pub(crate) addr: Addr,
    pub(crate) process: Process,
}

impl RedisNode {
    pub(crate) fn start() -> Self {
        let [port, bus] = free_ports().expect("free ports");
        let options = [
            ("--port", port.to_string()),
            ("--bind", "127.0.0.1".into()),
            ("--cluster-enabled", "yes".into()),
            ("--cluster-port", bus.to_string()),
            ("--cluster-node-timeout", "2000".into()),
            ("--save", String::new()),
        ];
        let args: Vec<String> = options
            .into_iter()
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect();
        let process = Process::start("redis-server", &args);
        Self {
            addr: Addr::new("127.0.0.1", port),
            process,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }
}

/// Three owners and a replica of the first one.
pub(crate) async fn redis_cluster() -> Vec<RedisNode> {
    let nodes: Vec<RedisNode> = (0..4).map(|_| RedisNode::start()).collect();
    let shares = [(0, 5460), (5461, 10922), (10923, 16383)];
    let first = connect(&nodes[0].url()).await;
    let on = |at: usize, command| first.run_on(&nodes[at].addr, command);
    for node in &nodes {
        connect(&node.url()).await;
    }
    for (at, (from, to)) in shares.into_iter().enumerate() {
        on(at, cmd("CLUSTER ADDSLOTSRANGE").arg(from).arg(to))
            .await
            .expect("slots");
    }
    let bus = |info: &str| -> String {
        let line = info.lines().find(|line| line.contains("myself"));
        let text = line
            .expect("itself")
            .split_whitespace()
            .nth(1)
            .expect("an address");
        text.split('@')
            .nth(1)
            .expect("a bus port")
            .split(',')
            .next()
            .expect("a port")
            .to_owned()
    };
    for (at, node) in nodes.iter().enumerate().skip(1) {
        let info: String = on(at, cmd("CLUSTER NODES"))
            .await
            .and_then(Value::to)
            .expect("nodes");
        let meet = cmd("CLUSTER MEET")
            .arg(node.addr.host())
            .arg(u32::from(node.addr.port()));
        on(0, meet.arg(bus(&info))).await.expect("met");
    }
    let owner: String = on(0, cmd("CLUSTER MYID"))
        .await
        .and_then(Value::to)
        .expect("an id");
    wait_until("the replica follows", async || {
        on(3, cmd("CLUSTER REPLICATE").arg(&owner)).await.is_ok()
    })
    .await;
    // Before it has the owner's data a replica answers as if there were none.
    wait_until("the replica is up to date", async || {
        let info = on(3, cmd("INFO").arg("replication")).await;
        let info: String = info.and_then(Value::to).expect("info");
        info.contains("master_link_status:up")
    })
    .await;
    for at in 0..nodes.len() {
        wait_until("the cluster agrees", async || {
            let info: String = on(at, cmd("CLUSTER INFO"))
                .await
                .and_then(Value::to)
                .expect("info");
            let slots: Value = on(at, cmd("CLUSTER SLOTS")).await.expect("slots");
            info.contains("cluster_state:ok")
                && format!("{slots:?}").contains(&nodes[3].addr.port().to_string())
        })
        .await;
    }
    nodes
}
