//! What a person at a terminal is told when a node has started.

use rufous::runtime::Listen;
use rufous_server::identity;
use std::net::{IpAddr, SocketAddr};

/// The text; `admin` is where metrics and health are.
pub(super) fn text(
    addresses: &[Listen],
    admin: Option<SocketAddr>,
    workers: usize,
    password: bool,
) -> String {
    let mut text = format!(
        "\nRufous {}: a data store that speaks the Redis protocol, data in memory, {workers} worker{}.\n\n",
        identity::VERSION,
        if workers == 1 { "" } else { "s" },
    );
    for address in addresses {
        text.push_str(&format!("  Listening on  {address}\n"));
    }
    if let Some(at) = admin {
        text.push_str(&format!("  Metrics at    http://{at}/\n"));
    }
    let reach = addresses.first().map(redis_cli_options).unwrap_or_default();
    let cli = format!(
        "redis-cli{reach}{}",
        if password { " --askpass" } else { "" }
    );
    text.push_str(&format!(
        "
Try, in another terminal:
  {cli} set greeting hello
  {cli} get greeting
  redis-benchmark{reach}{} -t set,get -P 16 -q

`rufous server --help` lists all settings. Ctrl-C stops the node.
",
        if password { " -a PASSWORD" } else { "" },
    ));
    text
}

/// How redis-cli gets there: nothing where it goes by itself.
fn redis_cli_options(address: &Listen) -> String {
    match address {
        Listen::Unix { path, .. } => format!(" -s {}", path.display()),
        Listen::Tls(at) => redis_cli_options(&Listen::Tcp(*at)) + " --tls --cacert CA-FILE",
        Listen::Tcp(at) => {
            let host = match at.ip() {
                ip if ip.is_unspecified() => String::new(),
                IpAddr::V4(ip) if ip.is_loopback() && ip.octets() == [127, 0, 0, 1] => {
                    String::new()
                }
                ip => format!(" -h {ip}"),
            };
            let port = if at.port() == 6379 {
                String::new()
            } else {
                format!(" -p {}", at.port())
            };
            host + &port
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_to_reach_a_node() {
        let check = |address: &str, expected: &str| {
            let address = Listen::Tcp(address.parse().expect("an address"));
            assert_eq!(redis_cli_options(&address), expected);
        };
        check("127.0.0.1:6379", "");
        check("127.0.0.1:7000", " -p 7000");
        check("0.0.0.0:6379", "");
        check("10.1.2.3:6380", " -h 10.1.2.3 -p 6380");
        check("[::1]:6379", " -h ::1");
        let socket = Listen::Unix {
            path: "/run/r.sock".into(),
            mode: None,
        };
        assert_eq!(redis_cli_options(&socket), " -s /run/r.sock");
    }
}
