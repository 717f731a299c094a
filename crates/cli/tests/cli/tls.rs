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
    let count = |more: &[&str]| {
        let mut command = abide();
        command.current_dir(folder.path()).args(["workflow", "count"]);
        command.args(["--address", &engine.address, "--tls-ca", "ca.pem"]);
        Ran::of(command.args(["--tls-domain", "server.example"]).args(more))
    };
    let certificate = ["--tls-client-certificate", "client.pem"];
    let key = ["--tls-client-key", "client.key"];
    assert_eq!(count(&[certificate, key].concat()).good(), "0\n");
    count(&[]).bad(3);
    assert!(count(&certificate).bad(2).contains("needs its key"));
}
