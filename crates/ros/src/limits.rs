//! All limits of the crate.

/// Octets of the definition of a message, with those of all types that it uses. That of a large message has some 10 kB.
pub const DEFINITION_OCTETS_MAX: usize = 1 << 20;
/// Types of a definition.
pub const TYPES_MAX: usize = 256;
/// Fields and constants of one type.
pub const MEMBERS_MAX: usize = 1024;
/// Nesting of types.
pub const DEPTH_MAX: usize = 32;
/// Octets of the name of a package, a type, a field or a constant.
pub const NAME_OCTETS_MAX: usize = 128;
/// Elements of an array of fixed length.
pub const ARRAY_ELEMENTS_MAX: u32 = 1 << 20;
/// Octets of a message that fields of fixed length occupy.
pub const FIXED_OCTETS_MAX: u64 = 1 << 30;
/// Octets of a connection header. It contains the definition of the message.
pub const HEADER_OCTETS_MAX: usize = 2 << 20;
/// Fields of a connection header.
pub const HEADER_FIELDS_MAX: usize = 64;
/// Octets of an XML-RPC document. The state of a master with thousands of topics has less than 1 MiB.
pub const DOCUMENT_OCTETS_MAX: usize = 4 << 20;
/// Elements of a document.
pub const ELEMENTS_MAX: usize = 1 << 17;
/// Nesting of elements.
pub const ELEMENT_DEPTH_MAX: usize = 48;
/// Elements of an array whose values occupy no octets.
pub const EMPTY_ELEMENTS_MAX: u32 = 1 << 12;
/// Elements of arrays of fixed length that are absent in a JSON text, in total.
pub const DEFAULT_VALUES_MAX: u32 = 1 << 12;
/// Operations between two definitions. Those of large messages have some hundred.
pub const OPERATIONS_MAX: usize = 1 << 14;
/// Names of fields without counterpart.
pub const PATHS_MAX: usize = 64;
/// Octets of a message that was made from one of another definition.
pub const TRANSCODED_OCTETS_MAX: usize = 1 << 30;
