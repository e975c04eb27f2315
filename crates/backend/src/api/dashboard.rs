//! The dashboard: files built into the program, or a page that explains how to build them in.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::problem::{Problem, shown};

/// One file of the dashboard.
#[derive(Debug)]
struct File {
    /// Path in URLs: `/assets/index.js`.
    path: &'static str,
    /// Changes with the content.
    etag: &'static str,
    bytes: &'static [u8],
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));

static NOT_BUILT: File = File { path: "/index.html", etag: "\"not-built\"", bytes: include_bytes!("not_built.html") };

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
    let fresh = known.is_some_and(|tags| tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.etag));
    let mut response = if fresh {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(Bytes::from_static(file.bytes)).into_response()
    };
    let fields = [
        (header::CONTENT_TYPE, content_type(file.path)),
        (header::ETAG, file.etag),
        (header::CACHE_CONTROL, cache_control(file.path)),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    response.headers_mut().extend(fields.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
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
        let script = File { path: "/assets/index-1a2b.js", etag: "\"1\"", bytes: b"x" };
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
}
