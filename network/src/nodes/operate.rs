//! What an operator does: drains nodes, and mistakes.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rufous_bench::client::Client;

use super::{LOOKS, Nodes, PATIENCE, Process};
use crate::space::Host;

/// An address of this network without a host.
const NOWHERE: &str = "10.77.0.250";
/// An operator waits so long for an answer.
const ANSWER: Duration = Duration::from_secs(10);

impl Nodes {
    pub fn folder(&mut self, no: usize) -> Result<&std::path::Path> {
        Ok(&self.node(no)?.folder)
    }

    /// Removes all that is in the folder of a node that does not run.
    pub fn empty(&mut self, no: usize) -> Result<()> {
        let folder = self.folder(no)?.to_owned();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                std::fs::remove_dir_all(path)?
            } else {
                std::fs::remove_file(path)?
            }
        }
        Ok(())
    }

    /// Moves all slots of a node to others.
    pub fn drain(&mut self, no: usize) -> Result<()> {
        let at = self.node(no)?.plain().to_string();
        self.operate(&["drain", &at])
    }

    fn operate(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.plan.program);
        let output = command.arg("cluster").args(words).output()?;
        ensure!(
            output.status.success(),
            "rufous cluster {}: {}{}",
            words.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// What `CLUSTER STATUS` says at a node.
    pub fn status(&mut self, no: usize) -> Result<String> {
        let at = self.node(no)?.plain();
        let mut client = Client::connect_within(at, ANSWER)?;
        client.call(&["CLUSTER", "STATUS"])?.text()
    }

    /// Starts one more node with an empty folder; its number.
    pub fn join(&mut self) -> Result<usize> {
        let no = self.nodes.len() + 1;
        self.add(no)?;
        Ok(no)
    }

    /// Forgets a node that has been drained and stopped.
    pub fn leave(&mut self, no: usize) {
        self.nodes.retain(|node| node.no != no);
    }

    /// Starts one more node under an address that no one reaches.
    pub fn start_unreached(&mut self) -> Result<()> {
        let no = self.nodes.len() + 1;
        let host = Host::of_node(no);
        let (plan, folder) = (&self.plan, self.plan.folder.join("unreached"));
        std::fs::create_dir_all(&folder)?;
        let first = self.nodes.first().context("there is no node")?;
        let node = super::Node {
            no,
            host: host.clone(),
            folder,
            id: super::id_of(no),
            process: None,
            way: super::way(&host, no)?,
        };
        std::fs::copy(
            first.folder.with_extension("toml"),
            node.folder.with_extension("toml"),
        )?;
        let mut command = node.command(plan)?;
        let child = command.args(["--cluster-advertise", NOWHERE]).spawn()?;
        self.unreached = Some(Process(child));
        let began = Instant::now();
        while Client::connect_within(node.plain(), LOOKS).is_err() {
            ensure!(began.elapsed() < PATIENCE, "the new node does not start");
            std::thread::sleep(LOOKS);
        }
        Ok(())
    }

    pub fn end_unreached(&mut self) {
        self.unreached = None;
    }

    /// Whether it is a member, dead or alive.
    pub fn has_unreached(&mut self) -> Result<bool> {
        let id = super::id_of(self.nodes.len() + 1);
        Ok(self.status(1)?.contains(&id))
    }

    /// Removes it from the members.
    pub fn forget_unreached(&mut self) -> Result<()> {
        let id = super::id_of(self.nodes.len() + 1);
        let at = self.node(1)?.plain().to_string();
        self.operate(&["forget", &id, "--at", &at])?;
        ensure!(!self.has_unreached()?, "the forgotten node is a member");
        Ok(())
    }
}
