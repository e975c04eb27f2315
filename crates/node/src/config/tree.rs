//! A config file as a tree: each key and value with its place in the text.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::error::{Place, Problem};
use super::variables::{Variables, expand};

/// Most items of a file after aliases are expanded.
const ITEMS_MAX: usize = 100_000;

/// Most levels of nested collections.
const DEPTH_MAX: usize = 64;

/// A parsed file.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) root: Item,
}

/// One value.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Entry>),
    Map(Vec<Entry>),
}

/// A scalar after its variables are replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// `true` if the scalar has no quotes, so that it may be `null`, a number or a switch.
    pub(crate) plain: bool,
    /// `true` if the scalar is plain and on one line, so that an error can repeat it.
    pub(crate) one_line: bool,
}

/// A value below a map or a list.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The key, or the index in a list, counted from 0.
    pub(crate) key: String,
    /// The place of the key; in a list, of the value.
    pub(crate) place: Place,
    pub(crate) item: Item,
    /// `true` if the entry has a problem that is reported. Readers then skip it.
    pub(crate) rejected: bool,
}

/// A key that was looked up.
pub(crate) struct Found<'a> {
    /// Its place, or that of its nearest parent; `None` for the whole file.
    pub(crate) place: Option<Place>,
    /// Its value, or `None` if the file does not have the key.
    pub(crate) item: Option<&'a Item>,
    /// Keys from the root to the value, or to its nearest parent.
    pub(crate) path: Vec<String>,
    /// The rest of the path that was looked up, below the nearest parent.
    pub(crate) rest: String,
}

/// An entry that was rejected while the file was parsed.
pub(crate) struct BadEntry {
    pub(crate) path: Vec<String>,
    pub(crate) problem: Problem,
    /// `true` if the key occurs twice, so that the first value is still there.
    pub(crate) is_duplicate: bool,
}

impl Scalar {
    /// Returns `true` if the scalar represents an absent value.
    pub(crate) fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Item {
    /// Returns the entries of a map or a list that are not rejected.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let entries = match &self.value {
            Value::List(entries) | Value::Map(entries) => entries.as_slice(),
            Value::Scalar(_) => &[],
        };
        entries.iter().filter(|entry| !entry.rejected)
    }

    fn entries_mut(&mut self) -> &mut [Entry] {
        match &mut self.value {
            Value::List(entries) | Value::Map(entries) => entries,
            Value::Scalar(_) => &mut [],
        }
    }

    fn count(&self) -> usize {
        1 + self.entries().map(|entry| entry.item.count()).sum::<usize>()
    }
}

impl Tree {
    /// Parses a text and replaces the variables in its values. Rejects and adds to `bad` each key that occurs twice and
    /// each variable that is not set.
    ///
    /// # Errors
    /// The text is not YAML, is empty, or has too many items. The rest of such a file cannot be read.
    pub(crate) fn parse(text: &str, variables: &Variables<'_>, bad: &mut Vec<BadEntry>) -> Result<Self, Problem> {
        let mut builder = Builder {
            parser: Parser::new_from_str(text),
            text,
            variables,
            bad,
            anchors: HashMap::new(),
            items: 0,
            path: Vec::new(),
        };
        builder.document().map(|root| Self { root })
    }

