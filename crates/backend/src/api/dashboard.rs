//! The dashboard: files built into the program, or a page that explains how to build them in.

use std::io::Read as _;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;

use super::problem::{Problem, shown};

/// One file of the dashboard.
#[derive(Debug)]
struct File {
    /// Path in URLs: `/assets/index.js`.
    path: &'static str,
    /// Changes with the content.
    etag: &'static str,
    content: Content,
}

/// The content of a file.
#[derive(Clone, Copy, Debug)]
enum Content {
    Plain(&'static [u8]),
    /// Compressed when the program was built (gzip).
    Gzip(&'static [u8]),
}

/// Content security policy: the page loads files of this server only. The map has a worker from a blob, and styles at its elements.
const SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
                               worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));

static NOT_BUILT: File =
    File { path: "/index.html", etag: "\"not-built\"", content: Content::Plain(include_bytes!("not_built.html")) };

/// Serves the start page.
pub(super) async fn index(headers: HeaderMap) -> Response {
    answer(find(FILES, "/index.html").unwrap_or(&NOT_BUILT), &headers)
}

/// Serves a file of the dashboard, for paths without a resource.
pub(super) async fn file(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    match find(FILES, uri.path()) {
        Some(file) if matches!(method, Method::GET | Method::HEAD) => answer(file, &headers),
        Some(_) => super::method_not_allowed(method, uri).await.into_response(),
        None => Problem::not_found(format!("there is no resource `{}`", shown(uri.path()))).into_response(),
    }
}

fn find(files: &'static [File], path: &str) -> Option<&'static File> {
    files.iter().find(|file| file.path == path)
}

fn answer(file: &File, headers: &HeaderMap) -> Response {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let fresh = known.is_some_and(|tags| {
        tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.etag.trim_start_matches("W/"))
    });
    let mut response = if fresh { StatusCode::NOT_MODIFIED.into_response() } else { content(file.content, headers) };
    let fields = [
        (header::CONTENT_TYPE, content_type(file.path)),
        (header::ETAG, file.etag),
        (header::CACHE_CONTROL, cache_control(file.path)),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    response.headers_mut().extend(fields.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// Returns the content, compressed if it is and the client accepts that.
fn content(content: Content, headers: &HeaderMap) -> Response {
    let mut response = match content {
        Content::Plain(octets) => return Body::from(Bytes::from_static(octets)).into_response(),
        Content::Gzip(octets) if accepts_gzip(headers) => {
            let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            (encoding, Body::from(Bytes::from_static(octets))).into_response()
        }
        Content::Gzip(octets) => {
            let mut plain = Vec::new();
            match GzDecoder::new(octets).read_to_end(&mut plain) {
                Ok(_) => Body::from(plain).into_response(),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// Returns `true` if the client accepts gzip (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let is_excluded = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        matches!(name.trim(), "gzip" | "*") && !is_excluded
    })
}

/// Returns the cache policy of a file. The names of files in `assets` contain a hash of their content, so they never change.
fn cache_control(path: &str) -> &'static str {
    if path.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_of(response: &Response, name: header::HeaderName) -> &str {
        response.headers()[name].to_str().unwrap()
    }

    #[test]
    fn hashed_assets_are_cached_and_pages_are_revalidated() {
        let script = File { path: "/assets/index-1a2b.js", etag: "\"1\"", content: Content::Plain(b"x") };
        let response = answer(&script, &HeaderMap::new());
        assert_eq!(header_of(&response, header::CONTENT_TYPE), "text/javascript; charset=utf-8");
        assert!(header_of(&response, header::CACHE_CONTROL).contains("immutable"));
        let page = answer(&NOT_BUILT, &HeaderMap::new());
        assert_eq!(header_of(&page, header::CONTENT_TYPE), "text/html; charset=utf-8");
        assert_eq!(header_of(&page, header::CACHE_CONTROL), "no-cache");
    }

    #[test]
    fn a_cached_version_is_not_sent_again() {
        for (tags, status) in [
            ("\"not-built\"", StatusCode::NOT_MODIFIED),
            ("\"old\", W/\"not-built\"", StatusCode::NOT_MODIFIED),
            ("\"old\"", StatusCode::OK),
        ] {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(tags))]);
            assert_eq!(answer(&NOT_BUILT, &headers).status(), status, "{tags}");
        }
    }

    #[tokio::test]
    async fn a_compressed_file_is_sent_as_the_client_accepts_it() {
        let text = b"a page ".repeat(500);
        let mut packed = Vec::new();
        flate2::read::GzEncoder::new(&text[..], flate2::Compression::best()).read_to_end(&mut packed).unwrap();
        let page = File { path: "/index.html", etag: "W/\"1\"", content: Content::Gzip(packed.leak()) };
        for (accepted, is_packed) in [
            (Some("gzip, deflate, br"), true),
            (Some("br;q=1.0, gzip;q=0.5"), true),
            (Some("*"), true),
            (Some("gzip;q=0"), false),
            (Some("identity"), false),
            (None, false),
        ] {
            let header = accepted.map(|value| (header::ACCEPT_ENCODING, HeaderValue::from_static(value)));
            let response = answer(&page, &HeaderMap::from_iter(header));
            assert_eq!(response.headers().contains_key(header::CONTENT_ENCODING), is_packed, "{accepted:?}");
            assert_eq!(header_of(&response, header::VARY), "accept-encoding");
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            assert_eq!(body == text, !is_packed);
        }
    }
}
