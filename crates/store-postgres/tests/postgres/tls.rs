//! TLS to the database: what each mode requires of the server, and what it refuses.

use std::{
    fs,
    path::{Path, PathBuf},
};

use abide_postgres_fixture::{Server, Setup, for_test, start_for_test};
use abide_store_postgres::{OpenError, Options, PostgresStore};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use tempfile::TempDir;

use crate::support::{batch, commit, impatient};

type Root = CertifiedIssuer<'static, KeyPair>;

fn root(name: &str) -> Root {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate signed by the root, with its key, in PEM.
fn issue(
    root: &Root,
    hosts: &[&str],
    name: &str,
    purpose: ExtendedKeyUsagePurpose,
) -> (String, String) {
    let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, root).unwrap().pem(), key.serialize_pem())
}

/// Access rules of the server: some users only with TLS, by password or certificate.
const ACCESS: &str = "
hostssl all by_password 127.0.0.1/32 scram-sha-256
hostssl all by_certificate 127.0.0.1/32 cert
hostssl all only_encrypted 127.0.0.1/32 trust
host all abide 127.0.0.1/32 trust
";

/// A server with a certificate for `localhost`, and files for its clients.
struct Site {
    server: Server,
    folder: TempDir,
}

impl Site {
    fn start(test: &str) -> Option<Self> {
        let root = root("root");
        let server = ExtendedKeyUsagePurpose::ServerAuth;
        let (certificate, key) = issue(&root, &["localhost"], "database", server);
        let setup = Setup::default()
            .setting("ssl", "on")
            .file("ssl_cert_file", &certificate)
            .file("ssl_key_file", &key)
            .file("ssl_ca_file", &root.pem())
            .file("hba_file", ACCESS);
        let server = start_for_test(test, &setup)?;
        for user in ["by_password PASSWORD 'secret'", "by_certificate", "only_encrypted"] {
            server.query("postgres", &format!("CREATE USER {user} SUPERUSER"));
        }
        let folder = tempfile::tempdir().unwrap();
        let client = ExtendedKeyUsagePurpose::ClientAuth;
        let (certificate, key) = issue(&root, &[], "by_certificate", client);
        let site = Self { server, folder };
        site.write("root.pem", &root.pem());
        site.write("other.pem", &self::root("other").pem());
        site.write("client.pem", &certificate);
        site.write("client.key", &key);
        Some(site)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An address in which names in braces are replaced by the paths of files.
    fn address(&self, user: &str, host: &str, query: &str) -> String {
        let file = |path: PathBuf| path.display().to_string();
        let query = ["root.pem", "other.pem", "client.pem", "client.key"]
            .into_iter()
            .fold(query.to_owned(), |query, name| {
                query.replace(&format!("{{{name}}}"), &file(self.path(name)))
            });
        format!("postgres://{user}@{host}:{}/postgres?{query}", self.server.port())
    }

    fn open(&self, user: &str, host: &str, query: &str) -> Result<PostgresStore, OpenError> {
        PostgresStore::open(&impatient(&self.address(user, host, query)))
    }

    #[track_caller]
    fn accepts(&self, user: &str, host: &str, query: &str) {
        if let Err(error) = self.open(user, host, query) {
            panic!("{user} at {host} with {query}: {error}");
        }
    }

    #[track_caller]
    fn refuses(&self, user: &str, host: &str, query: &str, named: &str) {
        match self.open(user, host, query) {
            Ok(_) => panic!("{user} at {host} with {query} was let in"),
            Err(error) => assert!(error.to_string().contains(named), "{query}: {error}"),
        }
    }
}

#[test]
fn each_mode_checks_what_it_says() {
    let Some(site) = Site::start("each_mode_checks_what_it_says") else { return };
    let user = "only_encrypted";
    site.refuses(user, "localhost", "sslmode=disable", "no encryption");
    site.accepts("abide", "localhost", "sslmode=disable");
    // The certificate does not contain the address of the machine.
    for mode in ["", "sslmode=prefer", "sslmode=require"] {
        site.accepts(user, "127.0.0.1", mode);
    }
    for mode in ["require", "verify-ca"] {
        let with = |root: &str| format!("sslmode={mode}&sslrootcert={{{root}}}");
        site.accepts(user, "127.0.0.1", &with("root.pem"));
        site.refuses(user, "127.0.0.1", &with("other.pem"), "UnknownIssuer");
    }
    let full = |root: &str| format!("sslmode=verify-full&sslrootcert={root}");
    site.accepts(user, "localhost", &full("{root.pem}"));
    site.refuses(user, "localhost", &full("{other.pem}"), "UnknownIssuer");
    site.refuses(user, "localhost", &full("system"), "UnknownIssuer");
    site.refuses(user, "localhost", "sslmode=verify-full", "UnknownIssuer");
    site.refuses(user, "127.0.0.1", &full("{root.pem}"), "not valid for");
}

#[test]
fn passwords_are_bound_to_the_connection_and_certificates_are_shown() {
    let test = "passwords_are_bound_to_the_connection_and_certificates_are_shown";
    let Some(site) = Site::start(test) else { return };
    let safe = "sslmode=verify-full&sslrootcert={root.pem}";
    let bound = format!("{safe}&channel_binding=require");
    site.accepts("by_password:secret", "localhost", &bound);
    site.refuses("by_password:wrong", "localhost", &bound, "password authentication failed");
    let shown = format!("{safe}&sslcert={{client.pem}}&sslkey={{client.key}}");
    site.accepts("by_certificate", "localhost", &shown);
    site.refuses("by_certificate", "localhost", safe, "certificate");
    let store = site.open("by_certificate", "localhost", &shown).unwrap();
    assert_eq!(commit(&store, batch(1, 0, 1)), Ok(()));
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_required() {
    let test = "a_server_without_tls_is_refused_where_tls_is_required";
    let Some(server) = for_test(test) else { return };
    let address = server.database("plain");
    for mode in ["require", "verify-full"] {
        let options = impatient(&format!("{address}?sslmode={mode}"));
        let error = PostgresStore::open(&options).err().unwrap().to_string();
        assert!(error.contains("does not support TLS"), "{mode}: {error}");
    }
    PostgresStore::open(&impatient(&format!("{address}?sslmode=prefer"))).unwrap();
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name)
    };
    let (empty, missing) = (file("empty.pem", "nothing"), folder.path().join("missing.pem"));
    let check = |path: &Path| {
        let query = format!("sslmode=verify-full&sslrootcert={}", path.display());
        match Options::new(&format!("postgres://host/things?{query}")) {
            Err(OpenError::Certificate { path: named, .. }) => assert_eq!(named, path),
            other => panic!("{other:?}"),
        }
    };
    check(&empty);
    check(&missing);
}
