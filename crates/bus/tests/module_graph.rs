//! The imports between the files of this crate have no cycle.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules that each module names in its code.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_module_graph_has_no_cycle() {
    let graph = module_graph(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(graph["publisher"].contains("topic"), "the imports were not found: {graph:#?}");
    assert!(graph["executor::group"].contains("subscriber"), "the imports were not found: {graph:#?}");
    if let Some(cycle) = find_cycle(&graph) {
        panic!("import cycle: {}", cycle.join(" -> "));
    }
}

#[test]
fn a_cycle_is_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            graph.entry((*to).to_owned()).or_default();
        }
        graph
    };
    assert_eq!(find_cycle(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let cycle = find_cycle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(cycle, ["b", "c", "b"]);
}

#[test]
fn every_form_of_an_import_is_found() {
    let modules = ["pool", "pool::sys", "pool::size", "queue", "error"].map(str::to_owned).into();
    let text =
        "use crate::error::OpenError;\nuse sys::Slots;\npub use size::PoolSize;\nlet lock = crate::queue::new();";
    let found = imports("pool", true, text, &modules);
    assert_eq!(found, ["error", "pool::sys", "queue"].map(str::to_owned).into(), "a re-export is not an import");
    let found = imports("pool::sys", false, "use super::size::{PoolSize, stride};\nuse super::Pool;", &modules);
    assert_eq!(found, ["pool", "pool::size"].map(str::to_owned).into());
}

fn module_graph(src: &Path) -> Graph {
    let mut files = Vec::new();
    collect_files(src, &mut files);
    let files: BTreeMap<String, PathBuf> = files.into_iter().map(|file| (module_name(src, &file), file)).collect();
    let modules = files.keys().cloned().collect();
    let mut graph = Graph::new();
    for (module, file) in &files {
        let text = code(&std::fs::read_to_string(file).unwrap());
        graph.insert(module.clone(), imports(module, file.ends_with("mod.rs"), &text, &modules));
    }
    graph
}

/// Collects the source files except the crate root, which only declares and re-exports, and except test modules.
fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            collect_files(&path, files);
        } else if name.ends_with(".rs") && name != "lib.rs" && name != "tests.rs" {
            files.push(path);
        }
    }
}

/// Returns the path of a file's module, for example `pool::sys`.
fn module_name(src: &Path, file: &Path) -> String {
    let path = file.strip_prefix(src).unwrap().with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).filter(|part| *part != "mod").collect();
    parts.join("::")
}

/// Returns the text without comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap();
    let lines: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
    lines.join("\n")
}

/// Returns the modules that `text`, the code of `module`, names. `modules` are all of the crate.
fn imports(module: &str, has_children: bool, text: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut found = BTreeSet::new();
    for statement in text.split([';', '{', '}']) {
        let is_reexport = statement.trim().starts_with("pub") && statement.contains(" use ");
        for path in paths(statement) {
            let target = if let Some(rest) = path.strip_prefix("crate::") {
                Some(resolve("", rest, modules).unwrap_or_else(|| panic!("{module}: name the module of `{path}`")))
            } else if let Some(rest) = path.strip_prefix("super::") {
                resolve(parent, rest, modules)
            } else if has_children && !is_reexport {
                resolve(module, path, modules).filter(|target| target != module)
            } else {
                None
            };
            found.extend(target);
        }
    }
    found.remove(module);
    found
}

/// Returns the paths of more than one segment in a statement, for example `crate::pool::Pool`.
fn paths(statement: &str) -> impl Iterator<Item = &str> {
    let words = statement.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':');
    words.filter(|word| word.contains("::"))
}

/// Returns the module that holds `path`, as seen from the module `base`, or `base` if the path names one of its items.
fn resolve(base: &str, path: &str, modules: &BTreeSet<String>) -> Option<String> {
    let mut target = base.to_owned();
    for segment in path.split("::") {
        let inner = if target.is_empty() { segment.to_owned() } else { format!("{target}::{segment}") };
        if !modules.contains(&inner) {
            break;
        }
        target = inner;
    }
    modules.contains(&target).then_some(target)
}

/// Returns the modules of a cycle, the first one again at the end, or `None` if there is no cycle.
fn find_cycle(graph: &Graph) -> Option<Vec<String>> {
    let mut finished = BTreeSet::new();
    graph.keys().find_map(|start| visit(start, graph, &mut Vec::new(), &mut finished))
}

fn visit(module: &str, graph: &Graph, path: &mut Vec<String>, finished: &mut BTreeSet<String>) -> Option<Vec<String>> {
    if let Some(begin) = path.iter().position(|earlier| earlier == module) {
        let mut cycle = path.split_off(begin);
        cycle.push(module.to_owned());
        return Some(cycle);
    }
    if !finished.insert(module.to_owned()) {
        return None;
    }
    path.push(module.to_owned());
    let cycle = graph[module].iter().find_map(|target| visit(target, graph, path, finished));
    path.pop();
    cycle
}
