//! Where the ports begin that the system takes by itself, for outgoing connections and for who binds
//! port 0.

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Unless something else was set.
const USUAL: u16 = 32_768;

/// What its range leaves below is room for everything: the farthest ports of clusters are 30,000 above
/// their first.
const ROOM: u16 = 32_000;

/// Ports below are taken by those alone who ask for them. Where the system's range leaves no room below,
/// these are all ports: some of them may be taken at any time, and that is better than none.
pub(crate) fn first_own_port() -> u16 {
    let range = std::fs::read_to_string(RANGE);
    below(range.ok().and_then(|text| first(&text)))
}

fn below(first: Option<u16>) -> u16 {
    match first.unwrap_or(USUAL) {
        first if first < ROOM => u16::MAX,
        first => first,
    }
}

fn first(range: &str) -> Option<u16> {
    range.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read() {
        assert_eq!(first("32768\t60999\n"), Some(32_768));
        assert_eq!(first("1024 65535"), Some(1024));
        assert_eq!(first(""), None);
        assert_eq!(first("many"), None);
    }

    #[test]
    fn a_range_that_leaves_no_room_is_used_itself() {
        assert_eq!(below(Some(40_000)), 40_000);
        assert_eq!(below(Some(1024)), u16::MAX);
        assert_eq!(below(None), USUAL);
    }

    #[test]
    fn what_binds_port_0_is_in_the_range() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let range = std::fs::read_to_string(RANGE).expect("readable");
        assert!(Some(port) >= first(&range), "{port}");
    }
}
