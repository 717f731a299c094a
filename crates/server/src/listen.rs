//! Serves the connections of a listener, each in its own task. An evicted connection is told the
//! reason, and has a moment to finish.

use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use axum::Router;
use futures_util::{StreamExt as _, stream};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tonic::{
    codegen::{Service as _, http},
    service::Routes,
    transport::server::Connected,
};

use crate::{
    Bounds,
    accept::{Acceptor, Socket},
    connections::{Admission, Connection, Evicted},
    framing,
};

/// Time that an evicted connection has to tell its streams why they end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The same for a connection without streams.
const LAST_WORD: Duration = Duration::from_millis(100);

/// Bytes that the transport buffers for writing on one stream.
const SEND_BUFFER: usize = 64 << 10;

/// Largest request to the HTTP listener, which answers probes, in bytes.
const HTTP_BUFFER: usize = 16 << 10;

/// Serves gRPC until `stopped` resolves; then waits for open requests.
pub(crate) async fn grpc(
    acceptor: Acceptor,
    bounds: Arc<Bounds>,
    routes: Routes,
    tls: Option<TlsAcceptor>,
    stopped: impl Future<Output = ()> + Clone + Send + 'static,
) {
    let routes = routes.prepare();
    serve(acceptor, stopped.clone(), move |socket, place| {
        let (bounds, routes, tls) = (Arc::clone(&bounds), routes.clone(), tls.clone());
        let stopped = stopped.clone();
        async move {
            match tls {
                None => {
                    let info = socket.connect_info();
                    let named = move |request: &mut http::Request<Incoming>| {
                        request.extensions_mut().insert(info.clone());
                    };
                    http2(socket, &place, &bounds, (routes, named), stopped).await;
                }
                Some(tls) => {
                    let peer = socket.connect_info().remote_addr();
                    let shaken = timeout(bounds.hello_timeout(), tls.accept(socket));
                    let shaken = tokio::select! {
                        shaken = shaken => shaken.unwrap_or_else(|late| Err(late.into())),
                        _ = place.connection.evicted() => return,
                    };
                    let socket = match shaken {
                        Ok(socket) => socket,
                        Err(error) => {
                            return place
                                .connection
                                .connections()
                                .failed_handshakes
                                .add(peer, error);
                        }
                    };
                    let info = socket.connect_info();
                    let named = move |request: &mut http::Request<Incoming>| {
                        request.extensions_mut().insert(info.get_ref().clone());
                        request.extensions_mut().insert(info.clone());
                    };
                    http2(socket, &place, &bounds, (routes, named), stopped).await;
                }
            }
        }
    })
    .await;
}

/// Serves HTTP until `stopped` resolves; then waits for open requests.
pub(crate) async fn http(
    acceptor: Acceptor,
    bounds: Arc<Bounds>,
    router: Router,
    stopped: impl Future<Output = ()> + Clone + Send + 'static,
) {
    serve(acceptor, stopped.clone(), move |socket, place| {
        let (bounds, router, stopped) = (Arc::clone(&bounds), router.clone(), stopped.clone());
        async move {
            let connection = Arc::clone(&place.connection);
            // Probes check only whether they are answered, so a refusal needs no reason.
            if connection.is_turned_away() {
                return;
            }
            let answer = service_fn(move |request: http::Request<Incoming>| {
                let (open, mut router) = (connection.begin(), router.clone());
                async move {
                    let answered: Result<_, Infallible> = router.call(request).await;
                    drop(open);
                    answered
                }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(bounds.hello_timeout())
                .max_buf_size(HTTP_BUFFER)
                .serve_connection(TokioIo::new(socket), answer);
            let end = |served: Pin<&mut http1::Connection<_, _>>| served.graceful_shutdown();
            until_end(served, end, &place.connection, stopped).await;
        }
    })
    .await;
}

/// Accepts connections until `stopped` resolves, then waits for the open ones.
async fn serve<F>(
    acceptor: Acceptor,
    stopped: impl Future<Output = ()>,
    connect: impl Fn(Socket, Admission) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut stopped = std::pin::pin!(stopped);
    let come = stream::unfold(acceptor, |acceptor| async move {
        let next = acceptor.next().await;
        Some((next, acceptor))
    });
    {
        let mut come = std::pin::pin!(come);
        loop {
            tokio::select! {
                () = &mut stopped => break,
                Some((socket, place)) = come.next() => {
                    connections.spawn(connect(socket, place));
                }
                // Reap connections that have ended.
                Some(_) = connections.join_next() => {}
            }
        }
        // The listener is dropped here, so that no connection waits in its backlog while the server
        // stops.
    }
    while connections.join_next().await.is_some() {}
}

/// Serves one connection. `name` adds its addresses and certificates to the extensions of each
/// request.
async fn http2<IO, N>(
    socket: IO,
    place: &Admission,
    bounds: &Bounds,
    (routes, name): (Routes, N),
    stopped: impl Future<Output = ()> + Send,
) where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    N: Fn(&mut http::Request<Incoming>) + Send + 'static,
{
    let connection = Arc::clone(&place.connection);
    let answer = service_fn(move |mut request: http::Request<Incoming>| {
        name(&mut request);
        framing::answer(routes.clone(), Arc::clone(&connection), request)
    });
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_connection_window_size(place.window)
        .initial_stream_window_size(place.window.min(abide_proto::STREAM_WINDOW))
        .max_concurrent_streams(bounds.streams_per_connection)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(Some(bounds.keepalive()))
        .keep_alive_timeout(bounds.keepalive())
        .serve_connection(TokioIo::new(socket), answer);
    let end = |served: Pin<&mut http2::Connection<_, _, _>>| served.graceful_shutdown();
    until_end(served, end, &place.connection, stopped).await;
}

/// Drives a connection until it ends or is evicted.
async fn until_end<C: Future>(
    served: C,
    end: impl Fn(Pin<&mut C>),
    connection: &Arc<Connection>,
    stopped: impl Future<Output = ()>,
) {
    let mut served = std::pin::pin!(served);
    let why = tokio::select! {
        // The connection has ended, so there is no peer left to report to.
        _ = served.as_mut() => return,
        why = connection.evicted() => Some(why),
        // A refused connection learns the reason from the answer to its request. If it were closed
        // gracefully first, it would never send one.
        () = sleep(LAST_WORDS), if connection.is_turned_away() => return,
        () = stopped => None,
    };
    end(served.as_mut());
    let leave = async {
        match why {
            Some(Evicted::Idle) => sleep(LAST_WORD).await,
            Some(_) => sleep(LAST_WORDS).await,
            // The server itself limits how long it waits for all connections.
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = served => {}
        () = leave => {}
    }
}
