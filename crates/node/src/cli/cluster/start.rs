//! `rufous cluster start`: nodes as children of this process, which follows them
//! to their end and stops them when it is told to.
//!
//! They are in process groups of their own: a Ctrl-C is for this process, which
//! stops them in good order. If it is killed, nodes and coordinator continue.

use super::agreeing::{self, Agreeing};
use super::ask::{Password, status_at};
use super::layout::{Agree, FOLDER, Kept, Layout, MAX_NODES, Plan, lock};
use super::ports::Above;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rufous_base::limits::SLOTS;
use rufous_server::cluster::status::Status;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Where nothing else is said.
const PORT: u16 = 7001;
const COPIES: usize = 2;
/// How often it is looked after the children.
const LOOK: Duration = Duration::from_millis(100);
/// How long nodes have to stop by themselves.
const STOPPING: Duration = Duration::from_secs(30);
/// Before a node that has ended is started again.
const PAUSE: Duration = Duration::from_secs(1);
/// After this long without being ready the user is told where to look.
const SLOW: Duration = Duration::from_secs(30);
/// Lines of a log that are shown of a process that has ended.
const LINES: usize = 5;

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Start {
    /// Nodes, where the folder has fewer
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_NODES)))]
    nodes: u16,
    /// The folder of the cluster: what is there goes on
    #[arg(long, value_name = "PATH", default_value = FOLDER)]
    dir: PathBuf,
    /// The port for clients of the first node; the others follow [default: 7001]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Copies of each key [default: 2]
    #[arg(long, value_name = "COUNT")]
    copies: Option<usize>,
    /// Threads of each node that serve clients [default: 1]
    #[arg(long, value_name = "COUNT")]
    workers: Option<usize>,
    /// The cluster's name [default: local]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What nodes agree through: `process`, a process of this program; `etcd`, one that
    /// is started for them; `etcd://HOST:PORT,...`, an existing one, with a --name that no
    /// other cluster has in it: settings for it (cluster-etcd-...) are read from
    /// rufous.toml in the folder; `auto`: etcd if it is installed, else `process`
    #[arg(long, value_name = "WHAT", default_value = "auto", value_parser = through)]
    coordinator: Through,
    /// Start nodes again that end by themselves
    #[arg(long)]
    restart: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Through {
    Auto,
    This(Agree),
}

fn through(text: &str) -> Result<Through, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Through::Auto),
        (_, Ok(agree)) => Ok(Through::This(agree)),
        (_, Err(_)) => Err(
            "it is auto, etcd, process or etcd://host:port, with further host:port behind commas"
                .to_owned(),
        ),
    }
}

