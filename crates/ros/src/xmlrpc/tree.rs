//! Elements of a document.

use quick_xml::{Reader, escape::resolve_predefined_entity, events::BytesRef, events::Event};

use super::DocumentError;
use crate::limits::{DOCUMENT_OCTETS_MAX, ELEMENT_DEPTH_MAX, ELEMENTS_MAX};

/// An element without its attributes, which XML-RPC does not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) children: Vec<Element>,
    /// The text between the children.
    pub(super) text: String,
}

/// Parses a document and returns its element, which has the given name.
pub(super) fn parse(document: &[u8], name: &'static str) -> Result<Element, DocumentError> {
    if document.len() > DOCUMENT_OCTETS_MAX {
        return Err(DocumentError::TooLong(document.len()));
    }
    let text = std::str::from_utf8(document).map_err(|_| DocumentError::Xml("it is not UTF-8".to_owned()))?;
    let mut reader = Reader::from_str(text);
    let mut elements = Elements::default();
    loop {
        match reader.read_event().map_err(|error| DocumentError::Xml(error.to_string()))? {
            Event::Start(start) => elements.open(start.name().as_ref())?,
            Event::End(_) => elements.close(),
            Event::Empty(start) => {
                elements.open(start.name().as_ref())?;
                elements.close();
            }
            Event::Text(text) => elements.add_text(&text.xml10_content()),
            Event::CData(text) => elements.add_text(&text.xml10_content()),
            Event::GeneralRef(reference) => elements.add_reference(&reference)?,
            Event::DocType(_) => return Err(DocumentError::DocumentType),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    elements.root.filter(|root| root.name == name).ok_or(DocumentError::Missing(name))
}

/// The elements that have been read.
#[derive(Default)]
struct Elements {
    /// The elements whose end has not been read, the outermost first.
    open: Vec<Element>,
    root: Option<Element>,
    count: usize,
}

impl Elements {
    fn open(&mut self, name: &str) -> Result<(), DocumentError> {
        self.count += 1;
        if self.count > ELEMENTS_MAX || self.open.len() >= ELEMENT_DEPTH_MAX {
            return Err(DocumentError::TooLarge);
        }
        self.open.push(Element { name: name.to_owned(), ..Element::default() });
        Ok(())
    }

    fn close(&mut self) {
        let Some(element) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn add_text(&mut self, text: &str) {
        if let Some(element) = self.open.last_mut() {
            element.text.push_str(text);
        }
    }

    /// Adds the character that a reference stands for, such as `&lt;` and `&#65;`.
    fn add_reference(&mut self, reference: &BytesRef<'_>) -> Result<(), DocumentError> {
        let wrong = || DocumentError::Xml("it has an unknown reference".to_owned());
        if let Some(character) = reference.resolve_char_ref().map_err(|_| wrong())? {
            self.add_text(character.encode_utf8(&mut [0; 4]));
            return Ok(());
        }
        let text = resolve_predefined_entity(&reference.xml10_content()).ok_or_else(wrong)?;
        self.add_text(text);
        Ok(())
    }
}
