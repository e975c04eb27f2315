//! Types that refer to each other.

use std::collections::BTreeMap;

use super::parser::{Base, ConstantText, FieldText, Member, member};
use super::text::{Section, sections};
use super::{Basic, Count, Dialect, TypeName};
use crate::limits::{DEPTH_MAX, FIXED_OCTETS_MAX, MEMBERS_MAX};

/// The definition of a message, with those of all types that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    dialect: Dialect,
    /// The first one is that of the message.
    types: Vec<MessageType>,
}

/// A type of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageType {
    name: TypeName,
    fields: Vec<Field>,
    pub(super) constants: Vec<ConstantText>,
    /// Octets of a serialised value in ROS 1, if all values have the same length.
    fixed_octets: Option<usize>,
}

/// Index of a type in its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeIndex(usize);

impl TypeIndex {
    pub(super) const fn position(self) -> usize {
        self.0
    }
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type of each value.
    pub base: FieldType,
    /// Number of values.
    pub count: Count,
    /// Largest number of octets of a string (ROS 2).
    pub string_limit: Option<u32>,
    /// The type as it is written.
    pub(super) type_text: String,
}

/// The type of the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A basic type.
    Basic(Basic),
    /// A type of the schema.
    Message(TypeIndex),
}

/// The reason why a text is not a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is too long.
    #[error("a definition has at most 1 MiB, not {0} octets")]
    TooLong(usize),
    /// There are too many types.
    #[error("a definition has at most 256 types, not {0}")]
    TooManyTypes(usize),
    /// A type has too many fields and constants.
    #[error("line {line}: a type has at most {MEMBERS_MAX} fields and constants")]
    TooManyMembers {
        /// Number of the line.
        line: usize,
    },
    /// A line is neither a field nor a constant.
    #[error("line {line}: `{text}` is neither a field nor a constant")]
    Line {
        /// Number of the line.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// A name has other characters than letters, digits and underscores.
    #[error("line {line}: `{name}` is not a name")]
    Name {
        /// Number of the line, 0 for the name of the message.
        line: usize,
        /// The name.
        name: String,
    },
    /// A type cannot be read.
    #[error("line {line}: `{text}` is not a type")]
    Type {
        /// Number of the line.
        line: usize,
        /// The type.
        text: String,
    },
    /// The line after a line of equals signs has no name of a type.
    #[error("line {line}: expected `MSG: package/Name`, got `{text}`")]
    Header {
        /// Number of the line.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// A type is used but not defined.
    #[error("line {line}: the type `{name}` is not defined")]
    Undefined {
        /// Number of the line.
        line: usize,
        /// Name of the type.
        name: TypeName,
    },
    /// A type is defined twice.
    #[error("the type `{0}` is defined twice")]
    DefinedTwice(TypeName),
    /// A type has two fields of the same name.
    #[error("line {line}: the field `{name}` exists twice")]
    FieldTwice {
        /// Number of the line.
        line: usize,
        /// Name of the field.
        name: String,
    },
    /// A type contains itself, or is nested too deeply.
    #[error("the type `{0}` contains itself, or has more than {DEPTH_MAX} levels")]
    Nesting(TypeName),
    /// The arrays of fixed length are too long.
    #[error("a value of the type `{0}` has more than 1 GiB")]
    TooLarge(TypeName),
}

impl Schema {
    /// Parses the full definition of a message with the given name, `package/Name`.
    ///
    /// # Errors
    /// The first mistake of the definition.
    pub fn parse(dialect: Dialect, name: &str, text: &str) -> Result<Self, SchemaError> {
        let sections = sections(name, text)?;
        let indices = indices(&sections)?;
        let mut types = Vec::new();
        for section in &sections {
            types.push(message_type(dialect, section, &indices)?);
        }
        let mut schema = Self { dialect, types };
        schema.resolve_lengths()?;
        Ok(schema)
    }

    /// Returns the ROS version of the definition.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the type of the message.
    #[must_use]
    pub fn root(&self) -> Option<&MessageType> {
        self.types.first()
    }

    /// Returns a type that a field of this schema refers to.
    #[must_use]
    pub fn message_type(&self, index: TypeIndex) -> Option<&MessageType> {
        self.types.get(index.0)
    }

    /// Returns the type of a field that is a message.
    pub(crate) fn message_type_of(&self, field: &Field) -> Option<&MessageType> {
        match field.base {
            FieldType::Message(index) => self.message_type(index),
            FieldType::Basic(_) => None,
        }
    }

    /// Returns all types, that of the message first.
    #[must_use]
    pub fn types(&self) -> &[MessageType] {
        &self.types
    }

    /// Computes the lengths of all types, those of the used ones first. Refuses a type that contains itself.
    fn resolve_lengths(&mut self) -> Result<(), SchemaError> {
        let mut done = vec![false; self.types.len()];
        for index in 0..self.types.len() {
            self.resolve_length(index, 0, &mut done)?;
        }
        Ok(())
    }

    fn resolve_length(&mut self, index: usize, depth: usize, done: &mut [bool]) -> Result<(), SchemaError> {
        let Some(message_type) = self.types.get(index).filter(|_| !done.get(index).copied().unwrap_or(true)) else {
            return Ok(());
        };
        if depth >= DEPTH_MAX {
            return Err(SchemaError::Nesting(message_type.name.clone()));
        }
        let used: Vec<usize> = message_type.used().collect();
        for used in used {
            self.resolve_length(used, depth + 1, done)?;
        }
        let fixed = self.fixed_octets(index)?;
        if let (Some(message_type), Some(done)) = (self.types.get_mut(index), done.get_mut(index)) {
            message_type.fixed_octets = fixed;
            *done = true;
        }
        Ok(())
    }

    /// Returns the octets of each value of a type, or `None` if they differ.
    fn fixed_octets(&self, index: usize) -> Result<Option<usize>, SchemaError> {
        let Some(message_type) = self.types.get(index) else { return Ok(None) };
        let mut sum = 0_u64;
        for field in &message_type.fields {
            let count = match field.count {
                Count::One => 1,
                // No value, whatever its type.
                Count::Fixed(0) => continue,
                Count::Fixed(count) => u64::from(count),
                Count::Any | Count::AtMost(_) => return Ok(None),
            };
            let Some(octets) = self.octets_of(field.base) else { return Ok(None) };
            sum = sum.saturating_add(count.saturating_mul(octets as u64));
            if sum > FIXED_OCTETS_MAX {
                return Err(SchemaError::TooLarge(message_type.name.clone()));
            }
        }
        Ok(usize::try_from(sum).ok())
    }

    /// Returns the octets of each value of a field's type in ROS 1, or `None` if they differ.
    pub(crate) fn octets_of(&self, base: FieldType) -> Option<usize> {
        match base {
            FieldType::Basic(basic) => basic.octets(),
            FieldType::Message(index) => self.message_type(index)?.fixed_octets,
        }
    }
}

impl MessageType {
    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &TypeName {
        &self.name
    }

    /// Returns the fields.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the octets of a serialised value in ROS 1, or `None` if values have different lengths.
    #[must_use]
    pub const fn fixed_octets(&self) -> Option<usize> {
        self.fixed_octets
    }

    /// Returns the indices of the types that the fields refer to.
    fn used(&self) -> impl Iterator<Item = usize> {
        self.fields.iter().filter_map(|field| match field.base {
            FieldType::Message(TypeIndex(index)) => Some(index),
            FieldType::Basic(_) => None,
        })
    }
}

impl Field {
    /// Returns `true` for `byte`, which has a sign in ROS 1 only.
    pub(crate) fn is_byte(&self) -> bool {
        self.type_text.split('[').next() == Some("byte")
    }
}

/// Returns the index of each type.
fn indices<'a>(sections: &'a [Section<'_>]) -> Result<BTreeMap<&'a TypeName, TypeIndex>, SchemaError> {
    let mut indices = BTreeMap::new();
    for (index, section) in sections.iter().enumerate() {
        if indices.insert(&section.name, TypeIndex(index)).is_some() {
            return Err(SchemaError::DefinedTwice(section.name.clone()));
        }
    }
    Ok(indices)
}

fn message_type(
    dialect: Dialect,
    section: &Section<'_>,
    indices: &BTreeMap<&TypeName, TypeIndex>,
) -> Result<MessageType, SchemaError> {
    let (mut fields, mut constants) = (Vec::<Field>::new(), Vec::new());
    for (line, text) in &section.lines {
        match member(dialect, section.name.package(), *line, text)? {
            None => {}
            Some(Member::Constant(constant)) => constants.push(constant),
            Some(Member::Field(field)) if fields.iter().any(|other| other.name == field.name) => {
                return Err(SchemaError::FieldTwice { line: *line, name: field.name });
            }
            Some(Member::Field(text)) => fields.push(field(text, indices)?),
        }
        if fields.len() + constants.len() > MEMBERS_MAX {
            return Err(SchemaError::TooManyMembers { line: *line });
        }
    }
    Ok(MessageType { name: section.name.clone(), fields, constants, fixed_octets: None })
}

fn field(text: FieldText, indices: &BTreeMap<&TypeName, TypeIndex>) -> Result<Field, SchemaError> {
    let FieldText { line, name, type_text, base, count, string_limit } = text;
    let base = match base {
        Base::Basic(basic) => FieldType::Basic(basic),
        Base::Message(message) => match indices.get(&message) {
            Some(index) => FieldType::Message(*index),
            None => return Err(SchemaError::Undefined { line, name: message }),
        },
    };
    Ok(Field { name, base, count, string_limit, type_text })
}
