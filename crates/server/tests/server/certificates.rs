//! Nodes that know each other by a name which only their certificates have.

use std::{path::Path, sync::Arc};

use abide_proto::generated::{
    PeerFrame, PeerHello, PeerMessage, peer_message::Message, peers_client::PeersClient,
};
use abide_sdk::grpc::{GrpcOptions, GrpcTransport, TlsOptions};
use abide_server::{Config, NodeConfig, Secret, Server, ServerError, Tls};
use abide_store::{Store, memory::MemoryStore};
use tempfile::TempDir;
use tonic::{
    Code, Status,
    transport::{Certificate, ClientTlsConfig, Endpoint, Identity},
};

use crate::{
    network::{Authority, write},
    support::{config, count, node_config, start},
};

const NAME: &str = "nodes.example.org";

struct Cluster {
    authority: Authority,
    store: Arc<MemoryStore>,
    folder: TempDir,
}

impl Cluster {
    fn new() -> Self {
        let (authority, folder) = (Authority::new(), TempDir::new().expect("a folder"));
        Self { authority, store: Arc::default(), folder }
    }

    /// The TLS of a server whose certificate has this name beside its host.
    fn tls(&self, name: &str) -> Tls {
        let (certificate, key) = self.authority.issue_for(&["127.0.0.1", name]);
        let write = |suffix: &str, content: &str| {
            write(Path::new(self.folder.path()), &format!("{name}.{suffix}"), content)
        };
        Tls {
            certificate: write("pem", &certificate),
            key: write("key", &key),
            client_ca: Some(write("ca", &self.authority.pem)),
        }
    }

    /// A server that knows nodes by this name, which its own certificate has.
    async fn node(&self, node: &str, name: &str, secret: Option<Secret>) -> Server {
        let certificate_name = Some(name.to_owned());
        let node = NodeConfig { secret, certificate_name, ..node_config(node) };
        let config = Config { node: Some(node), tls: Some(self.tls(name)), ..config() };
        let server = Server::start(config, Arc::clone(&self.store) as Arc<dyn Store>).await;
        let server = server.expect("it starts");
        server.ready().await;
        server
    }

    fn transport(&self, server: &Server) -> GrpcTransport {
        let (certificate, key) = self.authority.issue_for(&["client"]);
        let ca = Some(self.authority.pem.clone().into_bytes());
        let identity = Some((certificate.into_bytes(), key.into_bytes()));
        let tls = TlsOptions { ca, identity, domain: None };
        let address = format!("https://{}", server.grpc_address());
        let options = GrpcOptions { tls, ..GrpcOptions::new(address) };
        GrpcTransport::new(&options).expect("a good address")
    }

    /// How a link ends that begins with a hello and no proof, by a caller whose certificate has this name.
    async fn link(&self, server: &Server, name: &str) -> Result<(), Status> {
        let (certificate, key) = self.authority.issue_for(&[name]);
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&self.authority.pem))
            .identity(Identity::from_pem(certificate, key));
        let place = Endpoint::from_shared(format!("https://{}", server.grpc_address()));
        let place = place.expect("an address").tls_config(tls).expect("good certificates");
        let mut peers = PeersClient::new(place.connect().await.expect("it is connected"));
        let (address, nonce) = ("127.0.0.1:9".to_owned(), vec![7; 32].into());
        let hello = Some(PeerHello { protocol_version: 2, address, nonce });
        let look = PeerMessage { message: Some(Message::Look(Default::default())) };
        let frames = [
            PeerFrame { hello, ..PeerFrame::default() },
            PeerFrame { messages: vec![look], ..PeerFrame::default() },
        ];
        let mut answers = peers.link(tokio_stream::iter(frames)).await?.into_inner();
        while answers.message().await?.is_some() {}
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_know_each_other_by_the_name_of_their_certificates() {
    let cluster = Cluster::new();
    let one = cluster.node("one", NAME, None).await;
    let two = cluster.node("two", NAME, None).await;
    for server in [&one, &two] {
        let transport = cluster.transport(server);
        // About half of them are served by the other node.
        for number in 0..20 {
            start(&transport, &format!("{}-{number}", server.grpc_address()), "hello").await;
        }
        assert!(count(&transport).await.is_ok_and(|count| count >= 20));
    }
    assert_eq!((one.engine().figures().links, two.engine().figures().links), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_a_certificate_without_the_name_is_a_client_and_no_node() {
    let cluster = Cluster::new();
    let server = cluster.node("one", NAME, None).await;
    for name in ["client", "example.org", "other.nodes.example.org"] {
        let refused = cluster.link(&server, name).await.expect_err("it is no node");
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        assert!(refused.message().contains("certificate_name"), "{refused}");
    }
    // With the name it is asked to prove which node calls which.
    let unproven = cluster.link(&server, NAME).await.expect_err("it proves nothing");
    assert!(unproven.message().contains("the address does not match"), "{unproven}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_is_a_secret_too_nodes_need_both() {
    let cluster = Cluster::new();
    let server = cluster.node("one", NAME, node_config("one").secret).await;
    let refused = cluster.link(&server, NAME).await.expect_err("does not know the secret");
    assert!(refused.message().contains("secret"), "{refused}");
    let refused = cluster.link(&server, "client").await.expect_err("it is no node");
    assert!(refused.message().contains("certificate_name"), "{refused}");
}

/// The caller looks at the name as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_different_names_do_not_speak() {
    let cluster = Cluster::new();
    let one = cluster.node("one", NAME, None).await;
    let two = cluster.node("two", "others.example.org", None).await;
    assert_eq!((one.engine().figures().links, two.engine().figures().links), (0, 0));
}

#[tokio::test]
async fn a_name_that_nodes_cannot_have_is_refused_at_once() {
    let cluster = Cluster::new();
    let check = async |certificate_name: &str, tls: Option<Tls>, reason: &str| {
        let certificate_name = Some(certificate_name.to_owned());
        let node = NodeConfig { secret: None, certificate_name, ..node_config("one") };
        let config = Config { node: Some(node), tls, ..config() };
        let refused = Server::start(config, Arc::new(MemoryStore::default())).await.err();
        let refused = refused.expect("it does not start");
        assert!(matches!(refused, ServerError::CertificateName { .. }), "{refused}");
        assert!(refused.to_string().contains(reason), "{refused}");
    };
    check(NAME, None, "client_ca").await;
    check(NAME, Some(Tls { client_ca: None, ..cluster.tls(NAME) }), "client_ca").await;
    check("others.example.org", Some(cluster.tls(NAME)), "does not have it").await;
    check("no name", Some(cluster.tls(NAME)), "not a valid host name").await;
}
