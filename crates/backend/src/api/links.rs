//! Absolute links in answers.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

use crate::settings::SettingsError;

/// Header in which a reverse proxy passes the host that the client requested.
const FORWARDED_HOST: &str = "x-forwarded-host";
/// Header in which a reverse proxy passes the scheme that the client used.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Source of the beginning of absolute links.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// The setting `public_url` without a trailing slash.
    public_url: Option<String>,
    /// Authority for requests without a usable host: the address on which the API listens.
    listen: String,
}

impl Links {
    /// Reads the setting.
    ///
    /// # Errors
    /// Returns an error if `public_url` is not an `http` or `https` URL with a host, or has a query.
    pub(super) fn new(public_url: Option<&str>, listen: String) -> Result<Self, SettingsError> {
        let public_url = public_url.map(read_public_url).transpose()?;
        Ok(Self { public_url, listen })
    }

    /// Returns the URL under which the client reaches `path_and_query`, below the public URL if one is set. Otherwise
    /// the host is taken from a reverse proxy's header, else from the request, else from the listening address. Invalid
    /// headers are ignored.
    pub(super) fn absolute(&self, headers: &HeaderMap, uri: &Uri, path_and_query: &str) -> String {
        if let Some(public_url) = &self.public_url {
            return format!("{public_url}{path_and_query}");
        }
        let scheme = match first(headers, FORWARDED_PROTO) {
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => "https",
            _ => "http",
        };
        let host = host(first(headers, FORWARDED_HOST))
            .or_else(|| host(uri.authority().map(Authority::as_str)))
            .or_else(|| host(first(headers, header::HOST.as_str())));
        format!("{scheme}://{}{path_and_query}", host.unwrap_or(&self.listen))
    }
}

/// Returns the first element of a header that proxies may have extended to a list.
fn first<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()?.split(',').next().map(str::trim)
}

/// Returns the host with its port, or `None` if it is not one: it becomes part of URLs.
fn host(text: Option<&str>) -> Option<&str> {
    let text = text?;
    let authority: Authority = text.parse().ok()?;
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
    (plain && !authority.host().is_empty()).then_some(text)
}

fn read_public_url(text: &str) -> Result<String, SettingsError> {
    let invalid = || {
        let problem = format_args!("`{text}` is not like `https://host:port/path`").to_string();
        SettingsError::new("public_url", &problem)
    };
    let uri: Uri = text.parse().map_err(|_| invalid())?;
    let valid = matches!(uri.scheme_str(), Some("http" | "https"))
        && host(uri.authority().map(Authority::as_str)).is_some()
        && uri.query().is_none()
        && !text.contains('#');
    if !valid {
        return Err(invalid());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn links(public_url: Option<&str>) -> Links {
        Links::new(public_url, "127.0.0.1:8080".to_owned()).unwrap()
    }

    fn absolute(links: &Links, headers: &[(&'static str, &'static str)]) -> String {
        let headers = headers
            .iter()
            .map(|&(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_static(value)));
        links.absolute(&headers.collect(), &Uri::from_static("/v1/latest"), "/v1/latest?bbox=1,2,3,4")
    }

    #[test]
    fn a_link_has_the_host_that_the_client_used() {
        for (headers, expected) in [
            (&[("host", "edge.local:8080")][..], "http://edge.local:8080"),
            (&[("host", "[::1]:8080")], "http://[::1]:8080"),
            (
                &[("host", "a"), ("x-forwarded-host", "api.example.org"), ("x-forwarded-proto", "https")],
                "https://api.example.org",
            ),
            (
                &[("host", "a"), ("x-forwarded-host", "b.example, c"), ("x-forwarded-proto", "HTTPS, http")],
                "https://b.example",
            ),
            (&[("host", "a"), ("x-forwarded-proto", "javascript")], "http://a"),
            (&[("host", "a"), ("x-forwarded-host", "x\"><script>")], "http://a"),
            (&[("host", "user@evil")], "http://127.0.0.1:8080"),
            (&[("host", "a/b")], "http://127.0.0.1:8080"),
            (&[], "http://127.0.0.1:8080"),
        ] {
            assert_eq!(absolute(&links(None), headers), format!("{expected}/v1/latest?bbox=1,2,3,4"), "{headers:?}");
        }
    }

    #[test]
    fn the_setting_overrides_the_request() {
        let links = links(Some("https://example.org/viaduct/"));
        assert_eq!(absolute(&links, &[("host", "a")]), "https://example.org/viaduct/v1/latest?bbox=1,2,3,4");
    }

    #[test]
    fn an_invalid_public_url_is_rejected() {
        for text in
            ["example.org", "ftp://example.org", "https://", "/v1", "https://a?b", "https://a/#b", "https://u@a"]
        {
            let error = Links::new(Some(text), String::new()).unwrap_err();
            assert!(error.key == "public_url" && error.problem.contains(text), "{error}");
        }
    }
}