pub(super) fn run(start: &Start) -> Result<()> {
    let dir = &start.dir;
    let Some(_lock) = lock(dir)? else {
        bail!("the cluster in {} runs already", dir.display());
    };
    let found = Layout::open(dir)?;
    let is_new = found.is_none();
    let layout = match found {
        Some(layout) => {
            suits(start, &layout.plan)
                .with_context(|| format!("the cluster in {} is there already", dir.display()))?;
            layout
        }
        None => Layout::new(dir, plan(start)?),
    };
    let coordinator = match agreeing::left(&layout) {
        Some(_) => Kept::Runs,
        None => Kept::NotYet,
    };
    // Before anything is written: a plan that cannot work would bind the next start.
    layout.check_ports(&layout.nodes_to_be(start.nodes)?, coordinator)?;
    if is_new {
        layout.save()?;
    }
    layout.make_secret()?;
    while layout.nodes()?.len() < usize::from(start.nodes) {
        layout.add()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(serve(start, layout))
}

/// Of a new cluster.
fn plan(start: &Start) -> Result<Plan> {
    let coordinator = match &start.coordinator {
        Through::Auto => agreeing::usual(),
        Through::This(agree) => agree.clone(),
    };
    let is_shared = matches!(coordinator, Agree::At(_));
    ensure!(
        start.name.is_some() || !is_shared,
        "other clusters may agree through the same etcd: give this one a name that none of them has, by --name"
    );
    let port = start.port.unwrap_or(PORT);
    let above = Above::choose(port, start.nodes).context(
        "--port leaves no room for the other ports of the nodes: choose one below 65100, such as 7001",
    )?;
    Ok(Plan {
        name: start.name.clone().unwrap_or_else(|| "local".to_owned()),
        port,
        copies: start.copies.unwrap_or(COPIES),
        workers: start.workers.unwrap_or(1),
        coordinator,
        above,
    })
}

/// Refuses what is wanted of a cluster that was made otherwise: it would go on as it is.
fn suits(start: &Start, plan: &Plan) -> Result<()> {
    let number = |given: Option<usize>| given.map(|given| given.to_string());
    let port = start.port.map(|port| port.to_string());
    let all = [
        ("--port", port, plan.port.to_string()),
        ("--copies", number(start.copies), plan.copies.to_string()),
        ("--workers", number(start.workers), plan.workers.to_string()),
        ("--name", start.name.clone(), plan.name.clone()),
    ];
    let coordinator = match &start.coordinator {
        Through::Auto => None,
        Through::This(agree) => Some(String::from(agree.clone())),
    };
    let made = String::from(plan.coordinator.clone());
    let last = [("--coordinator", coordinator, made)];
    for (option, given, made) in all.into_iter().chain(last) {
        let suits = given.is_none_or(|given| given == made);
        ensure!(
            suits,
            "it was made with {option} {made}: leave the option out, or choose another folder by --dir"
        );
    }
    Ok(())
}

/// So that a signal of the terminal goes to this process alone.
pub(super) fn apart(command: &mut Command) {
    command.process_group(0);
}

struct Running {
    layout: Layout,
    restart: bool,
    nodes: BTreeMap<u16, Node>,
    agreeing: Agreeing,
    /// Whether all nodes were in the cluster once, and every slot had all its copies.
    is_ready: bool,
}

enum Node {
    Runs(Child),
    /// Since then.
    Ended(Instant),
}

async fn serve(start: &Start, layout: Layout) -> Result<()> {
    let mut ends = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    let agreeing = Agreeing::begin(&layout)?;
    let mut running = Running {
        layout,
        restart: start.restart,
        nodes: BTreeMap::new(),
        agreeing,
        is_ready: false,
    };
    let begun = Instant::now();
    let mut patience = SLOW;
    let mut is_shown = false;
    loop {
        if let Err(error) = running.look() {
            running.stop(&mut ends).await;
            return Err(error);
        }
        if !is_shown {
            is_shown = true;
            say(&running.text());
        }
        let [interrupt, terminate, hangup] = &mut ends;
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        if running.is_ready {
            continue;
        }
        if let Some(status) = running.ready().await {
            running.is_ready = true;
            say(&format!(
                "ready: all {SLOTS} slots are served, copies of each: {}\n",
                status.copies
            ));
        } else if begun.elapsed() > patience {
            patience *= 2;
            say(&format!(
                "not ready after {} s: rufous cluster status {}\n",
                begun.elapsed().as_secs(),
                running
                    .layout
                    .address(running.nodes.keys().next().copied().unwrap_or(1))
            ));
        }
    }
    say("stopping\n");
    running.stop(&mut ends).await;
    Ok(())
}

/// A terminal that is gone is no reason to stop.
pub(super) fn say(text: &str) {
    let mut out = std::io::stdout();
    let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

impl Running {
    /// Starts what is there and does not run, and tells what has ended.
    fn look(&mut self) -> Result<()> {
        for number in self.layout.nodes()? {
            match self.nodes.get_mut(&number) {
                None => {
                    let child = self.spawn(number)?;
                    self.nodes.insert(number, Node::Runs(child));
                }
                Some(Node::Runs(child)) => {
                    let Some(status) = child.try_wait()? else {
                        continue;
                    };
                    let text = self.ended(number, status);
                    ensure!(
                        self.is_ready || self.restart,
                        "{}the cluster is stopped, as it is not ready without this node",
                        text
                    );
                    say(&text);
                    self.nodes.insert(number, Node::Ended(Instant::now()));
                }
                Some(Node::Ended(since)) if self.restart && since.elapsed() > PAUSE => {
                    let child = self.spawn(number)?;
                    self.nodes.insert(number, Node::Runs(child));
                    say(&format!("node-{number} starts again\n"));
                }
                Some(Node::Ended(_)) => {}
            }
        }
        self.agreeing.look(&self.layout)?;
        let runs = |node: &Node| matches!(node, Node::Runs(_));
        ensure!(
            self.restart || self.nodes.values().any(runs),
            "no node runs any more"
        );
        Ok(())
    }

    fn ended(&self, number: u16, status: std::process::ExitStatus) -> String {
        let folder = self.layout.node(number);
        let (log, errors) = (folder.join("log"), folder.join("errors"));
        let mut text = format!("node-{number} has ended ({status}); see {}", log.display());
        if status.code().is_some_and(|code| code != 0) {
            text.push_str(&last_lines(&log));
            text.push_str(&last_lines(&errors));
        }
        text.push('\n');
        text
    }

    fn spawn(&self, number: u16) -> Result<Child> {
        let Layout { plan, .. } = &self.layout;
        let (ports, folder) = (self.layout.ports(number), self.layout.node(number));
        let at = |port: u16| format!("127.0.0.1:{port}");
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("RUFOUS_") {
                command.env_remove(name);
            }
        }
        command.arg("server");
        if let Some(config) = self.layout.config_of(number) {
            command.arg("--config").arg(config);
        }
        command
            .arg("--dir")
            .arg(folder.join("data"))
            .arg("--logfile")
            .arg(folder.join("log"))
            .args(["--bind", "127.0.0.1", "--pin", "no"])
            .args(["--port", &ports.plain.to_string()])
            .args(["--admin-port", &ports.admin.to_string()])
            .args(["--workers", &plan.workers.to_string()])
            .args(["--cluster-name", &plan.name])
            .args(["--cluster-coordinator", &Agreeing::place(&self.layout)])
            .args(["--cluster-listen", &at(ports.peer)])
            .args(["--cluster-clients", &at(ports.clients)])
            .args(["--cluster-copies", &plan.copies.to_string()])
            .arg("--cluster-secret-file")
            .arg(self.layout.secret())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("errors"))?);
        apart(&mut command);
        command
            .spawn()
            .with_context(|| format!("cannot start node-{number}"))
    }

    /// The status of the cluster, once every node is in it, every slot has all its copies, and lattice keys are served.
    async fn ready(&self) -> Option<Status> {
        let runs = |(number, node): (&u16, &Node)| matches!(node, Node::Runs(_)).then_some(*number);
        let running = self.nodes.iter().find_map(runs)?;
        let at = self.layout.address(running);
        let asked = tokio::task::spawn_blocking(move || status_at(&at, &Password::default()));
        let status = asked.await.ok()?.ok()?;
        let alive = status.nodes.iter().filter(|node| node.is_alive).count();
        (status.is_well() && alive >= self.nodes.len()).then_some(status)
    }

    /// Stops all nodes, and what they agree through after them. A second signal
    /// ends all at once.
    async fn stop(&mut self, ends: &mut [tokio::signal::unix::Signal; 3]) {
        for node in self.nodes.values() {
            if let Node::Runs(child) = node {
                terminate(child);
            }
        }
        let until = Instant::now() + STOPPING;
        let [interrupt, terminated, _] = ends;
        let mut at_once = false;
        while !self.has_stopped() && !at_once && Instant::now() < until {
            tokio::select! {
                _ = interrupt.recv() => at_once = true,
                _ = terminated.recv() => at_once = true,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
        for (number, node) in &mut self.nodes {
            if let Node::Runs(child) = node
                && !matches!(child.try_wait(), Ok(Some(_)))
            {
                say(&format!("node-{number} is killed\n"));
                let _gone = child.kill();
                let _gone = child.wait();
            }
        }
        self.agreeing.stop();
    }

    fn has_stopped(&mut self) -> bool {
        self.nodes.values_mut().all(|node| match node {
            Node::Runs(child) => matches!(child.try_wait(), Ok(Some(_))),
            Node::Ended(_) => true,
        })
    }

    /// What there is, and how to get there.
    fn text(&self) -> String {
        let mut text = format!(
            "\nA cluster of this machine in {}, called {}.\n\n{:<9}{:<19}{:<23}{}\n",
            self.layout.folder.display(),
            self.layout.plan.name,
            "",
            "any client",
            "clients that redirect",
            "metrics"
        );
        for number in self.nodes.keys() {
            let ports = self.layout.ports(*number);
            let _ = writeln!(
                text,
                "{:<9}127.0.0.1:{:<9}127.0.0.1:{:<13}http://127.0.0.1:{}/",
                format!("node-{number}"),
                ports.plain,
                ports.clients,
                ports.admin
            );
        }
        text.push('\n');
        text.push_str(&Agreeing::text(&self.layout));
        let first = self.nodes.keys().next().copied().unwrap_or(1);
        let ports = self.layout.ports(first);
        let (folder, plain, clients) = (self.layout.folder.display(), ports.plain, ports.clients);
        let _ = write!(
            text,
            "
Try, in another terminal:
  redis-cli -p {plain} set greeting hello
  redis-cli -c -p {clients} get greeting
  rufous cluster status 127.0.0.1:{plain}
  rufous cluster add --dir {folder}

Ctrl-C stops the nodes; what they have is there for the next start.

"
        );
        text
    }
}

/// The end of a log, each line below the text that it follows.
pub(super) fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LINES));
    last.map(|line| format!("\n  {line}")).collect()
}

