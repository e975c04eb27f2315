//! Errors of requests, by RFC 9457.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// A problem details object (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `about:blank`: the status identifies the kind of problem.
    r#type: &'static str,
    /// The status in words.
    title: &'static str,
    /// HTTP status code.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The problem with this request: what was expected and what was received.
    detail: String,
    /// The query or path parameter at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    parameter: Option<String>,
}

/// Largest number of characters of a client's value that an answer repeats.
const SHOWN_CHARACTERS_MAX: usize = 80;

/// Returns a client's value in the form in which a problem shows it: shortened if it is long.
pub(super) fn shown(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]).into(),
        None => value.into(),
    }
}

impl Problem {
    /// Creates a problem with the given status.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { r#type: "about:blank", title, status: status.as_u16(), detail: detail.into(), parameter: None }
    }

    /// Creates a problem with status 400: a parameter has an invalid value, or its name is unknown.
    pub(super) fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self { parameter: Some(shown(name).into_owned()), ..Self::new(StatusCode::BAD_REQUEST, detail) }
    }

    /// Creates a problem with status 404.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Creates a problem with status 503: a limit of this server is reached, and the same request may succeed later.
    pub(super) fn busy(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
