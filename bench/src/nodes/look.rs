//! What a node says of its cluster: `INFO cluster` and `CLUSTER SLOTS`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use crate::client::{Client, Reply};

const SLOTS: usize = 16384;
/// So far may a node's share of the slots be from the mean when all is balanced: ring
/// positions are drawn by lot, and shares with them.
const APART: f64 = 0.35;

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    pub epoch: u64,
    pub members: usize,
    pub alive: usize,
    /// Slots of each kind, with the ports of their members: the head first.
    pub chains: Vec<(usize, Vec<u16>)>,
}

impl Look {
    pub fn through(client: &mut Client) -> Result<Self> {
        let info = client.call(&["INFO", "cluster"])?.text()?;
        let number = |name: &str| -> Result<u64> {
            let lines = info.lines().filter_map(|line| line.split_once(':'));
            let found = lines.clone().find(|(field, _)| *field == name);
            let (_, value) = found.with_context(|| format!("INFO cluster has no {name}"))?;
            value.trim().parse().context("no number")
        };
        let slots = client.call(&["CLUSTER", "SLOTS"])?;
        Ok(Self {
            epoch: number("cluster_epoch")?,
            members: number("cluster_members")? as usize,
            alive: number("cluster_nodes_alive")? as usize,
            chains: chains(slots)?,
        })
    }

    /// Slots with fewer copies than that at these nodes.
    pub fn thin(&self, copies: usize, nodes: &[u16]) -> usize {
        let living = |chain: &[u16]| chain.iter().filter(|port| nodes.contains(port)).count();
        let thick = self.chains.iter();
        let thick = thick.filter(|(_, chain)| living(chain) >= copies);
        SLOTS - thick.map(|(slots, _)| slots).sum::<usize>()
    }

    /// Slots that a node has a copy of.
    pub fn slots_with(&self, node: u16) -> usize {
        let with = self.chains.iter();
        let with = with.filter(|(_, chain)| chain.contains(&node));
        with.map(|(slots, _)| slots).sum()
    }

    /// Slots by their heads.
    pub fn heads(&self) -> BTreeMap<u16, usize> {
        let mut heads = BTreeMap::new();
        for (slots, chain) in &self.chains {
            if let Some(head) = chain.first() {
                *heads.entry(*head).or_default() += slots;
            }
        }
        heads
    }

    /// Whether these nodes, and no others, have about equally many slots.
    pub fn is_balanced(&self, nodes: &[u16]) -> bool {
        let heads = self.heads();
        let mean = SLOTS as f64 / nodes.len().max(1) as f64;
        let is_near = |node: &u16| {
            let has = heads.get(node).copied().unwrap_or(0) as f64;
            (has - mean).abs() <= mean * APART
        };
        heads.len() == nodes.len() && nodes.iter().all(is_near)
    }
}

fn chains(reply: Reply) -> Result<Vec<(usize, Vec<u16>)>> {
    let Reply::Array(ranges) = reply else {
        bail!("CLUSTER SLOTS: {reply:?}");
    };
    ranges.into_iter().map(chain).collect()
}

fn chain(range: Reply) -> Result<(usize, Vec<u16>)> {
    let Reply::Array(parts) = range else {
        bail!("a range of CLUSTER SLOTS: {range:?}");
    };
    let mut parts = parts.into_iter();
    let mut bound = || parts.next().context("a bound is missing")?.integer();
    let (first, last) = (bound()?, bound()?);
    let port = |node: Reply| match node {
        Reply::Array(fields) => match fields.get(1) {
            Some(Reply::Integer(port)) => u16::try_from(*port).context("no port"),
            other => bail!("a port: {other:?}"),
        },
        other => bail!("a node: {other:?}"),
    };
    let members: Result<Vec<u16>> = parts.map(port).collect();
    Ok((usize::try_from(last - first + 1)?, members?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(chains: &[(usize, &[u16])]) -> Look {
        let chains = chains.iter().map(|(slots, ports)| (*slots, ports.to_vec()));
        Look {
            chains: chains.collect(),
            ..Look::default()
        }
    }

    #[test]
    fn slots_are_counted_by_who_has_them() {
        let look = look(&[(8192, &[1, 2]), (8000, &[2, 1]), (192, &[2])]);
        assert_eq!(look.thin(2, &[1, 2]), 192);
        assert_eq!(look.thin(1, &[1, 2]), 0);
        assert_eq!(look.thin(1, &[1]), 192);
        assert_eq!(look.thin(2, &[1]), SLOTS);
        assert_eq!(look.slots_with(1), 16192);
        assert_eq!(look.heads(), [(1, 8192), (2, 8192)].into());
        assert!(look.is_balanced(&[1, 2]));
        assert!(!look.is_balanced(&[1, 2, 3]));
        assert!(!look.is_balanced(&[1]));
    }

    #[test]
    fn replies_are_read() {
        let node = |port| Reply::Array(vec![Reply::Bulk(b"h".to_vec()), Reply::Integer(port)]);
        let range = vec![Reply::Integer(3), Reply::Integer(9), node(70), node(71)];
        let reply = Reply::Array(vec![Reply::Array(range)]);
        assert_eq!(chains(reply).unwrap(), [(7, vec![70, 71])]);
        for wrong in [
            Reply::Nil,
            Reply::Array(vec![Reply::Array(vec![Reply::Integer(3)])]),
            Reply::Array(vec![Reply::Array(vec![
                Reply::Integer(3),
                Reply::Integer(9),
                node(-1),
            ])]),
        ] {
            assert!(chains(wrong).is_err());
        }
    }
}