/// Asks a process to stop, in good order.
pub(super) fn terminate(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Gone already: as it should be.
        let _gone = kill_process(pid, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_there_is_not_started_as_another_one() {
        let wanted = |port, copies, workers, name: Option<&str>| Start {
            nodes: 3,
            dir: FOLDER.into(),
            port,
            copies,
            workers,
            name: name.map(str::to_owned),
            coordinator: Through::This(Agree::Process),
            restart: false,
        };
        let made = plan(&wanted(None, None, Some(3), None)).expect("a plan");
        assert_eq!((made.port, made.copies, made.workers), (PORT, COPIES, 3));
        for same in [
            wanted(None, None, None, None),
            wanted(Some(PORT), Some(COPIES), Some(3), Some("local")),
        ] {
            assert!(suits(&same, &made).is_ok());
        }
        let told = |start: &Start| suits(start, &made).expect_err("refused").to_string();
        assert!(told(&wanted(None, None, Some(2), None)).contains("made with --workers 3"));
        assert!(told(&wanted(None, Some(1), None, None)).contains("made with --copies 2"));
        assert!(told(&wanted(Some(9000), None, None, None)).contains("made with --port 7001"));
        assert!(told(&wanted(None, None, None, Some("x"))).contains("made with --name local"));
        let through = Start {
            coordinator: Through::This(Agree::Etcd),
            ..wanted(None, None, None, None)
        };
        assert!(told(&through).contains("made with --coordinator process"));
    }
}
