//! The operations of a transcoder, from two definitions.

use crate::limits::{OPERATIONS_MAX, PATHS_MAX};
use crate::msg::{Basic, Count, Field, FieldType, MessageType, Schema, TypeName};

/// An operation. It reads from the source and writes to the target, unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Numbers of `width` octets.
    Numbers { width: usize, count: usize },
    /// Octets that are 0 or 1.
    Bools { count: usize },
    /// A time or duration.
    Time(TimeOp),
    /// A text with at most this number of octets.
    Text { most: Option<u32> },
    /// A text of 16-bit characters with at most this number of characters.
    WideText { most: Option<u32> },
    /// An array, with the operations of each element.
    Array { from: Count, to: Count, element: Vec<Op> },
    /// Reads a message without fields.
    ReadEmpty,
    /// Writes a message without fields.
    WriteEmpty,
    /// Reads without writing.
    Drop(Vec<Op>),
    /// Writes numbers that are 0.
    ZeroNumbers { width: usize, count: usize },
    /// Writes an empty text.
    ZeroText,
    /// Writes an array of fixed length, with the operations of each element.
    ZeroArray { count: u32, element: Vec<Op> },
    /// A message whose fields are in another order.
    Reorder {
        /// Operations that drop each field, in the order of the source.
        fields: Vec<Vec<Op>>,
        /// Operations of each field of the target, with the position of its field in the source.
        targets: Vec<(Option<usize>, Vec<Op>)>,
    },
}

/// The conversion of a time or duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeOp {
    /// Seconds from 0 to 2³¹ - 1, in either direction.
    Time,
    /// From ROS 1: nanoseconds can be negative.
    DurationFromRos1,
    /// From ROS 2: nanoseconds without sign.
    DurationFromRos2,
}

/// The reason why there are no operations between two definitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A field has two types between which there is no conversion.
    #[error("the field `{0}` has another type")]
    Type(String),
    /// The types have no field in common.
    #[error("the types `{0}` and `{1}` have no field in common")]
    NothingInCommon(TypeName, TypeName),
    /// The definitions have too many fields, those of used types counted each time.
    #[error("the types need more than {OPERATIONS_MAX} operations")]
    TooLarge,
}

/// Plans the operations.
pub(super) struct Planner<'a> {
    from: &'a Schema,
    to: &'a Schema,
    /// Operations planned so far.
    count: usize,
    /// Names of the fields that contain the current one.
    path: Vec<&'a str>,
    dropped: Vec<String>,
    zeroed: Vec<String>,
}

type Planned = (Vec<Op>, Vec<String>, Vec<String>);

impl<'a> Planner<'a> {
    pub(super) fn plan(from: &'a Schema, to: &'a Schema) -> Result<Planned, PlanError> {
        let mut planner = Self { from, to, count: 0, path: Vec::new(), dropped: Vec::new(), zeroed: Vec::new() };
        let mut ops = Vec::new();
        if let (Some(a), Some(b)) = (from.root(), to.root()) {
            planner.message(a, b, &mut ops)?;
        }
        Ok((ops, planner.dropped, planner.zeroed))
    }

    fn message(&mut self, a: &'a MessageType, b: &'a MessageType, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        self.empties(a, b, ops)?;
        let pairs = pairs(a, b);
        let common: Vec<usize> = pairs.iter().flatten().copied().collect();
        if common.is_empty() && !a.fields().is_empty() && !b.fields().is_empty() {
            return Err(PlanError::NothingInCommon(a.name().clone(), b.name().clone()));
        }
        self.note(a, b, &common, &pairs);
        if common.is_sorted() { self.in_order(a, b, &pairs, ops) } else { self.reordered(a, b, &pairs, ops) }
    }

    fn in_order(
        &mut self,
        a: &'a MessageType,
        b: &'a MessageType,
        pairs: &[Option<usize>],
        ops: &mut Vec<Op>,
    ) -> Result<(), PlanError> {
        let mut unread = a.fields().iter().enumerate();
        for (target, pair) in b.fields().iter().zip(pairs) {
            let Some(pair) = *pair else {
                self.zero(target, ops)?;
                continue;
            };
            for (index, source) in unread.by_ref() {
                if index == pair {
                    self.field(source, target, ops)?;
                    break;
                }
                self.drop(source, ops)?;
            }
        }
        unread.try_for_each(|(_, source)| self.drop(source, ops))
    }

