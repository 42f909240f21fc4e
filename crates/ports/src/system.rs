//! Where the ports begin that the system takes by itself, for outgoing connections and for who binds
//! port 0.

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Unless something else was set.
const USUAL: u16 = 32_768;

/// Ports below are taken by those alone who ask for them.
pub(crate) fn first_own_port() -> u16 {
    let range = std::fs::read_to_string(RANGE);
    range.ok().and_then(|text| first(&text)).unwrap_or(USUAL)
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
    fn what_binds_port_0_is_in_the_range() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        assert!(port >= first_own_port(), "{port}");
    }
}
