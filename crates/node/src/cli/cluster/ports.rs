//! Ports of the nodes of one machine: their distances, which ones the system takes for outgoing
//! connections, and which process has one that is taken.

use super::layout::MAX_NODES;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;

const SYSTEM: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The sockets of this machine, as the kernel lists them.
const SOCKETS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Distances between a node's ports, the preferred ones first. Each is above the limit of nodes.
const DISTANCES: [Above; 3] = [
    Above {
        peer: 10_000,
        admin: 15_000,
        clients: 20_000,
    },
    Above {
        peer: 1_000,
        admin: 2_000,
        clients: 3_000,
    },
    Above {
        peer: 100,
        admin: 200,
        clients: 300,
    },
];

/// How far above the port for clients a node's other ports are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Above {
    pub(super) peer: u16,
    pub(super) admin: u16,
    pub(super) clients: u16,
}

impl Above {
    /// Of folders that do not say it.
    pub(super) fn of_old() -> Self {
        Self {
            peer: 10_000,
            admin: 30_000,
            clients: 20_000,
        }
    }

    /// For a first port and so many nodes: outside of the system's ports, where that is possible.
    pub(super) fn choose(port: u16, nodes: u16) -> Option<Self> {
        choose(port, nodes, of_the_system().as_ref())
    }

    fn all(self) -> [u16; 3] {
        [self.peer, self.admin, self.clients]
    }

    /// Whether the ports of all nodes that there may be are ports, and different ones.
    pub(super) fn suits(self, port: u16) -> bool {
        let mut all = self.all();
        all.sort_unstable();
        let [least, middle, most] = all;
        let apart = MAX_NODES + 2;
        let are_apart = least >= apart && middle - least >= apart && most - middle >= apart;
        are_apart && port > 0 && u16::MAX - MAX_NODES >= port && u16::MAX - MAX_NODES - port >= most
    }
}

fn choose(port: u16, nodes: u16, system: Option<&RangeInclusive<u16>>) -> Option<Above> {
    let mut suitable = DISTANCES.into_iter().filter(|above| above.suits(port));
    let is_outside = |above: &Above| {
        let rows = [0].into_iter().chain(above.all());
        let mut ends = rows.map(|above| {
            (
                port + above - 2 * u16::from(above > 0),
                port + above + nodes,
            )
        });
        system.is_none_or(|system| {
            ends.all(|(first, last)| last <= *system.start() || first > *system.end())
        })
    };
    let fallback = suitable.clone().next();
    suitable.find(is_outside).or(fallback)
}

/// The ports that the system takes for outgoing connections. Any program's connection may have one
/// of them at any time.
pub(super) fn of_the_system() -> Option<RangeInclusive<u16>> {
    range(&fs::read_to_string(SYSTEM).ok()?)
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(last))) => Some(first..=last),
        _ => None,
    }
}

/// Why a node cannot listen on the port of the loopback interface, if it cannot.
pub(super) fn obstacle(port: u16) -> Option<String> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let holder = holder(port).unwrap_or_else(|| {
                format!("a process that only root can look up: ss -tanp 'sport = :{port}'")
            });
            Some(format!("is taken by {holder}"))
        }
        Err(error) => Some(unusable(&error)),
    }
}

fn unusable(error: &Error) -> String {
    format!("cannot be used: {error}")
}

/// The process that has a socket with the port, as far as this one may look into others.
fn holder(port: u16) -> Option<String> {
    let listed = SOCKETS.map(|file| fs::read_to_string(file).unwrap_or_default());
    let sockets: Vec<String> = listed
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| inode(line, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    for process in fs::read_dir("/proc").ok()?.flatten() {
        // `self` and `thread-self` are this process by other names.
        let name = process.file_name();
        let Ok(pid) = name.to_string_lossy().parse::<u32>() else {
            continue;
        };
        let path = process.path();
        let Ok(files) = fs::read_dir(path.join("fd")) else {
            continue;
        };
        let links = files
            .flatten()
            .filter_map(|file| fs::read_link(file.path()).ok());
        let mut links = links.map(|link| link.to_string_lossy().into_owned());
        if links.any(|link| sockets.contains(&link)) {
            let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
            return Some(format!("{}, process {pid}", name.trim()));
        }
    }
    None
}

/// The number of the socket in a line of the kernel's list, if its own port is this one.
fn inode(line: &str, port: u16) -> Option<u64> {
    let mut words = line.split_whitespace();
    let (_, own) = words.nth(1)?.rsplit_once(':')?;
    if u16::from_str_radix(own, 16).ok()? != port {
        return None;
    }
    // 0 is that of a connection whose process has ended.
    words.nth(7)?.parse().ok().filter(|inode| *inode != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_names_its_process() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let why = obstacle(port).expect("taken");
        let own = format!("process {}", std::process::id());
        assert!(
            why.starts_with("is taken by ") && why.ends_with(&own),
            "{why}"
        );
        drop(listener);
        assert_eq!(obstacle(port), None);
    }

    #[test]
    fn ports_are_not_those_of_the_system() {
        let chosen = |port, system: &RangeInclusive<u16>| {
            let above = choose(port, 3, Some(system)).expect("some");
            above.clients
        };
        assert_eq!(chosen(7001, &(32_768..=60_999)), 20_000);
        assert_eq!(chosen(12_764, &(32_768..=60_999)), 20_000);
        assert_eq!(chosen(12_767, &(32_768..=60_999)), 3_000);
        assert_eq!(chosen(7001, &(10_000..=65_535)), 300);
        assert_eq!(chosen(61_000, &(32_768..=60_999)), 3_000);
        // No choice is outside.
        assert_eq!(chosen(40_000, &(32_768..=60_999)), 20_000);
        assert_eq!(chosen(7001, &(1024..=65_535)), 20_000);
        assert_eq!(choose(65_300, 3, None), None);
        assert_eq!(choose(0, 3, None), None);
    }

    #[test]
    fn lists_of_the_kernel_are_read() {
        let line = "   0: 0100007F:1B59 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20941 1 0000000000000000 100 0 0 10 0";
        assert_eq!(inode(line, 7001), Some(20941));
        assert_eq!(inode(line, 7002), None);
        for line in ["", "  sl  local_address rem_address   st", "0: x:zz"] {
            assert_eq!(inode(line, 7001), None);
        }
        assert_eq!(range("32768\t60999\n"), Some(32768..=60999));
        assert_eq!(range("none"), None);
    }
}