    fn reordered(
        &mut self,
        a: &'a MessageType,
        b: &'a MessageType,
        pairs: &[Option<usize>],
        ops: &mut Vec<Op>,
    ) -> Result<(), PlanError> {
        let (mut fields, mut targets) = (Vec::new(), Vec::new());
        for source in a.fields() {
            let mut drop = Vec::new();
            self.drop(source, &mut drop)?;
            fields.push(drop);
        }
        for (target, pair) in b.fields().iter().zip(pairs) {
            let mut field = Vec::new();
            match pair.and_then(|index| a.fields().get(index)) {
                Some(source) => self.field(source, target, &mut field)?,
                None => self.zero(target, &mut field)?,
            }
            targets.push((*pair, field));
        }
        self.push(Op::Reorder { fields, targets }, ops)
    }

    /// Notes the fields without counterpart.
    fn note(&mut self, a: &'a MessageType, b: &'a MessageType, common: &[usize], pairs: &[Option<usize>]) {
        let path = |name: &str| [&self.path[..], &[name]].concat().join(".");
        let dropped = a.fields().iter().enumerate().filter(|(index, _)| !common.contains(index));
        let dropped: Vec<String> = dropped.map(|(_, field)| path(&field.name)).collect();
        let zeroed = b.fields().iter().zip(pairs).filter(|(_, pair)| pair.is_none());
        let zeroed: Vec<String> = zeroed.map(|(field, _)| path(&field.name)).collect();
        for (noted, paths) in [(&mut self.dropped, dropped), (&mut self.zeroed, zeroed)] {
            let room = PATHS_MAX.saturating_sub(noted.len());
            noted.extend(paths.into_iter().take(room));
        }
    }

    /// Plans the octets of a type without fields.
    fn empties(&mut self, a: &MessageType, b: &MessageType, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        if a.fields().is_empty() {
            self.push(Op::ReadEmpty, ops)?;
        }
        if b.fields().is_empty() {
            self.push(Op::WriteEmpty, ops)?;
        }
        Ok(())
    }

    fn field(&mut self, source: &'a Field, target: &'a Field, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        self.path.push(&source.name);
        let planned = match (source.count, target.count) {
            (Count::One, Count::One) => self.value(source, target, ops),
            (Count::One, _) | (_, Count::One) => Err(self.other_type()),
            (from, to) => {
                let mut element = Vec::new();
                self.value(source, target, &mut element).and_then(|()| self.array(from, to, element, ops))
            }
        };
        self.path.pop();
        planned
    }

    fn array(&mut self, from: Count, to: Count, element: Vec<Op>, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        let op = match (from, to, &element[..]) {
            (Count::Fixed(from), Count::Fixed(to), _) if from != to => return Err(self.other_type()),
            (Count::Fixed(fixed), Count::Fixed(_), &[Op::Numbers { width, count }]) => {
                Op::Numbers { width, count: count.saturating_mul(fixed as usize) }
            }
            _ => Op::Array { from, to, element },
        };
        self.push(op, ops)
    }

    fn value(&mut self, source: &'a Field, target: &'a Field, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        let types = (self.from.message_type_of(source), self.to.message_type_of(target));
        let op = match (source.base, target.base, types) {
            (FieldType::Message(_), FieldType::Message(_), (Some(a), Some(b))) => return self.message(a, b, ops),
            (FieldType::Basic(Basic::Time), _, (_, Some(time))) if is_time(time, "Time") => Op::Time(TimeOp::Time),
            (_, FieldType::Basic(Basic::Time), (Some(time), _)) if is_time(time, "Time") => Op::Time(TimeOp::Time),
            (FieldType::Basic(Basic::Duration), _, (_, Some(time))) if is_time(time, "Duration") => {
                Op::Time(TimeOp::DurationFromRos1)
            }
            (_, FieldType::Basic(Basic::Duration), (Some(time), _)) if is_time(time, "Duration") => {
                Op::Time(TimeOp::DurationFromRos2)
            }
            (FieldType::Basic(a), FieldType::Basic(b), _) if a == b || (source.is_byte() && target.is_byte()) => {
                basic(a, target.string_limit)
            }
            _ => return Err(self.other_type()),
        };
        self.push(op, ops)
    }

