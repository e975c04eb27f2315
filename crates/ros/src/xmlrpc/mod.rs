//! XML-RPC, by which the nodes of ROS 1 and their master call each other: the documents of calls and responses.
//!
//! ```text
//! tree.rs    document -> elements;  value.rs: elements -> values, and back
//! ```
//!
//! ```
//! use viaduct_ros::xmlrpc::{Call, Value};
//!
//! let call = Call { method: "getPid".to_owned(), params: vec![Value::from("/listener")] };
//! assert_eq!(Call::parse(call.write().as_bytes()), Ok(call));
//! ```

mod tree;
mod value;

pub use value::Value;

use tree::Element;

use crate::limits::{DOCUMENT_OCTETS_MAX, ELEMENT_DEPTH_MAX, ELEMENTS_MAX};

/// The call of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name of the method.
    pub method: String,
    /// Parameters.
    pub params: Vec<Value>,
}

/// The response to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// The result.
    Value(Value),
    /// The method does not exist, or has failed.
    Fault {
        /// Number of the fault, which each server chooses.
        code: i32,
        /// Text for people.
        message: String,
    },
}

/// The reason why octets are not a call or a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The document is too long.
    #[error("a document has at most {DOCUMENT_OCTETS_MAX} octets, not {0}")]
    TooLong(usize),
    /// The document is not XML.
    #[error("the document is not XML: {0}")]
    Xml(String),
    /// The document has too many or too deeply nested elements.
    #[error("a document has at most {ELEMENTS_MAX} elements in {ELEMENT_DEPTH_MAX} levels")]
    TooLarge,
    /// The document has a document type, which can define entities.
    #[error("the document has a document type")]
    DocumentType,
    /// An element is absent.
    #[error("the element `{0}` is missing")]
    Missing(&'static str),
    /// The value has a type that is unknown.
    #[error("`{0}` is not a type of a value")]
    Type(String),
    /// The text is not a value of its type.
    #[error("`{text}` is not of the type `{name}`")]
    Value {
        /// Name of the type.
        name: &'static str,
        /// The beginning of the text.
        text: String,
    },
}

impl Call {
    /// Parses a call.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        let call = tree::parse(document, "methodCall")?;
        let method = call.child("methodName")?.text.trim().to_owned();
        // A call without parameters may have no list of them.
        let params = call.children.iter().find(|child| child.name == "params");
        let params = params.iter().flat_map(|params| params.all("param"));
        let params = params.map(|param| Value::read(param.child("value")?)).collect::<Result<_, _>>()?;
        Ok(Self { method, params })
    }

    /// Returns the document.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text =
            format!("<?xml version=\"1.0\"?>\n<methodCall><methodName>{}</methodName><params>", escaped(&self.method));
        for param in &self.params {
            text.push_str("<param>");
            param.write(&mut text);
            text.push_str("</param>");
        }
        text.push_str("</params></methodCall>\n");
        text
    }
}

impl Response {
    /// Parses a response.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        let response = tree::parse(document, "methodResponse")?;
        if let Ok(fault) = response.child("fault") {
            let fault = Value::read(fault.child("value")?)?;
            let code = fault.member("faultCode").and_then(Value::as_int).ok_or(DocumentError::Missing("faultCode"))?;
            let message = fault.member("faultString").and_then(Value::as_str).unwrap_or("").to_owned();
            return Ok(Self::Fault { code, message });
        }
        Ok(Self::Value(Value::read(response.child("params")?.child("param")?.child("value")?)?))
    }

    /// Returns the document.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\"?>\n<methodResponse>");
        match self {
            Self::Value(value) => {
                text.push_str("<params><param>");
                value.write(&mut text);
                text.push_str("</param></params>");
            }
            Self::Fault { code, message } => {
                let members = vec![
                    ("faultCode".to_owned(), Value::Int(*code)),
                    ("faultString".to_owned(), Value::String(message.clone())),
                ];
                text.push_str("<fault>");
                Value::Struct(members).write(&mut text);
                text.push_str("</fault>");
            }
        }
        text.push_str("</methodResponse>\n");
        text
    }
}

impl Element {
    /// Returns the first child with that name.
    fn child(&self, name: &'static str) -> Result<&Self, DocumentError> {
        self.all(name).next().ok_or(DocumentError::Missing(name))
    }

    fn all(&self, name: &'static str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Returns the text with references instead of the characters that XML reserves.
fn escaped(text: &str) -> std::borrow::Cow<'_, str> {
    quick_xml::escape::escape(text)
}
