//! TLS to a real node of Rufous: `cargo test -p rufous-client --features tls`.

use crate::common::{connect, start_rufous, wait_until};
use rcgen::{CertificateParams, KeyPair};
use rufous_client::{Builder, Client, Error};
use rufous_ports::free_ports;
use std::sync::Arc;

#[tokio::test]
async fn secrets_are_kept_from_who_is_not_trusted() {
    let key = KeyPair::generate().expect("a key");
    let about = CertificateParams::new(vec!["localhost".into()]).expect("a name");
    let signed = about.self_signed(&key).expect("signed");
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (cert, private) = (
        file("cert.pem", &signed.pem()),
        file("key.pem", &key.serialize_pem()),
    );
    let [plain, tls_port] = free_ports().expect("free ports");
    let port = tls_port.to_string();
    let mut args = vec!["--tls-port", &port, "--tls-auth-clients", "no"];
    args.extend(["--tls-cert-file", &cert, "--tls-key-file", &private]);
    let _node = start_rufous(plain, &args);
    connect(&format!("rufous://127.0.0.1:{plain}")).await;

    let mut roots = rustls::RootCertStore::empty();
    roots.add(signed.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let url = format!("rufouss://localhost:{tls_port}");
    let trusting = || {
        Builder::new(&url)
            .expect("a URL")
            .tls_config(config.clone())
    };
    wait_until("the node takes TLS", async || {
        trusting().connect().await.is_ok()
    })
    .await;
    let client = trusting().connect().await.expect("connected");
    let long = "x".repeat(300_000);
    client.set("k", &long).await.expect("set");
    assert_eq!(client.get::<String>("k").await.expect("read"), long);

    // The system's authorities have not signed it, and this is not its name.
    let stranger = Client::connect(&url).await.err().expect("not trusted");
    assert!(matches!(stranger, Error::Connect { .. }), "{stranger}");
    let other = Builder::new(&url.replace("localhost", "127.0.0.1")).expect("a URL");
    let other = other.tls_config(config.clone()).connect().await;
    assert!(
        other
            .err()
            .expect("another name")
            .to_string()
            .contains("certificate")
    );
}
