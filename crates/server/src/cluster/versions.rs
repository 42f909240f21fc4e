//! The program of each node, and the versions of the messages between nodes that it speaks, as
//! known to the node that is asked: its own, and those of nodes that it has a session with.

use super::settings::parse_id;
use super::state::Cluster;
use super::status::Status;
use rufous_wire::peers::Versions;

/// Characters of a program's version that are shown.
const MOST: usize = 32;

/// Adds the known versions to the status.
pub fn tell(status: &mut Status, cluster: &Cluster) {
    let own = cluster.common.local.versions();
    for node in &mut status.nodes {
        let Ok(id) = parse_id(&node.id) else {
            continue;
        };
        let is_own = id == cluster.common.local.id;
        let known = match is_own {
            true => Some(own.clone()),
            false => cluster.common.peers.versions(&id),
        };
        let Some(known) = known else {
            continue;
        };
        node.program = shown(&known);
        node.wire_oldest = Some(known.oldest);
        node.wire_newest = Some(known.newest);
        node.wire_used = own.agree(&known).filter(|_| !is_own);
    }
}

/// Another node may send any text: characters that could look like the next field are removed.
fn shown(versions: &Versions) -> Option<String> {
    let plain = |c: &char| c.is_ascii_graphic() && *c != ',';
    let text: String = versions.program.chars().filter(plain).take(MOST).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_program_is_one_field() {
        let of = |program: &str| {
            shown(&Versions {
                program: program.into(),
                oldest: 1,
                newest: 1,
            })
        };
        assert_eq!(of("0.1.0-rc+7").as_deref(), Some("0.1.0-rc+7"));
        assert_eq!(of("1,alive=0\r\nnode:x").as_deref(), Some("1alive=0node:x"));
        assert_eq!(of(&"9".repeat(200)).map(|text| text.len()), Some(MOST));
        assert_eq!(of(""), None);
        assert_eq!(of("\r\n, "), None);
    }
}
