//! Requests and their responses, whatever transport they arrive on.

use hyper::Method;
use viaduct_bus::Counter;
use viaduct_coap::codec::{Code, ContentFormat, OptionNumber};
use viaduct_coap::{Request, Response, link_format};

use super::proxy::{Forwarded, ProxySettings};
use super::resources::{Absent, Resources};
use crate::mqtt::answer::Refusal;

/// Handling of a request.
pub(super) enum Outcome {
    /// It is answered. With a path, the client may observe the resource.
    Respond(Response, Option<String>),
    /// It is passed on to the HTTP server.
    Forward(Forwarded),
}

/// The resources with their counters.
pub(super) struct Service {
    pub(super) resources: Resources,
    pub(super) proxy: Option<ProxySettings>,
    pub(super) counters: ServiceCounters,
}

/// Counters of requests.
pub(super) struct ServiceCounters {
    pub(super) requests: Counter,
    pub(super) published: Counter,
    pub(super) forwarded: Counter,
    /// Responses of the classes 2, 4 and 5.
    pub(super) responses: [Counter; 3],
}

impl ServiceCounters {
    /// Counts a response by the class of its code.
    pub(super) fn respond(&self, response: &Response) {
        let [success, client_error, server_error] = &self.responses;
        match response.code.class() {
            2 => success.increment(),
            4 => client_error.increment(),
            _ => server_error.increment(),
        }
    }
}

impl Service {
    /// Handles a request.
    pub(super) fn handle(&mut self, request: &Request) -> Outcome {
        self.counters.requests.increment();
        let outcome = self.outcome(request);
        if let Outcome::Respond(response, _) = &outcome {
            self.counters.respond(response);
        }
        outcome
    }

    fn outcome(&mut self, request: &Request) -> Outcome {
        let respond = |response| Outcome::Respond(response, None);
        let segments: Result<Vec<&str>, _> = request.path().map(|segment| std::str::from_utf8(segment)).collect();
        let Ok(path) = segments else {
            return respond(Response::diagnostic(Code::BAD_REQUEST, "the path is not UTF-8"));
        };
        if let Some(forwarded) = self.forwarded(request, &path) {
            return forwarded;
        }
        match request.method {
            Code::GET => self.read(request, &path),
            Code::POST | Code::PUT => respond(self.write(request, &path)),
            _ => respond(Response::diagnostic(Code::METHOD_NOT_ALLOWED, "expected GET, POST or PUT")),
        }
    }

    fn read(&mut self, request: &Request, path: &[&str]) -> Outcome {
        let Some((resource, topic)) = self.resources.find(path) else {
            return Outcome::Respond(not_found(), None);
        };
        if let Some(wrong) = not_acceptable(request, resource.content_format()) {
            return Outcome::Respond(wrong, None);
        }
        match resource.representation(topic.as_deref()) {
            Ok(representation) => Outcome::Respond(representation.response(), Some(path.join("/"))),
            Err(absent) => Outcome::Respond(absent.response(), None),
        }
    }

    /// Returns the current state of a resource for its observers.
    pub(super) fn state(&mut self, path: &str) -> Response {
        let path: Vec<&str> = path.split('/').collect();
        match self.resources.find(&path) {
            Some((resource, topic)) => match resource.representation(topic.as_deref()) {
                Ok(representation) => representation.response(),
                Err(absent) => absent.response(),
            },
            None => not_found(),
        }
    }

    fn write(&mut self, request: &Request, path: &[&str]) -> Response {
        let Some((resource, _)) = self.resources.find(path) else {
            return not_found();
        };
        let expected = resource.content_format();
        if request.content_format().is_some_and(|format| format != expected) {
            let text = format!("expected the content format {}", expected.0);
            return Response::diagnostic(Code::UNSUPPORTED_CONTENT_FORMAT, &text);
        }
        match resource.write(&request.payload) {
            None => Response::diagnostic(Code::METHOD_NOT_ALLOWED, "the resource can only be read"),
            Some(Ok(())) => {
                self.counters.published.increment();
                Response::new(Code::CHANGED)
            }
            Some(Err(refusal)) => refused(&refusal),
        }
    }

