//! Codecs over the network: nothing that users write is readable between client, worker and server.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use abide::{
    Client, Codecs, Context, Worker,
    codec::{Compress, Key, KeyRing},
    grpc::{GrpcOptions, GrpcTransport},
};
use abide_sdk::{activity, workflow};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::support::{config, server};

/// Is in everything that users write.
const SECRET: &str = "Rumpelstilzchen";

fn secret(what: &str) -> String {
    format!("{SECRET} {what}")
}

/// Passes bytes on between clients and a server, and keeps them: one list for each connection and
/// direction.
struct Wire {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Wire {
    async fn tap(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let (address, seen) = (listener.local_addr().expect("it is bound"), Arc::default());
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.expect("the server listens");
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pass_on(from_client, to_server, Arc::clone(&kept)));
                tokio::spawn(pass_on(from_server, to_client, Arc::clone(&kept)));
            }
        });
        Self { address, seen }
    }

    fn client(&self, codecs: Codecs) -> Client {
        let options = GrpcOptions::new(format!("http://{}", self.address));
        let transport = GrpcTransport::new(&options).expect("a good address");
        Client::new(Arc::new(transport)).with_codecs(codecs)
    }

    fn readable(&self) -> bool {
        let seen = self.seen.lock().expect("no one panicked");
        let has_secret =
            |bytes: &Vec<u8>| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(seen.iter().map(Vec::len).sum::<usize>() > 1_000, "bytes were passed on");
        seen.iter().any(has_secret)
    }
}

async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, kept: Arc<Mutex<Vec<Vec<u8>>>>) {
    let place = {
        let mut kept = kept.lock().expect("no one panicked");
        kept.push(Vec::new());
        kept.len() - 1
    };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        kept.lock().expect("no one panicked")[place].extend_from_slice(&buffer[..count]);
        if to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}

#[activity]
async fn spin(straw: String) -> String {
    format!("{straw} as gold")
}

#[derive(Default)]
struct Mill {
    names: Vec<String>,
}

#[workflow]
impl Mill {
    #[run]
    async fn run(ctx: &Context<Self>, straw: String) -> abide::Result<String> {
        let gold = ctx.activity(spin, straw).await?;
        ctx.receive(Self::CLOSE).await?;
        Ok(gold)
    }

    #[signal]
    fn close(reason: String);

    #[query]
    fn heard(&self, prefix: String) -> Vec<String> {
        self.names.iter().map(|name| format!("{prefix} {name}")).collect()
    }

    #[update]
    fn rename(&mut self, name: String) -> Result<String, String> {
        self.names.push(name.clone());
        Ok(format!("{name} noted"))
    }
}

/// Whether any byte of a whole run was readable on the wire.
async fn readable_with(codecs: Codecs) -> bool {
    let server = server(config()).await;
    let wire = Wire::tap(server.grpc_address()).await;
    let client = wire.client(codecs);
    // No run is kept in memory, so the worker reads histories, too.
    let worker = Worker::new(&client).build_id("test").workflow::<Mill>().activity(spin);
    let test = async {
        let start = Mill::start(&client, "mill", secret("straw")).memo("note", &secret("memo"));
        let mill = start.await.expect("it starts");
        let renamed = mill.rename(secret("update")).await.expect("it is accepted");
        assert_eq!(renamed, format!("{} noted", secret("update")));
        let heard = mill.heard(secret("query")).await.expect("it answers");
        assert_eq!(heard, [format!("{} {}", secret("query"), secret("update"))]);
        mill.close(secret("signal")).await.expect("it arrives");
        let gold = mill.result().await.expect("it completes");
        assert_eq!(gold, format!("{} as gold", secret("straw")));
        assert!(!mill.history().await.expect("it is listed").is_empty());
    };
    worker.max_cached_runs(0).run_until(Box::pin(test)).await.expect("it works");
    server.shutdown().await.expect("it stops");
    wire.readable()
}

#[tokio::test]
async fn nothing_readable_crosses_the_wire() {
    let keys = KeyRing::new(Key::new("k", &[7; 32]).expect("a good key"));
    let codecs = Codecs::new().with(Compress::new().from_size(40)).encrypt(keys);
    assert!(!readable_with(codecs).await);
}

/// The test before would find what is readable.
#[tokio::test]
async fn without_codecs_all_of_it_is_readable_on_the_wire() {
    assert!(readable_with(Codecs::new()).await);
}