    /// Looks up a key by its path, joined by dots. In a list, entries that are rejected do not count, because the
    /// component that reported the index did not receive them.
    pub(crate) fn find(&self, path: &str) -> Found<'_> {
        let mut found = Found { place: None, item: Some(&self.root), path: Vec::new(), rest: String::new() };
        let (mut item, mut rest) = (&self.root, path);
        while !rest.is_empty() {
            let Some((entry, length)) = child(item, rest) else {
                found.item = None;
                found.rest = rest.to_owned();
                break;
            };
            found.place = Some(entry.place);
            found.path.push(entry.key.clone());
            found.item = Some(&entry.item);
            item = &entry.item;
            rest = rest[length..].trim_start_matches('.');
        }
        found
    }

    /// Rejects the entry at that path. Returns `false` if there is none.
    pub(crate) fn reject(&mut self, path: &[String]) -> bool {
        let mut item = &mut self.root;
        for (depth, key) in path.iter().enumerate() {
            let entry = item.entries_mut().iter_mut().find(|entry| entry.key == *key && !entry.rejected);
            let Some(entry) = entry else {
                return false;
            };
            if depth + 1 == path.len() {
                entry.rejected = true;
                return true;
            }
            item = &mut entry.item;
        }
        false
    }

    /// Adds a scalar below the root, as if the file had it.
    pub(crate) fn assume(&mut self, key: &str, text: &str) {
        let scalar = Scalar { text: text.to_owned(), plain: true, one_line: true };
        let (place, value) = (Place { line: 1, column: 1 }, Value::Scalar(scalar));
        if let Value::Map(entries) = &mut self.root.value {
            entries.push(Entry { key: key.to_owned(), place, item: Item { place, value }, rejected: false });
        }
    }
}

/// Returns the entry with which a path continues, and the length of its key in the path.
fn child<'a>(item: &'a Item, path: &str) -> Option<(&'a Entry, usize)> {
    if matches!(item.value, Value::List(_)) {
        let key = path.split('.').next()?;
        return item.entries().nth(key.parse().ok()?).map(|entry| (entry, key.len()));
    }
    // A key may contain dots, so the longest key that fits is taken.
    let fits = |entry: &&Entry| {
        path.strip_prefix(entry.key.as_str()).is_some_and(|after| after.is_empty() || after.starts_with('.'))
    };
    item.entries().filter(fits).max_by_key(|entry| entry.key.len()).map(|entry| (entry, entry.key.len()))
}

/// Builds a tree from the events of the parser.
struct Builder<'a, 'v> {
    parser: Parser<'a, StrInput<'a>>,
    text: &'a str,
    variables: &'a Variables<'v>,
    bad: &'a mut Vec<BadEntry>,
    anchors: HashMap<usize, Item>,
    items: usize,
    path: Vec<String>,
}