    /// Returns the links of the resources (RFC 6690).
    pub(super) fn links(&self) -> Vec<link_format::Resource> {
        let links = self.resources.paths().map(|(path, resource)| {
            let interface = match (resource.is_readable(), resource.is_writable()) {
                (true, true) => "core.a",
                (true, false) => "core.s",
                _ => "core.p",
            };
            link_format::Resource {
                interfaces: vec![interface.to_owned()],
                formats: vec![resource.content_format()],
                observable: resource.is_readable(),
                ..link_format::Resource::new(&path)
            }
        });
        let proxy = self.proxy.iter().map(|proxy| link_format::Resource {
            title: Some(format!("HTTP API at {}", proxy.to)),
            ..link_format::Resource::new(&proxy.path)
        });
        links.chain(proxy).collect()
    }

    /// Returns the HTTP request if the path is that of the proxy.
    fn forwarded(&self, request: &Request, path: &[&str]) -> Option<Outcome> {
        let proxy = self.proxy.as_ref()?;
        let (first, rest) = path.split_first()?;
        if *first != proxy.path {
            return None;
        }
        let method = match request.method {
            Code::GET => Method::GET,
            Code::POST => Method::POST,
            Code::PUT => Method::PUT,
            Code::DELETE => Method::DELETE,
            _ => {
                let response = Response::diagnostic(Code::METHOD_NOT_ALLOWED, "expected GET, POST, PUT or DELETE");
                return Some(Outcome::Respond(response, None));
            }
        };
        self.counters.forwarded.increment();
        let mut target: String =
            rest.iter().flat_map(|segment| ["/".to_owned(), percent_encoded(segment.as_bytes())]).collect();
        if target.is_empty() {
            target.push('/');
        }
        for (index, item) in request.query().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            target.push_str(&percent_encoded(item));
        }
        Some(Outcome::Forward(Forwarded {
            method,
            target,
            content_format: request.content_format().map(|format| format.0),
            accept: request.accept().map(|format| format.0),
            payload: request.payload.clone(),
        }))
    }
}

fn not_found() -> Response {
    Response::diagnostic(Code::NOT_FOUND, "there is no such resource; /.well-known/core lists them")
}

fn not_acceptable(request: &Request, format: ContentFormat) -> Option<Response> {
    request.accept().filter(|accept| *accept != format).map(|_| {
        let text = format!("only the content format {} is available", format.0);
        Response::diagnostic(Code::NOT_ACCEPTABLE, &text)
    })
}

fn refused(refusal: &Refusal) -> Response {
    let code = match refusal {
        Refusal::QueueFull(_) | Refusal::Busy(_) => Code::SERVICE_UNAVAILABLE,
        Refusal::TooLong { .. } => Code::REQUEST_ENTITY_TOO_LARGE,
        Refusal::OtherType(_) => Code::CONFLICT,
        _ => Code::BAD_REQUEST,
    };
    Response::diagnostic(code, &refusal.to_string())
}

impl super::resources::Representation {
    fn response(self) -> Response {
        let Self { payload, content_format, max_age_s } = self;
        Response::content(content_format, payload).with_max_age(max_age_s)
    }
}

impl Absent {
    fn response(self) -> Response {
        match self {
            Self::NotFound => Response::diagnostic(Code::NOT_FOUND, "there is no sample yet"),
            Self::NotReadable => Response::diagnostic(Code::METHOD_NOT_ALLOWED, "the resource can only be written"),
            Self::Unencodable(error) => Response::diagnostic(Code::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
}

/// Returns octets as a part of a URI: those that need it are percent-encoded, except `=` of a query.
fn percent_encoded(octets: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(octets.len());
    for octet in octets {
        if octet.is_ascii_alphanumeric() || b"-._~=:@!$'()*+,;".contains(octet) {
            text.push(char::from(*octet));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(text, "%{octet:02X}");
        }
    }
    text
}

/// Returns the response to a request that was passed on.
pub(super) fn answered(answer: super::proxy::Answer) -> Response {
    let (class, detail) = answer.code;
    let response = Response { payload: answer.payload, ..Response::new(Code::of(class, detail)) };
    let response = match answer.content_format {
        Some(format) => response.with_uint(OptionNumber::CONTENT_FORMAT, format.into()),
        None => response,
    };
    response.with_max_age(answer.max_age_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_percent_encoded() {
        assert_eq!(percent_encoded("a b/ü?".as_bytes()), "a%20b%2F%C3%BC%3F");
        assert_eq!(percent_encoded(b"limit=3"), "limit=3");
    }
}
