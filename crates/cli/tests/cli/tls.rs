//! A server that asks clients for certificates.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::harness::{Engine, Ran, abide};

/// Writes an authority's certificate, and one with its key for the server and the client.
fn write_certificates(folder: &Path) {
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("the folder is writable");
    };
    let new_key = || KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = new_key();
    write("ca.pem", params.self_signed(&key).expect("a root").pem());
    let issuer = Issuer::new(params, key);
    for name in ["server", "client"] {
        let key = new_key();
        let params = CertificateParams::new(vec![format!("{name}.example")]).expect("a name");
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

#[test]
fn a_client_shows_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    write_certificates(folder.path());
    let mut serve = abide();
    serve.current_dir(folder.path()).args(["serve", "--json", "--data", "data"]);
    serve.args(["--address", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    serve.args(["--tls-certificate", "server.pem", "--tls-key", "server.key"]);
    let engine = Engine::spawn(serve.args(["--tls-client-ca", "ca.pem"]));
    let count_as = |ca: &str, domain: &str, more: &[&str]| {
        let mut command = abide();
        command.current_dir(folder.path()).args(["workflow", "count"]);
        command.args(["--address", &engine.address, "--tls-ca", ca]);
        Ran::of(command.args(["--tls-domain", domain]).args(more))
    };
    let count = |more: &[&str]| count_as("ca.pem", "server.example", more);
    let certificate = ["--tls-client-certificate", "client.pem"];
    let key = ["--tls-client-key", "client.key"];
    assert_eq!(count(&[certificate, key].concat()).good(), "0\n");
    // The server says no only after the client has taken the connection for a good one.
    assert!(count(&[]).bad(3).contains("a client certificate"));
    assert!(count(&certificate).bad(2).contains("must be given together"));
    let mistaken = ["--tls-client-key", "server.key"];
    let told = count(&[certificate, mistaken].concat()).bad(2);
    assert!(told.contains("certificate and key") && told.contains("KeyMismatch"), "{told}");
    let told = count_as("ca.pem", "other.example", &[]).bad(3);
    assert!(told.contains("not valid for name \"other.example\""), "{told}");
    assert!(told.contains("--tls-ca") && told.contains("--tls-domain"), "{told}");
    let strange = tempfile::tempdir().unwrap();
    write_certificates(strange.path());
    let told = count_as(strange.path().join("ca.pem").to_str().unwrap(), "server.example", &[]);
    let told = told.bad(3);
    assert!(told.contains("invalid peer certificate"), "{told}");
}

#[test]
fn what_is_wrong_with_the_certificate_of_a_server_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write_certificates(folder.path());
    std::fs::write(folder.path().join("nonsense"), "nonsense").unwrap();
    let refused = |certificate: &str, key: &str| {
        let mut serve = abide();
        serve.current_dir(folder.path()).args(["serve", "--data", "data"]);
        serve.args(["--address", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        serve.args(["--tls-certificate", certificate, "--tls-key", key]);
        Ran::of(&mut serve).bad(2)
    };
    let told = refused("server.pem", "client.key");
    assert!(told.contains("server.pem does not belong to the private key in client.key"), "{told}");
    let told = refused("server.key", "server.key");
    assert!(told.contains("--tls-certificate"), "{told}");
    assert!(told.contains("server.key holds no certificate"), "{told}");
    let told = refused("server.pem", "nonsense");
    assert!(told.contains("nonsense holds no private key"), "{told}");
}
