//! A JSON text as a tree that borrows from it, bounded in depth, width and number of values.

use std::{borrow::Cow, cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::{
    error::{JsonError, JsonProblem},
    limits::{
        ERROR_EXCERPT_MAX, JSON_DEPTH_MAX, JSON_ELEMENTS_MAX, JSON_MEMBERS_MAX, JSON_OCTETS_MAX, JSON_VALUES_MAX,
    },
};

/// One value of a text.
#[derive(Debug)]
pub(super) enum Node<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A number that is not a 64-bit integer.
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Members<'a>),
}

/// The members of an object, each taken out once by its reader.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    pub(super) entries: Vec<(Cow<'a, str>, Option<Node<'a>>)>,
    /// Index at which the search for the next member begins: texts of our own writer have the members in reading order.
    next: usize,
}

impl<'a> Members<'a> {
    /// Takes the value of that name, or returns `None` if it is absent or taken.
    pub(super) fn take(&mut self, name: &str) -> Option<Node<'a>> {
        let at = match self.entries.get(self.next) {
            Some((found, _)) if found == name => self.next,
            _ => self.entries.iter().position(|(found, _)| found == name)?,
        };
        self.next = at + 1;
        self.entries.get_mut(at)?.1.take()
    }

    /// Returns the first member that was not taken.
    pub(super) fn left_over(&self) -> Option<&str> {
        self.entries.iter().find(|(_, node)| node.is_some()).map(|(name, _)| &**name)
    }

    /// Returns the members that were not taken, with their values.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (Cow<'a, str>, Node<'a>)> {
        self.entries.into_iter().filter_map(|(name, node)| Some((name, node?)))
    }

    /// Returns the only member, or `None` if there is none or more than one.
    pub(super) fn into_single(self) -> Option<(Cow<'a, str>, Node<'a>)> {
        let mut entries = self.entries.into_iter();
        match (entries.next(), entries.next()) {
            (Some((name, Some(node))), None) => Some((name, node)),
            _ => None,
        }
    }
}

impl Node<'_> {
    /// Returns the value as it appears in an error.
    pub(super) fn excerpt(&self) -> String {
        match self {
            Node::Null => "null".to_owned(),
            Node::Boolean(value) => value.to_string(),
            Node::Integer(value) => value.to_string(),
            Node::Number(value) => value.to_string(),
            Node::Text(text) if text.chars().count() > ERROR_EXCERPT_MAX => {
                format!("{:?}...", text.chars().take(ERROR_EXCERPT_MAX).collect::<String>())
            }
            Node::Text(text) => format!("{text:?}"),
            Node::List(elements) => format!("an array of {}", elements.len()),
            Node::Object(members) => format!("an object of {}", members.entries.len()),
        }
    }
}

/// Parses a complete text.
pub(super) fn parse(text: &[u8]) -> Result<Node<'_>, JsonError> {
    if text.len() > JSON_OCTETS_MAX {
        return Err(syntax(format!("the text has {} octets, at most {JSON_OCTETS_MAX} are read", text.len())));
    }
    let values_left = Cell::new(JSON_VALUES_MAX);
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = NodeSeed { depth_left: JSON_DEPTH_MAX, values_left: &values_left };
    let node = seed.deserialize(&mut deserializer).map_err(|cause| syntax(cause.to_string()))?;
    deserializer.end().map_err(|cause| syntax(cause.to_string()))?;
    Ok(node)
}

fn syntax(problem: String) -> JsonError {
    JsonError { path: String::new(), problem: JsonProblem::Syntax(problem) }
}

/// Reads one value within the remaining bounds.
#[derive(Clone, Copy)]
struct NodeSeed<'s> {
    depth_left: usize,
    values_left: &'s Cell<usize>,
}

impl NodeSeed<'_> {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let depth_left = self
            .depth_left
            .checked_sub(1)
            .ok_or_else(|| E::custom(format_args!("deeper than {JSON_DEPTH_MAX} objects and arrays")))?;
        Ok(Self { depth_left, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        let left = self.values_left.get().checked_sub(1);
        let left = left.ok_or_else(|| D::Error::custom(format_args!("more than {JSON_VALUES_MAX} values")))?;
        self.values_left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node<'de>, E> {
        #[expect(clippy::cast_precision_loss, reason = "it is only shown in an error")]
        Ok(i64::try_from(value).map_or(Node::Number(value as f64), Node::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node<'de>, A::Error> {
        let inside = self.inside()?;
        let mut elements = Vec::new();
        while let Some(element) = access.next_element_seed(inside)? {
            if elements.len() == JSON_ELEMENTS_MAX {
                return Err(A::Error::custom(format_args!("an array of more than {JSON_ELEMENTS_MAX} elements")));
            }
            elements.push(element);
        }
        Ok(Node::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node<'de>, A::Error> {
        let inside = self.inside()?;
        let mut entries: Vec<(Cow<'de, str>, Option<Node<'de>>)> = Vec::new();
        while let Some(Name(name)) = access.next_key_seed(NameSeed)? {
            if entries.len() == JSON_MEMBERS_MAX {
                return Err(A::Error::custom(format_args!("an object of more than {JSON_MEMBERS_MAX} members")));
            }
            if entries.iter().any(|(earlier, _)| *earlier == name) {
                let shown = Node::Text(name).excerpt();
                return Err(A::Error::custom(format_args!("the member {shown} occurs twice")));
            }
            entries.push((name, Some(access.next_value_seed(inside)?)));
        }
        Ok(Node::Object(Members { entries, next: 0 }))
    }
}

/// The name of a member, borrowed if it has no escapes.
struct Name<'a>(Cow<'a, str>);

struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Name<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name<'de>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn bounds_are_kept() {
        assert!(refusal(&"[".repeat(40)).contains("deeper than 32"));
        let wide = format!("[{}0]", "0,".repeat(JSON_ELEMENTS_MAX));
        assert!(refusal(&wide).contains("more than 1024 elements"));
        let row = format!("[{}0]", "0,".repeat(1000));
        let many = format!("[{}0]", format!("{row},").repeat(40));
        assert!(refusal(&many).contains("more than 32768 values"));
        let members: Vec<String> = (0..=JSON_MEMBERS_MAX).map(|n| format!("\"{n}\":0")).collect();
        assert!(refusal(&format!("{{{}}}", members.join(","))).contains("more than 64 members"));
        assert!(refusal(&" ".repeat(JSON_OCTETS_MAX + 1)).contains("octets"));
    }

    #[test]
    fn text_that_is_not_one_json_value_is_rejected() {
        for text in ["", "{", "[1,]", "{} {}", "{\"a\":1,\"a\":2}", "nul", "\u{1}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(&[b'"', 0xFF, b'"']).is_err(), "not UTF-8");
        assert!(refusal("{\"a\":1,\"\\u0061\":2}").contains("occurs twice"));
    }

    #[test]
    fn members_are_taken_in_any_order_and_the_rest_is_listed() {
        let Ok(Node::Object(mut members)) = parse(br#"{"a":1,"b":2,"c":3}"#) else { panic!() };
        assert!(matches!(members.take("b"), Some(Node::Integer(2))));
        assert!(matches!(members.take("a"), Some(Node::Integer(1))));
        assert!(members.take("a").is_none());
        assert_eq!(members.left_over(), Some("c"));
    }
}
