//! Settings of TLS, by Redis's names.
//!
//! They hold from the start of a server on. The files themselves are read
//! again when they change.

use super::Config;
use super::params::{Param, Set};
use super::values::{integer, name_of, named};

/// How clients are met on the port for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// 0: none.
    pub port: u16,
    /// PEM files; the first has the server's own certificate first.
    pub cert_file: String,
    pub key_file: String,
    /// Who signs the certificates of clients.
    pub ca_cert_file: String,
    pub auth_clients: AuthClients,
    pub protocols: Protocols,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            port: 0,
            cert_file: String::new(),
            key_file: String::new(),
            ca_cert_file: String::new(),
            auth_clients: AuthClients::Yes,
            protocols: Protocols::default(),
        }
    }
}

/// Whether clients show certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthClients {
    /// They must.
    Yes,
    No,
    /// Those that do must show a valid one.
    Optional,
}

impl AuthClients {
    pub const ALL: [(AuthClients, &'static str); 3] = [
        (AuthClients::Yes, "yes"),
        (AuthClients::No, "no"),
        (AuthClients::Optional, "optional"),
    ];
}

/// Which versions are spoken: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    pub v1_2: bool,
    pub v1_3: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        Self {
            v1_2: true,
            v1_3: true,
        }
    }
}

impl Protocols {
    fn text(self) -> String {
        let all = [(self.v1_2, "TLSv1.2"), (self.v1_3, "TLSv1.3")];
        let spoken = all.iter().filter(|(is_spoken, _)| *is_spoken);
        spoken.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self {
            v1_2: false,
            v1_3: false,
        };
        for word in text.split_whitespace() {
            match word {
                _ if word.eq_ignore_ascii_case("TLSv1.2") => found.v1_2 = true,
                _ if word.eq_ignore_ascii_case("TLSv1.3") => found.v1_3 = true,
                _ => return Err("versions are TLSv1.2 and TLSv1.3; older ones are unsafe".into()),
            }
        }
        match found.v1_2 || found.v1_3 {
            true => Ok(found),
            // As Redis has it: an empty value means what is usual.
            false => Ok(Self::default()),
        }
    }
}

pub const PORT: Param = Param {
    name: "tls-port",
    get: |config| config.tls.port.to_string(),
    set: None,
    help: "Port for TLS; 0: none. With `port` 0 it is the only one.",
};

pub const CERT_FILE: Param = Param {
    name: "tls-cert-file",
    get: |config| config.tls.cert_file.clone(),
    set: None,
    help: "Certificate of the server with its chain (PEM); loaded again when it changes.",
};

pub const KEY_FILE: Param = Param {
    name: "tls-key-file",
    get: |config| config.tls.key_file.clone(),
    set: None,
    help: "Private key of that certificate (PEM, without a password).",
};

pub const CA_CERT_FILE: Param = Param {
    name: "tls-ca-cert-file",
    get: |config| config.tls.ca_cert_file.clone(),
    set: None,
    help: "Certificates of the authorities that sign client certificates (PEM).",
};

pub const AUTH_CLIENTS: Param = Param {
    name: "tls-auth-clients",
    get: |config| name_of(&AuthClients::ALL, config.tls.auth_clients),
    set: None,
    help: "Whether clients must present a certificate on the TLS port.",
};

pub const PROTOCOLS: Param = Param {
    name: "tls-protocols",
    get: |config| config.tls.protocols.text(),
    set: None,
    help: "Accepted versions of TLS.",
};

pub const SET_PORT: Set = |config, value| {
    config.tls.port = integer(value, 0..=i64::from(u16::MAX))? as u16;
    Ok(())
};

pub const SET_CERT_FILE: Set = |config, value| {
    config.tls.cert_file = value.into();
    Ok(())
};

pub const SET_KEY_FILE: Set = |config, value| {
    config.tls.key_file = value.into();
    Ok(())
};

pub const SET_CA_CERT_FILE: Set = |config, value| {
    config.tls.ca_cert_file = value.into();
    Ok(())
};

pub const SET_AUTH_CLIENTS: Set = |config, value| {
    config.tls.auth_clients = named(&AuthClients::ALL, value)?;
    Ok(())
};

pub const SET_PROTOCOLS: Set = |config, value| {
    config.tls.protocols = Protocols::parse(value)?;
    Ok(())
};

impl Config {
    /// Whether clients may come without TLS.
    pub fn has_plain_port(&self) -> bool {
        self.port != 0 || self.tls.port == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let check = |text: &str, expected: Option<&str>| {
            let found = Protocols::parse(text).ok().map(Protocols::text);
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("TLSv1.3", Some("TLSv1.3"));
        check("tlsv1.3 TLSv1.2", Some("TLSv1.2 TLSv1.3"));
        check("", Some("TLSv1.2 TLSv1.3"));
        check("TLSv1.1 TLSv1.2", None);
    }

    #[test]
    fn the_plain_port_can_be_left_out() {
        let check = |port, tls_port, expected| {
            let mut config = Config {
                port,
                ..Config::default()
            };
            config.tls.port = tls_port;
            assert_eq!(config.has_plain_port(), expected);
        };
        check(6379, 0, true);
        check(6379, 6380, true);
        check(0, 0, true);
        check(0, 6380, false);
    }
}
