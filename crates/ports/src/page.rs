//! A page is sixteen ports side by side, which one process has.
//!
//! It has them by a socket with an abstract name, of which there is one in a network namespace, as
//! there is of its ports. The name goes with the process, however that ends, and leaves nothing
//! behind; children do not inherit it. One for each port would use up the files of processes that
//! start hundreds of servers.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Ports of a page.
pub(crate) const SIZE: u16 = 16;

/// The ports are this process's until the value goes.
pub(crate) struct Page {
    number: u16,
    _held: UnixDatagram,
}

impl Page {
    /// None where a process has it, be it this one.
    pub(crate) fn hold(number: u16) -> io::Result<Option<Self>> {
        let name = SocketAddr::from_abstract_name(format!("rufous-ports-{number}"))?;
        match UnixDatagram::bind_addr(&name) {
            Ok(held) => Ok(Some(Self {
                number,
                _held: held,
            })),
            Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn ports(&self) -> Range<u16> {
        let first = self.number * SIZE;
        first..first + SIZE
    }
}

/// Whether nobody listens there, at any address of the machine.
pub(crate) fn is_free(port: u16) -> io::Result<bool> {
    let all: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    for address in all {
        match TcpListener::bind((address, port)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(false),
            // Not every system has it.
            Err(_) if address.is_ipv6() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
