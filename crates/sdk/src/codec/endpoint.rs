//! An HTTP endpoint of your own that encodes and decodes payloads for the web UI and the command
//! line, so that people can read data whose keys stay with you. The engine never calls it.
//!
//! `POST /encode` and `POST /decode` take and return
//! `{"payloads":[{"metadata":{"encoding":"BASE64"},"data":"BASE64"}]}`, as codec servers of other
//! workflow engines do.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ORIGIN, VARY,
    },
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use ring::hmac;
use tokio::{net::TcpListener, sync::Semaphore};

use super::{CodecProblem, Codecs, PayloadsJson};

/// The largest body of a request: more than a page of history.
const BODY_MAX: usize = 16 * 1024 * 1024;

/// The most payloads of a request.
const PAYLOADS_MAX: usize = 10_000;

/// How many connections are served at once; others wait.
const CONNECTIONS_MAX: usize = 100;

/// How long a caller may take for the head of its request, and for its body.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may last, so that callers who read nothing do not keep its place.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);

/// How many bytes an answer may have when it is decoded.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// The least length of a token.
const TOKEN_MIN: usize = 16;

/// Encodes and decodes payloads over HTTP for callers who know the token.
///
/// [`CodecEndpoint::serve`] is a server of its own, without TLS: listen on the loopback address, or
/// put it behind a proxy that has it. [`CodecEndpoint::answer`] answers one request, to be mounted in
/// a web framework.
#[derive(Clone)]
pub struct CodecEndpoint {
    codecs: Codecs,
    token: Arc<str>,
    origins: Arc<[HeaderValue]>,
}

/// Why an endpoint cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The token is too short to be a secret.
    #[error("the token of a codec endpoint has at least {TOKEN_MIN} characters; this one has {0}")]
    Token(usize),
    /// The origin cannot be sent in a header.
    #[error("the origin {0:?} must be like https://ui.example.org, without a path")]
    Origin(String),
}

impl CodecEndpoint {
    /// An endpoint with these codecs. Callers send the token as `Authorization: Bearer TOKEN`.
    pub fn new(codecs: Codecs, token: impl Into<Arc<str>>) -> Result<Self, EndpointError> {
        let token = token.into();
        match token.chars().count() {
            TOKEN_MIN.. => {
                let most = codecs.decoded_max.min(ANSWER_MAX);
                Ok(Self { codecs: codecs.decode_at_most(most), token, origins: Arc::new([]) })
            }
            length => Err(EndpointError::Token(length)),
        }
    }

