//! What stands around the API: TLS, health, reflection, probes, bounds of connections.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use crate::support::count;
use abide_core::operation::CallError;
use abide_sdk::{
    Client,
    grpc::{GrpcOptions, GrpcTransport, TlsOptions},
    list::RunFilter,
};
use abide_server::{Bounds, Config, Server, ServerError, Tls};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::support::{channel, config, server, start, transport};

/// A root, and what it signs.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a root").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for this name, and its key.
    fn issue(&self, name: &str) -> (String, String) {
        self.issue_for(&[name])
    }

    /// A certificate for these names, and its key.
    pub(crate) fn issue_for(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

pub(crate) fn write(folder: &Path, name: &str, content: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("the folder is writable");
    path
}

/// A server that asks clients for certificates, and the authority behind all certificates.
async fn tls_server(bounds: Bounds) -> (Server, Authority) {
    let authority = Authority::new();
    let (certificate, key) = authority.issue("localhost");
    let folder = tempfile::tempdir().expect("a folder");
    let tls = Tls {
        certificate: write(folder.path(), "server.pem", &certificate),
        key: write(folder.path(), "server.key", &key),
        client_ca: Some(write(folder.path(), "ca.pem", &authority.pem)),
    };
    (server(Config { tls: Some(tls), bounds, ..config() }).await, authority)
}

fn tls_transport(server: &Server, tls: TlsOptions) -> GrpcTransport {
    let address = format!("https://localhost:{}", server.grpc_address().port());
    GrpcTransport::new(&GrpcOptions { tls, ..GrpcOptions::new(address) }).expect("a good address")
}

#[tokio::test]
async fn tls_with_certificates_on_both_sides() {
    let (server, authority) = tls_server(Bounds::default()).await;
    let (certificate, key) = authority.issue("client");
    let ca = Some(authority.pem.clone().into_bytes());
    let client = Client::builder(format!("https://localhost:{}", server.grpc_address().port()))
        .ca(authority.pem.clone())
        .identity(certificate, key)
        .connect()
        .await
        .expect("it is known");
    start(&**client.transport(), "hello", "hello").await;
    assert_eq!(client.count_runs(RunFilter::new()).await, Ok(1));

    let nameless = tls_transport(&server, TlsOptions { ca, ..TlsOptions::default() });
    let stranger = Some(Authority::new().pem.into_bytes());
    let distrustful = tls_transport(&server, TlsOptions { ca: stranger, ..TlsOptions::default() });
    let plain = transport_without_tls(&server);
    for refused in [nameless, distrustful, plain] {
        let refused = count(&refused).await;
        assert!(matches!(refused, Err(CallError::Unavailable(_))), "{refused:?}");
    }
    let page = get(server.http_address(), "/metrics").await;
    let failed =
        page.lines().find_map(|line| line.strip_prefix("abide_tls_handshakes_failed_total "));
    assert!(
        failed.is_some_and(|failed| failed.parse::<u64>().is_ok_and(|count| count >= 3)),
        "{page}"
    );
    server.shutdown().await.expect("it stops");
}

/// Each server has a certificate for its own host, and each is checked against the host of its address.
#[tokio::test]
async fn tls_with_several_servers() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let mut servers = Vec::new();
    for host in ["localhost", "127.0.0.1"] {
        let (certificate, key) = authority.issue(host);
        let tls = Tls {
            certificate: write(folder.path(), "server.pem", &certificate),
            key: write(folder.path(), "server.key", &key),
            client_ca: None,
        };
        let server = server(Config { tls: Some(tls), ..config() }).await;
        servers.push((host, server.grpc_address().port(), server));
    }
    // A listener that never shakes hands stands in front.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let silent = ("localhost", silent.local_addr().expect("it listens").port(), silent);
    for (host, port, _) in &servers {
        let addresses = format!("https://{}:{},https://{host}:{port}", silent.0, silent.1);
        let client = Client::builder(addresses)
            .in_order()
            .ca(authority.pem.clone())
            .connect_timeout(Duration::from_millis(500))
            .keepalive(Duration::from_millis(500))
            .connect()
            .await
            .expect("good addresses");
        assert_eq!(client.count_runs(RunFilter::new()).await, Ok(0), "{host}");
    }
}

fn transport_without_tls(server: &Server) -> GrpcTransport {
    GrpcTransport::new(&crate::support::options(server)).expect("a good address")
}

