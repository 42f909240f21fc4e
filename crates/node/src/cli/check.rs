//! `rufous check-config` and `rufous check-health`.

use super::arguments::Arguments;
use super::fail;
use crate::settings::render;
use crate::settings::sources::Effective;
use rufous_server::tls;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

/// Longer than the node itself waits for its workers.
const PATIENCE: Duration = Duration::from_secs(8);

/// Prints the settings in force, or all that is wrong with them.
pub(super) fn config(arguments: Arguments) -> ExitCode {
    let Some(effective) = load(arguments) else {
        return ExitCode::FAILURE;
    };
    for warning in &effective.warnings {
        eprintln!("rufous: warning: {warning}");
    }
    if effective.config.tls.port != 0
        && let Err(error) = tls::server_config(&effective.config.tls)
    {
        return fail(error);
    }
    match std::io::stdout().write_all(render(&effective).as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format!("cannot print: {error}")),
    }
}

/// Loads the settings, or says all that is wrong with them.
pub(super) fn load(arguments: Arguments) -> Option<Effective> {
    match arguments.load() {
        Ok(effective) => Some(effective),
        Err(problems) => {
            problems
                .iter()
                .for_each(|problem| eprintln!("rufous: {problem}"));
            None
        }
    }
}

/// Asks the node that these settings describe.
pub(super) fn health(arguments: Arguments) -> ExitCode {
    let Some(effective) = load(arguments) else {
        return ExitCode::FAILURE;
    };
    let config = &effective.config;
    if config.admin_port == 0 {
        return fail("admin-port is 0: this node has no health endpoint");
    }
    match ask(&config.admin_bind, config.admin_port) {
        Ok(answer) if answer.starts_with("HTTP/1.1 200 ") => ExitCode::SUCCESS,
        Ok(answer) => fail(format!(
            "the node is not healthy: {}",
            answer.lines().last().unwrap_or("no answer")
        )),
        Err(error) => fail(format!(
            "cannot ask {} port {}: {error}",
            config.admin_bind, config.admin_port
        )),
    }
}

fn ask(host: &str, port: u16) -> std::io::Result<String> {
    let mut found = (host, port).to_socket_addrs()?;
    let address = found.next().ok_or(std::io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&reachable(address), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: rufous\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Where a node that listens on all addresses can be reached from here.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