    /// Lets web pages of this origin, such as `https://ui.example.org`, call the endpoint.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, EndpointError> {
        let wrong = || EndpointError::Origin(origin.to_owned());
        let (_, host) = origin.split_once("://").ok_or_else(wrong)?;
        if host.is_empty() || host.contains('/') {
            return Err(wrong());
        }
        let origin = HeaderValue::from_str(origin).map_err(|_| wrong())?;
        self.origins = self.origins.iter().cloned().chain([origin]).collect();
        Ok(self)
    }

    /// Serves callers until the future is dropped.
    pub async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            let (stream, _) = match listener.accept().await {
                Ok(accepted) => accepted,
                // The caller has gone, or there are too many open files for a moment.
                Err(error) => {
                    tracing::warn!(%error, "a connection to the codec endpoint failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let endpoint = self.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| endpoint.clone().serve_one(request));
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(READ_TIMEOUT);
                let connection = server.serve_connection(TokioIo::new(stream), service);
                // An error ends this connection only, and its caller knows.
                let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
                drop(place);
            });
        }
    }

    async fn serve_one(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        // Strangers are sent away before anything of their body is read.
        let unread = head.method == Method::OPTIONS;
        let read = match unread || self.refusal(&head.method, &head.headers).is_some() {
            true => Bytes::new(),
            false => {
                let whole = Limited::new(body, BODY_MAX).collect();
                match tokio::time::timeout(READ_TIMEOUT, whole).await {
                    Ok(Ok(body)) => body.to_bytes(),
                    Ok(Err(_)) => {
                        let what = format!("the body is larger than {BODY_MAX} bytes, or cut off");
                        return Ok(problem(StatusCode::PAYLOAD_TOO_LARGE, &what).map(Full::new));
                    }
                    Err(_) => {
                        let what = "the body did not arrive in time";
                        return Ok(problem(StatusCode::REQUEST_TIMEOUT, what).map(Full::new));
                    }
                }
            }
        };
        Ok(self.answer(Request::from_parts(head, read)).await.map(Full::new))
    }

    /// Answers one request. Whoever mounts it bounds the size of bodies.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let origin = self.allowed(request.headers()).cloned();
        let mut response = self.answer_caller(&request).await;
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        }
        response
    }

    async fn answer_caller(&self, request: &Request<Bytes>) -> Response<Bytes> {
        if request.method() == Method::OPTIONS {
            return preflight();
        }
        if let Some(refusal) = self.refusal(request.method(), request.headers()) {
            return refusal;
        }
        let path = request.uri().path();
        let decodes = match path.rsplit('/').next() {
            Some("decode") => true,
            Some("encode") => false,
            _ => return problem(StatusCode::NOT_FOUND, "there are /encode and /decode"),
        };
        let payloads = match serde_json::from_slice::<PayloadsJson>(request.body()) {
            Ok(json) if json.len() > PAYLOADS_MAX => {
                let what = format!("there are {} payloads; at most {PAYLOADS_MAX}", json.len());
                return problem(StatusCode::PAYLOAD_TOO_LARGE, &what);
            }
            Ok(json) => json.payloads().map_err(|error| error.to_string()),
            Err(error) => Err(format!("the body is not {{\"payloads\":[…]}}: {error}")),
        };
        let payloads = match payloads {
            Ok(payloads) => payloads,
            Err(what) => return problem(StatusCode::BAD_REQUEST, &what),
        };
        let coded = match decodes {
            true => self.codecs.decode(payloads).await,
            false => self.codecs.encode(payloads).await,
        };
        match coded {
            Ok(payloads) => json(StatusCode::OK, &PayloadsJson::new(&payloads)),
            Err(error) => {
                let status = match error.problem() {
                    CodecProblem::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                    CodecProblem::Missing | CodecProblem::Refused => {
                        StatusCode::UNPROCESSABLE_ENTITY
                    }
                };
                problem(status, &error.to_string())
            }
        }
    }

    /// Why this caller is not answered.
    fn refusal(&self, method: &Method, headers: &HeaderMap) -> Option<Response<Bytes>> {
        if method == Method::OPTIONS {
            return None;
        }
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let known = sent
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .is_some_and(|(_, token)| same(token.trim(), &self.token));
        if !known {
            let what = "send the endpoint's token as Authorization: Bearer TOKEN";
            return Some(problem(StatusCode::UNAUTHORIZED, what));
        }
        (method != Method::POST)
            .then(|| problem(StatusCode::METHOD_NOT_ALLOWED, "use POST /encode or POST /decode"))
    }

    /// The origin of the calling page, if it may call.
    fn allowed(&self, headers: &HeaderMap) -> Option<&HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.origins.iter().find(|allowed| *allowed == origin)
    }
}

/// What a browser asks before it calls from another origin.
fn preflight() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type, x-namespace"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

fn problem(status: StatusCode, message: &str) -> Response<Bytes> {
    json(status, &serde_json::json!({ "message": message }))
}