    /// Plans to read a field of the source without writing it.
    fn drop(&mut self, source: &'a Field, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        let from = self.from;
        let mut planner = Planner { from, to: from, count: self.count, path: vec![], dropped: vec![], zeroed: vec![] };
        let mut dropped = Vec::new();
        planner.field(source, source, &mut dropped)?;
        self.count = planner.count;
        self.push(Op::Drop(dropped), ops)
    }

    /// Plans to write a field of the target that the source does not have.
    fn zero(&mut self, target: &'a Field, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        let op = match target.count {
            Count::One => return self.zero_value(target, ops),
            Count::Any | Count::AtMost(_) => Op::ZeroNumbers { width: 4, count: 1 },
            Count::Fixed(count) => {
                let mut element = Vec::new();
                self.zero_value(target, &mut element)?;
                Op::ZeroArray { count, element }
            }
        };
        self.push(op, ops)
    }

    fn zero_value(&mut self, target: &'a Field, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        let op = match (target.base, self.to.message_type_of(target)) {
            (FieldType::Message(_), Some(message_type)) => {
                if message_type.fields().is_empty() {
                    self.push(Op::WriteEmpty, ops)?;
                }
                return message_type.fields().iter().try_for_each(|field| self.zero(field, ops));
            }
            (FieldType::Message(_), None) => return Err(self.other_type()),
            (FieldType::Basic(basic), _) => match basic {
                Basic::String => Op::ZeroText,
                Basic::Wstring => Op::ZeroNumbers { width: 4, count: 1 },
                Basic::Time | Basic::Duration => Op::ZeroNumbers { width: 4, count: 2 },
                basic => Op::ZeroNumbers { width: basic.octets().unwrap_or(1), count: 1 },
            },
        };
        self.push(op, ops)
    }

    /// Adds an operation, to the last one if both are numbers of the same length.
    fn push(&mut self, op: Op, ops: &mut Vec<Op>) -> Result<(), PlanError> {
        self.count += 1;
        if self.count > OPERATIONS_MAX {
            return Err(PlanError::TooLarge);
        }
        match (ops.last_mut(), &op) {
            (Some(Op::Numbers { width, count }), Op::Numbers { width: other, count: more }) if width == other => {
                *count = count.saturating_add(*more);
            }
            _ => ops.push(op),
        }
        Ok(())
    }

    fn other_type(&self) -> PlanError {
        PlanError::Type(self.path.join("."))
    }
}

/// Returns the operation of a value of a basic type that both sides have.
fn basic(basic: Basic, most: Option<u32>) -> Op {
    match basic {
        Basic::Bool => Op::Bools { count: 1 },
        Basic::String => Op::Text { most },
        Basic::Wstring => Op::WideText { most },
        // Two numbers.
        Basic::Time | Basic::Duration => Op::Numbers { width: 4, count: 2 },
        basic => Op::Numbers { width: basic.octets().unwrap_or(1), count: 1 },
    }
}

fn is_time(message_type: &MessageType, name: &str) -> bool {
    message_type.name().package() == "builtin_interfaces" && message_type.name().name() == name
}

/// Returns, for each field of the target, the position of the field of the source with the same name.
fn pairs(source: &MessageType, target: &MessageType) -> Vec<Option<usize>> {
    let position = |is: &dyn Fn(&Field) -> bool| source.fields().iter().position(is);
    let mut pairs: Vec<Option<usize>> =
        target.fields().iter().map(|field| position(&|other| other.name == field.name)).collect();
    for (index, field) in target.fields().iter().enumerate() {
        let similar = position(&|other| plain(&other.name).eq(plain(&field.name)));
        let is_free = similar.is_some() && !pairs.contains(&similar);
        if let Some(pair) = pairs.get_mut(index).filter(|pair| pair.is_none() && is_free) {
            *pair = similar;
        }
    }
    pairs
}

/// Returns the characters of a name without upper case and underscores.
fn plain(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|character| *character != '_').map(|character| character.to_ascii_lowercase())
}