impl<'a> Builder<'a, '_> {
    fn document(&mut self) -> Result<Item, Problem> {
        let empty = || Problem::new("", "the file is empty; a node starts with `node: NAME`");
        loop {
            let (event, span) = self.next()?.ok_or_else(empty)?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd | Event::DocumentEnd => return Err(empty()),
                node => {
                    let root = self.item(node, span)?;
                    self.end_of_document()?;
                    return match &root.value {
                        Value::Map(_) => Ok(root),
                        Value::Scalar(scalar) if scalar.is_null() => Err(empty()),
                        _ => {
                            let problem = "expected a map of keys; a node starts with `node: NAME`";
                            Err(Problem::new("", problem).at(root.place))
                        }
                    };
                }
            }
        }
    }

    fn end_of_document(&mut self) -> Result<(), Problem> {
        while let Some((event, span)) = self.next()? {
            if event.is_node() {
                let problem = Problem::new("", "a file has one document; a second one begins here");
                return Err(problem.at(self.place(span)));
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Problem> {
        self.parser.next_event().transpose().map_err(|error| self.not_yaml(&error))
    }

    fn not_yaml(&self, error: &ScanError) -> Problem {
        let marker = error.marker();
        let place = Place { line: marker.line() as u64, column: marker.col() as u64 + 1 };
        Problem::new(self.path.join("."), format!("not YAML: {}", error.info())).at(place)
    }

    fn place(&self, span: Span) -> Place {
        Place { line: span.start.line() as u64, column: span.start.col() as u64 + 1 }
    }

    fn item(&mut self, event: Event<'a>, span: Span) -> Result<Item, Problem> {
        let place = self.place(span);
        self.items += 1;
        self.check_limits(place)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (Value::Scalar(self.scalar(&text, style, span)), anchor),
            Event::SequenceStart(_, anchor, _) => (Value::List(self.list()?), anchor),
            Event::MappingStart(_, anchor, _) => (Value::Map(self.map()?), anchor),
            Event::Alias(anchor) => {
                let Some(item) = self.anchors.get(&anchor) else {
                    let problem = "an alias cannot be inside the value that it refers to";
                    return Err(Problem::new(self.path.join("."), problem).at(place));
                };
                self.items += item.count();
                self.check_limits(place)?;
                return Ok(Item { place, value: item.value.clone() });
            }
            _ => return Err(Problem::new(self.path.join("."), "expected a value").at(place)),
        };
        let item = Item { place, value };
        if anchor > 0 {
            self.anchors.insert(anchor, item.clone());
        }
        Ok(item)
    }

    fn check_limits(&self, place: Place) -> Result<(), Problem> {
        let problem = if self.items > ITEMS_MAX {
            format!("the file has more than {ITEMS_MAX} values, aliases expanded")
        } else if self.path.len() > DEPTH_MAX {
            format!("more than {DEPTH_MAX} levels of nested maps and lists")
        } else {
            return Ok(());
        };
        Err(Problem::new("", problem).at(place))
    }

    fn scalar(&self, text: &str, style: ScalarStyle, span: Span) -> Scalar {
        let plain = matches!(style, ScalarStyle::Plain);
        let source = span.byte_range().and_then(|range| self.text.get(range)).unwrap_or_default();
        let one_line = plain && !source.contains('\n');
        Scalar { text: text.to_owned(), plain, one_line }
    }

    fn list(&mut self) -> Result<Vec<Entry>, Problem> {
        let mut entries = Vec::new();
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            let (key, place) = (entries.len().to_string(), self.place(span));
            entries.push(self.entry(key, place, (event, span))?);
        }
        Ok(entries)
    }

    fn map(&mut self) -> Result<Vec<Entry>, Problem> {
        let (mut entries, mut merged) = (Vec::<Entry>::new(), Vec::new());
        while let Some((event, span)) = self.next()? {
            let place = self.place(span);
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(Problem::new(self.path.join("."), "a key must be a text").at(place)),
            };
            let Some(value) = self.next()? else { break };
            let mut entry = self.entry(key, place, value)?;
            if entry.key == "<<" {
                merged.push(entry.item);
                continue;
            }
            if entries.iter().any(|earlier| earlier.key == entry.key) {
                self.path.push(entry.key.clone());
                self.report(format!("the key `{}` occurs twice", entry.key), place, true);
                self.path.pop();
                entry.rejected = true;
            }
            entries.push(entry);
        }
        for item in merged {
            merge(&mut entries, item);
        }
        Ok(entries)
    }

    /// Reads a value below `key`. An entry with a variable that is not set is rejected.
    fn entry(&mut self, key: String, place: Place, (event, span): (Event<'a>, Span)) -> Result<Entry, Problem> {
        self.path.push(key);
        let mut item = self.item(event, span)?;
        let mut rejected = false;
        if let Value::Scalar(scalar) = &mut item.value {
            match expand(&scalar.text, self.variables) {
                Ok(Some(text)) => scalar.text = text,
                Ok(None) => {}
                Err(problem) => {
                    self.report(problem, item.place, false);
                    rejected = true;
                }
            }
        }
        let key = self.path.pop().unwrap_or_default();
        Ok(Entry { key, place, item, rejected })
    }

    fn report(&mut self, problem: String, place: Place, is_duplicate: bool) {
        let problem = Problem::new(self.path.join("."), problem).at(place);
        self.bad.push(BadEntry { path: self.path.clone(), problem, is_duplicate });
    }
}

/// Adds the entries of a merged map (`<<: *name`, or a list of such) that the map does not have itself.
fn merge(entries: &mut Vec<Entry>, item: Item) {
    match item.value {
        Value::Map(more) => {
            for entry in more {
                if !entries.iter().any(|own| own.key == entry.key) {
                    entries.push(entry);
                }
            }
        }
        Value::List(maps) => maps.into_iter().for_each(|map| merge(entries, map.item)),
        Value::Scalar(_) => {}
    }
}
