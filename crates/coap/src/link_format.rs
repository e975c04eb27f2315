//! Links to resources (RFC 6690), the content of `/.well-known/core` (RFC 7252, 7.2).

use bytes::Bytes;

use crate::codec::{Code, ContentFormat};
use crate::{Request, Response};

/// A resource of a server, as `/.well-known/core` lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Path, such as `sensors/temperature`.
    pub path: String,
    /// Types of the resource (`rt`).
    pub types: Vec<String>,
    /// Descriptions of its interfaces (`if`).
    pub interfaces: Vec<String>,
    /// Formats of its content (`ct`).
    pub formats: Vec<ContentFormat>,
    /// Estimated size of its representation in octets (`sz`).
    pub size: Option<u32>,
    /// `true` if it can be observed (`obs`).
    pub observable: bool,
    /// Title (`title`).
    pub title: Option<String>,
}

impl Resource {
    /// Returns a resource without attributes.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self { path: path.trim_matches('/').to_owned(), ..Self::default() }
    }

    /// Returns the link.
    #[must_use]
    pub fn link(&self) -> String {
        let mut link = format!("<{}>", self.target());
        for (name, values) in [("rt", &self.types), ("if", &self.interfaces)] {
            if !values.is_empty() {
                link.push_str(&format!(";{name}=\"{}\"", escaped(&values.join(" "))));
            }
        }
        match &self.format_numbers()[..] {
            [] => {}
            [format] => link.push_str(&format!(";ct={format}")),
            formats => link.push_str(&format!(";ct=\"{}\"", formats.join(" "))),
        }
        if let Some(size) = self.size {
            link.push_str(&format!(";sz={size}"));
        }
        if let Some(title) = &self.title {
            link.push_str(&format!(";title=\"{}\"", escaped(title)));
        }
        if self.observable {
            link.push_str(";obs");
        }
        link
    }

    /// Returns the path with a leading `/` and percent-encoded octets.
    fn target(&self) -> String {
        let mut target = String::from("/");
        for octet in self.path.bytes() {
            if octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&octet) {
                target.push(char::from(octet));
            } else {
                target.push_str(&format!("%{octet:02X}"));
            }
        }
        target
    }

    fn format_numbers(&self) -> Vec<String> {
        self.formats.iter().map(|format| format.0.to_string()).collect()
    }

    /// Returns `true` if the resource matches an item of a query, such as `rt=light*` (RFC 6690, 4.1).
    #[must_use]
    pub fn matches(&self, item: &str) -> bool {
        let (name, wanted) = item.split_once('=').unwrap_or((item, ""));
        let any = |values: &[String]| values.iter().any(|value| matches_value(value, wanted));
        match name {
            "href" => matches_value(&self.target(), wanted),
            "rt" => any(&self.types),
            "if" => any(&self.interfaces),
            "ct" => any(&self.format_numbers()),
            "sz" => self.size.is_some_and(|size| matches_value(&size.to_string(), wanted)),
            "title" => self.title.as_ref().is_some_and(|title| matches_value(title, wanted)),
            "obs" => self.observable && matches!(wanted, "" | "*"),
            _ => false,
        }
    }
}

fn matches_value(value: &str, wanted: &str) -> bool {
    wanted.strip_suffix('*').map_or(value == wanted, |prefix| value.starts_with(prefix))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Returns the links of the resources that match all items of a query.
#[must_use]
pub fn links(resources: &[Resource], query: &[&str]) -> String {
    let matching = resources.iter().filter(|resource| query.iter().all(|item| resource.matches(item)));
    matching.map(Resource::link).collect::<Vec<_>>().join(",")
}

/// Returns the response to a request for `/.well-known/core`, or `None` if the request is for another path.
pub(crate) fn answer(resources: &[Resource], request: &Request) -> Option<Response> {
    let mut path = request.path().map(|segment| &segment[..]);
    let listed = path.next() == Some(b".well-known") && path.next() == Some(b"core") && path.next().is_none();
    if !listed {
        return None;
    }
    if request.method != Code::GET {
        return Some(Response::new(Code::METHOD_NOT_ALLOWED));
    }
    if request.accept().is_some_and(|accept| accept != ContentFormat::LINK_FORMAT) {
        return Some(Response::new(Code::NOT_ACCEPTABLE));
    }
    let query: Option<Vec<&str>> = request.query().map(|item| std::str::from_utf8(item).ok()).collect();
    let Some(query) = query else { return Some(Response::new(Code::BAD_REQUEST)) };
    Some(Response::content(ContentFormat::LINK_FORMAT, Bytes::from(links(resources, &query))))
}
