//! Encodes and decodes payloads by a codec endpoint, whose owner has the keys. To a client it is a
//! codec like any other.

use std::{sync::Arc, time::Duration};

use abide::codec::{BoxFuture, Codec, CodecError, Codecs, ENCODED, PayloadsJson};
use abide_core::payload::Payload;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Uri,
    body::Bytes,
    client::conn::http1,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider, pki_types::ServerName},
};

use crate::Failed;

/// The name in messages.
const NAME: &str = "codec endpoint";

/// How long a call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// The largest answer that is read.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// How much of an answer that is no JSON is quoted.
const QUOTED_CHARS: usize = 200;

/// A codec endpoint that this program calls.
struct CodecEndpointClient {
    /// Without a slash at its end.
    url: String,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
    token: Option<HeaderValue>,
}

/// Codecs that call the endpoint at this address. What cannot be decoded is shown as it is.
pub(crate) fn codecs(url: &str, token: Option<&str>) -> Result<Codecs, Failed> {
    let refuse = |why: &str| {
        Failed::usage(format_args!("invalid codec endpoint {url:?}: {why}"))
            .hint("write it as http://127.0.0.1:8234, or with https for TLS")
    };
    let uri: Uri = url.parse().map_err(|_| refuse("it is no address"))?;
    let host = uri.host().ok_or_else(|| refuse("it has no host"))?;
    let (tls, port) = match uri.scheme_str() {
        Some("http") => (None, 80),
        Some("https") => (Some(connector()), 443),
        _ => return Err(refuse("it must begin with http:// or https://")),
    };
    let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {}", token.trim())));
    let mut token = token.transpose().map_err(|_| refuse("its token has odd characters"))?;
    if let Some(token) = &mut token {
        token.set_sensitive(true);
    }
    let client = CodecEndpointClient {
        url: url.trim_end_matches('/').to_owned(),
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: uri.port_u16().unwrap_or(port),
        tls,
        token,
    };
    Ok(Codecs::new().with(client).keep_unreadable())
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    // Without roots every connection fails, with an error that says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

impl CodecEndpointClient {
    async fn call(&self, path: &str, payloads: &[Payload]) -> Result<Vec<Payload>, CodecError> {
        let unavailable = |why: String| {
            CodecError::unavailable(NAME, format!("{}{path} cannot be called: {why}", self.url))
        };
        let called = timeout(CALL_TIMEOUT, self.send(path, payloads)).await;
        let (status, body) = called
            .map_err(|_| unavailable(format!("no answer within {CALL_TIMEOUT:?}")))?
            .map_err(unavailable)?;
        if !(200..300).contains(&status) {
            let message = format!("{}{path} answers {status}: {}", self.url, told(&body));
            return Err(match status {
                500.. => CodecError::unavailable(NAME, message),
                _ => CodecError::refused(NAME, message),
            });
        }
        let answer: PayloadsJson = serde_json::from_slice(&body)
            .map_err(|error| CodecError::refused(NAME, format!("its answer is odd: {error}")))?;
        answer.payloads().map_err(|error| CodecError::refused(NAME, error.to_string()))
    }

    async fn send(&self, path: &str, payloads: &[Payload]) -> Result<(u16, Bytes), String> {
        let address = (self.host.as_str(), self.port);
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let request = self.request(path, payloads)?;
        match &self.tls {
            None => exchange(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| "the host is no name for TLS".to_owned())?;
                let stream = tls.connect(name, stream).await.map_err(|error| error.to_string())?;
                exchange(stream, request).await
            }
        }
    }

    fn request(&self, path: &str, payloads: &[Payload]) -> Result<Request<Full<Bytes>>, String> {
        let uri: Uri = format!("{}{path}", self.url).parse().map_err(|error| format!("{error}"))?;
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder().method(Method::POST).uri(path).header(HOST, host);
        request = request.header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        let body = serde_json::to_vec(&PayloadsJson::new(payloads));
        let body = body.map_err(|error| error.to_string())?;
        request.body(Full::new(body.into())).map_err(|error| error.to_string())
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(u16, Bytes), String> {
    let shown = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(shown)?;
    // It ends with the exchange, and the sender reports its errors.
    let driving = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(shown)?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    driving.abort();
    Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
}

/// The message of an error's body, or the beginning of the body.
fn told(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = json.as_ref().and_then(|json| json.get("message")?.as_str());
    let text = message.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    text.chars().take(QUOTED_CHARS).collect()
}

impl Codec for CodecEndpointClient {
    fn name(&self) -> &str {
        NAME
    }

    fn reads(&self, encoding: &str) -> bool {
        encoding.starts_with(ENCODED)
    }

    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move {
            match payloads.is_empty() {
                true => Ok(payloads),
                false => self.call("/encode", &payloads).await,
            }
        })
    }

    fn decode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move { self.call("/decode", &payloads).await })
    }
}