fn json(status: StatusCode, body: &impl serde::Serialize) -> Response<Bytes> {
    // Strings and maps of strings can always be written.
    let mut response = Response::new(serde_json::to_vec(body).unwrap_or_default().into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Compares without telling by the time it takes where two texts differ.
fn same(one: &str, other: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"codec endpoint");
    hmac::verify(&key, one.as_bytes(), hmac::sign(&key, other.as_bytes()).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use abide_core::payload::Payload;

    use super::*;
    use crate::codec::{Key, KeyRing};

    const TOKEN: &str = "a long enough token";

    fn endpoint() -> CodecEndpoint {
        let keys = KeyRing::new(Key::new("k", &[7; 32]).unwrap());
        let endpoint = CodecEndpoint::new(Codecs::new().encrypt(keys), TOKEN).unwrap();
        endpoint.allow_origin("https://ui.example.org").unwrap()
    }

    fn request(path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
        let request = Request::post(path).header(AUTHORIZATION, format!("Bearer {TOKEN}"));
        request.body(body.into()).unwrap()
    }

    async fn call(request: Request<Bytes>) -> (u16, String) {
        let response = endpoint().answer(request).await;
        let status = response.status().as_u16();
        (status, String::from_utf8(response.into_body().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn what_it_encodes_it_decodes() {
        let plain = [Payload::new("1"), Payload::new("\"secret\"")];
        let body = serde_json::to_vec(&PayloadsJson::new(&plain)).unwrap();
        let (status, encoded) = call(request("/encode", body)).await;
        assert_eq!(status, 200);
        let sent = serde_json::from_str::<PayloadsJson>(&encoded).unwrap().payloads().unwrap();
        assert_eq!(sent[1].metadata["encoding"], "codec/aes-256-gcm");
        let (status, decoded) = call(request("/any/prefix/decode", encoded)).await;
        let decoded: PayloadsJson = serde_json::from_str(&decoded).unwrap();
        assert_eq!((status, decoded.payloads().unwrap()), (200, plain.to_vec()));
    }

    #[tokio::test]
    async fn json_that_is_nested_too_deeply_is_refused() {
        for start in ["", "{\"payloads\":", "{\"other\":", "{\"payloads\":[{\"data\":"] {
            let deep = format!("{start}{}", "[".repeat(1 << 20));
            let (status, told) = call(request("/decode", deep)).await;
            assert_eq!(status, 400, "{told}");
        }
    }

    #[tokio::test]
    async fn callers_without_the_token_learn_nothing() {
        for token in ["", "Bearer", "Bearer x", "Basic a long enough token"] {
            let mut request = request("/decode", "{}");
            request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static(token));
            assert_eq!(call(request).await.0, 401, "{token:?}");
        }
        let mut bare = request("/decode", "{}");
        bare.headers_mut().remove(AUTHORIZATION);
        assert_eq!(call(bare).await.0, 401);
        let refused = CodecEndpoint::new(Codecs::new(), "short").err();
        assert_eq!(refused, Some(EndpointError::Token(5)));
    }

    #[tokio::test]
    async fn wrong_requests_say_what_is_wrong() {
        let check = async |request, status: u16, text: &str| {
            let (found, body) = call(request).await;
            assert!(found == status && body.contains(text), "{found} {body}");
        };
        check(request("/", "{}"), 404, "/encode and /decode").await;
        check(request("/decode", "[]"), 400, "the body is not").await;
        let odd = r#"{"payloads":[{"data":"?"}]}"#;
        check(request("/decode", odd), 400, "payloads[0].data is not base64").await;
        let many = format!(r#"{{"payloads":[{}{{}}]}}"#, "{},".repeat(PAYLOADS_MAX));
        check(request("/decode", many), 413, "at most 10000").await;
        let unknown = PayloadsJson::new(&[crate::codec::encoded_payload("codec/other", "x")]);
        let unknown = serde_json::to_vec(&unknown).unwrap();
        check(request("/decode", unknown), 422, "no codec of this program reads").await;
        let mut get = request("/decode", "");
        *get.method_mut() = Method::GET;
        check(get, 405, "use POST").await;
    }

    /// One small payload may name a large one, many times.
    #[tokio::test]
    async fn an_answer_has_a_bound() {
        let codecs = Codecs::new().compress();
        let large = vec![Payload::new(vec![0; 1 << 20])];
        let sent = codecs.encode(large).await.unwrap().remove(0);
        let endpoint = CodecEndpoint::new(codecs, TOKEN).unwrap();
        let body = serde_json::to_vec(&PayloadsJson::new(&vec![sent; 65])).unwrap();
        let response = endpoint.answer(request("/decode", body)).await;
        assert_eq!(response.status(), 422);
        let said = String::from_utf8_lossy(response.body()).into_owned();
        assert!(said.contains("more than 67108864 bytes when it is decoded"), "{said}");
    }

    /// A stranger who announces a body gets an answer without sending any of it.
    #[tokio::test]
    async fn bodies_of_strangers_are_not_read() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(endpoint().serve(listener));
        for (method, status) in [("OPTIONS", "204"), ("POST", "401")] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let head =
                format!("{method} /decode HTTP/1.1\r\nhost: x\r\ncontent-length: 16000000\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
        }
        serving.abort();
    }

    #[tokio::test]
    async fn only_pages_of_allowed_origins_may_call() {
        for (origin, allowed) in [("https://ui.example.org", true), ("https://evil.org", false)] {
            let request = Request::options("/decode").header(ORIGIN, origin);
            let response = endpoint().answer(request.body(Bytes::new()).unwrap()).await;
            assert_eq!(response.status(), 204);
            let may = response.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN);
            assert_eq!(may.is_some_and(|may| may == origin), allowed);
        }
        for wrong in ["*", "ui.example.org", "https://", "https://ui.example.org/"] {
            assert!(endpoint().allow_origin(wrong).is_err(), "{wrong}");
        }
    }
}
