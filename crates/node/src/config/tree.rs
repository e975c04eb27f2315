//! A config file as a tree: each key and value with its place in the text.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::error::{Place, Problem};
use super::variables::{Variables, expand};

/// Maximum number of items of a file after aliases are expanded.
const ITEMS_MAX: usize = 100_000;

/// Most bytes of memory for the values that aliases repeat, so that a small file cannot exhaust the memory.
const ALIAS_BYTES_MAX: usize = 16 << 20;

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

    /// Returns the size in memory in bytes, with the entries that are rejected.
    fn bytes(&self) -> usize {
        match &self.value {
            Value::Scalar(scalar) => scalar.text.len(),
            Value::List(entries) | Value::Map(entries) => entries.iter().map(Entry::bytes).sum(),
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.item.bytes()
    }
}

impl Tree {
    /// Parses a text and replaces the variables in its values. Rejects and adds to `bad` each key that occurs twice and
    /// each variable that is not set.
    ///
    /// # Errors
    /// Returns an error if the text is not YAML, is empty, or has too many items. The rest of such a file cannot be
    /// read.
    pub(crate) fn parse(text: &str, variables: &Variables<'_>, bad: &mut Vec<BadEntry>) -> Result<Self, Problem> {
        let mut builder = Builder {
            parser: Parser::new_from_str(text),
            text,
            variables,
            bad,
            anchors: HashMap::new(),
            items: 0,
            alias_bytes: 0,
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

    /// Returns the entries along a path, as far as they exist. Indices of lists are those of the file, in which rejected entries
    /// count.
    fn entries_along<'a, 'p>(&'a self, path: &'p [String]) -> impl Iterator<Item = &'a Entry> + use<'a, 'p> {
        let mut item = Some(&self.root);
        path.iter().map_while(move |key| {
            let entry = item?.entries().find(|entry| entry.key == *key)?;
            item = Some(&entry.item);
            Some(entry)
        })
    }

    /// Returns the item at a path with the indices of the file, or `None` if there is none.
    pub(crate) fn item(&self, path: &[String]) -> Option<&Item> {
        let along: Vec<&Entry> = self.entries_along(path).collect();
        let is_there = along.len() == path.len();
        is_there.then(|| along.last().map_or(&self.root, |entry| &entry.item))
    }

    /// Returns the place of a path with the indices of the file, or that of its nearest parent.
    pub(crate) fn place(&self, path: &[String]) -> Option<Place> {
        self.entries_along(path).last().map(|entry| entry.place)
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
        let place = Place { line: 1, column: 1 };
        let value = Value::Scalar(scalar);
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
    /// Bytes of memory for the values that aliases repeat.
    alias_bytes: usize,
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
                self.alias_bytes += item.bytes();
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
        } else if self.alias_bytes > ALIAS_BYTES_MAX {
            format!("the aliases of the file repeat more than {} MiB", ALIAS_BYTES_MAX >> 20)
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
            let key = entries.len().to_string();
            let place = self.place(span);
            entries.push(self.entry(key, place, (event, span))?);
        }
        Ok(entries)
    }

    fn map(&mut self) -> Result<Vec<Entry>, Problem> {
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        let mut merged = Vec::new();
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
                merged.push(entry);
                continue;
            }
            if !keys.insert(entry.key.clone()) {
                self.path.push(entry.key.clone());
                self.report(format!("the key `{}` occurs twice", entry.key), place, true);
                self.path.pop();
                entry.rejected = true;
            }
            entries.push(entry);
        }
        for Entry { key, place, item, rejected } in merged {
            if !rejected && !merge(&mut entries, &mut keys, item) {
                self.path.push(key);
                self.report(
                    "expected a map to merge, as an alias (`<<: *name`), or a list of such".to_owned(),
                    place,
                    false,
                );
                self.path.pop();
            }
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

/// Adds the entries of a merged map (`<<: *name`, or a list of such) that the map does not have itself. Returns `false` if
/// the item is anything else.
fn merge(entries: &mut Vec<Entry>, keys: &mut HashSet<String>, item: Item) -> bool {
    match item.value {
        Value::Map(more) => {
            entries.extend(more.into_iter().filter(|entry| keys.insert(entry.key.clone())));
            true
        }
        Value::List(maps) => {
            let mut is_valid = true;
            for map in maps {
                is_valid &= merge(entries, keys, map.item);
            }
            is_valid
        }
        Value::Scalar(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the problem of a file that cannot be read.
    fn problem_of(text: &str) -> String {
        Tree::parse(text, &|_| None, &mut Vec::new()).unwrap_err().text
    }

    #[test]
    fn aliases_cannot_make_a_small_file_large() {
        let many_values = format!("a: &a [{}]\nb: [{}]\n", "1, ".repeat(1000), "*a, ".repeat(100));
        assert_eq!(problem_of(&many_values), "the file has more than 100000 values, aliases expanded");
        let long_text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a, ".repeat(200));
        assert_eq!(problem_of(&long_text), "the aliases of the file repeat more than 16 MiB");
    }

    /// Returns the keys of the root and the problems of a file.
    fn parsed(text: &str) -> (Vec<String>, Vec<String>) {
        let mut bad = Vec::new();
        let tree = Tree::parse(text, &|_| None, &mut bad).unwrap();
        let keys = tree.root.entries().map(|entry| entry.key.clone()).collect();
        (keys, bad.into_iter().map(|bad| format!("{}: {}", bad.path.join("."), bad.problem.text)).collect())
    }

    #[test]
    fn a_merge_of_anything_but_maps_is_reported() {
        let problem = "<<: expected a map to merge, as an alias (`<<: *name`), or a list of such";
        for text in ["<<: 5\na: 1\n", "<<:\na: 1\n", "<<: [5]\na: 1\n"] {
            assert_eq!(parsed(text), (vec!["a".to_owned()], vec![problem.to_owned()]), "{text}");
        }
        assert_eq!(
            parsed("<<: [5, { b: 2 }]\na: 1\n"),
            (vec!["a".to_owned(), "b".to_owned()], vec![problem.to_owned()])
        );
    }

    #[test]
    fn the_own_keys_of_a_map_precede_those_of_merged_maps() {
        let (keys, problems) = parsed("b: &b { x: 1, y: 2 }\n<<: [*b, { y: 3, z: 4 }]\nx: 5\n");
        assert_eq!((keys.join(" "), problems.len()), ("b x y z".to_owned(), 0));
    }

    #[test]
    fn a_file_with_many_keys_is_read_in_a_short_time() {
        let text: String = (0..90_000).map(|index| format!("k{index}: 1\n")).collect();
        let start = std::time::Instant::now();
        assert_eq!(parsed(&text).0.len(), 90_000);
        // Comparing each key with all others takes minutes.
        assert!(start.elapsed() < std::time::Duration::from_secs(30), "{:?}", start.elapsed());
    }
}