#[tokio::test]
async fn a_missing_certificate_is_named() {
    let missing = |name: &str| std::path::PathBuf::from(format!("nowhere/{name}"));
    let tls = Tls { certificate: missing("server.pem"), key: missing("key"), client_ca: None };
    let config = Config { tls: Some(tls), ..config() };
    let store = Arc::new(abide_store::memory::MemoryStore::default());
    let refused = Server::start(config, store).await.err().expect("there is no such file");
    assert!(matches!(refused, ServerError::TlsFile { .. }));
    assert!(refused.to_string().contains("nowhere/server.pem"), "{refused}");
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let server = server(config()).await;
    let taken = Config { grpc_address: server.grpc_address(), ..config() };
    let store = Arc::new(abide_store::memory::MemoryStore::default());
    let refused = Server::start(taken, store).await.err().expect("the address is taken");
    assert!(refused.to_string().contains(&server.grpc_address().to_string()), "{refused}");
}

#[tokio::test]
async fn health_answers_for_each_service() {
    let server = server(config()).await;
    let mut health = HealthClient::new(channel(&server).await);
    for service in ["", "abide.v1.Abide", "abide.v1.Workers"] {
        let request = HealthCheckRequest { service: service.into() };
        let response = health.check(request).await.expect("health answers").into_inner();
        assert_eq!(response.status().as_str_name(), "SERVING", "{service}");
    }
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let server = server(config()).await;
    let mut reflection = ServerReflectionClient::new(channel(&server).await);
    let request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let answers = reflection.server_reflection_info(tokio_stream::once(request)).await;
    let mut answers = answers.expect("reflection answers").into_inner();
    let answer = answers.message().await.expect("an answer").expect("one");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("not a list: {answer:?}");
    };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    for name in ["abide.v1.Abide", "abide.v1.Workers", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

#[tokio::test]
async fn probes_and_a_page() {
    let server = server(config()).await;
    let address = server.http_address();
    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    let page = get(address, "/").await;
    assert!(page.contains(&server.grpc_address().to_string()), "{page}");
}

#[tokio::test]
async fn a_server_opens_its_data_folder_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    for expected in [0, 1] {
        let server = Server::open(Config { data: data.clone(), ..config() }).await;
        let server = server.expect("the folder is free");
        let transport = transport(&server);
        assert_eq!(count(&*transport).await, Ok(expected));
        start(&*transport, "hello", "hello").await;
        server.shutdown().await.expect("it stops");
    }
}

/// Connections beyond the bound wait; they are served when another one ends.
#[tokio::test]
async fn connections_are_bounded() {
    let bounds = Bounds { connections: 1, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    let first = transport(&server);
    assert_eq!(count(&*first).await, Ok(0));
    let second = transport(&server);
    let mut waiting = Box::pin(count(&*second));
    // The first connection still has its place, so the second one gets no answer meanwhile.
    tokio::select! {
        biased;
        answer = &mut waiting => panic!("the second connection was served: {answer:?}"),
        answer = count(&*first) => assert_eq!(answer, Ok(0)),
    }
    drop(first);
    assert_eq!(waiting.await, Ok(0));
}

/// Waits until the server has ended the connection.
async fn ended(mut connection: TcpStream) {
    let mut said = Vec::new();
    // However it ends, it has ended.
    drop(connection.read_to_end(&mut said).await);
}

#[tokio::test]
async fn a_silent_connection_loses_its_place() {
    let bounds =
        Bounds { connections: 1, hello_timeout_ms: 100, keepalive_ms: 100, ..Bounds::default() };
    let server = server(Config { bounds, ..config() }).await;
    for address in [server.grpc_address(), server.http_address()] {
        let silent = TcpStream::connect(address).await.expect("the server listens");
        ended(silent).await;
        let mut halting = TcpStream::connect(address).await.expect("the server listens");
        halting.write_all(b"P").await.expect("it is open");
        ended(halting).await;
    }
    let silent = TcpStream::connect(server.grpc_address()).await.expect("the server listens");
    assert_eq!(count(&*transport(&server)).await, Ok(0));
    ended(silent).await;
    assert!(get(server.http_address(), "/healthz").await.contains("alive"));
}

#[tokio::test]
async fn a_tls_connection_that_is_silent_loses_its_place() {
    let bounds = Bounds { hello_timeout_ms: 100, keepalive_ms: 100, ..Bounds::default() };
    let (server, _authority) = tls_server(bounds).await;
    let silent = TcpStream::connect(server.grpc_address()).await.expect("the server listens");
    ended(silent).await;
}
