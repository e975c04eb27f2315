//! Checks the tables in `conformance/`: each is well formed, each named test exists, and the gaps match the list.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The table of one standard.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    standard: String,
    version: String,
    title: String,
    clause: Vec<Clause>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clause {
    id: String,
    words: String,
    status: Status,
    #[serde(default)]
    note: String,
    #[serde(default)]
    tests: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Met,
    Partly,
    Gap,
    NotApplicable,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns each table with its file name, sorted by that name.
fn tables() -> Vec<(String, Table)> {
    let files = std::fs::read_dir(root().join("conformance")).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let table = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), table)
        })
        .collect();
    tables.sort_by(|(a, _), (b, _)| a.cmp(b));
    tables
}

/// Returns the files that may contain the test of that path: `its::geonet::forwarding::tests::name`, or
/// `its::tests::station::name` for one of the files in the crate's folder of tests.
fn candidates(path: &[&str]) -> Vec<PathBuf> {
    let [name, modules @ ..] = path else { return Vec::new() };
    let folder = if *name == "fuzz" { root().join("fuzz") } else { root().join("crates").join(name) };
    if let ["tests", file, ..] = modules {
        return vec![
            folder.join("tests").join(file).with_extension("rs"),
            folder.join("tests").join(file).join("main.rs"),
        ];
    }
    let modules = if let [inner @ .., "tests"] = modules { inner } else { modules };
    let module = modules.iter().fold(folder.join("src"), |path, name| path.join(name));
    let mut files = vec![
        module.with_extension("rs"),
        module.join("mod.rs"),
        module.join("tests.rs"),
        module.join("lib.rs"),
        module.join("main.rs"),
    ];
    // The tests of a module may be in a file beside it: `mod tests;` in `geonet/router.rs` is `geonet/router/tests.rs`.
    files.push(module.with_file_name(format!("{}_tests.rs", modules.last().unwrap_or(&"lib"))));
    files
}

/// Returns `true` if the text has the test: a function of that name with `#[test]` or inside `proptest!`. An ignored
/// test does not count.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = format!("fn {name}(");
    lines.iter().enumerate().any(|(at, line)| {
        let attributes =
            || lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        line.strip_prefix("async ").unwrap_or(line).starts_with(&start)
            && attributes().any(|line| line.ends_with("test]") || line.starts_with("#[tokio::test"))
            && !attributes().any(|line| line.starts_with("#[ignore"))
    })
}

#[test]
fn a_test_is_a_function_that_runs() {
    let text = "#[test]\nfn a() {}\n#[tokio::test]\nasync fn b() {}\n#[test]\n#[ignore]\nfn c() {}\n\
                #[ignore = \"slow\"]\n#[test]\nfn d() {}\nfn e() {}\n";
    let found = ["a", "b", "c", "d", "e"].map(|name| has_test(text, name));
    assert_eq!(found, [true, true, false, false, false]);
}

fn exists(test: &str) -> bool {
    let path: Vec<&str> = test.split("::").collect();
    let Some((name, modules)) = path.split_last() else { return false };
    let texts = candidates(modules).into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.into_iter().any(|text| has_test(&text, name))
}

#[test]
fn every_table_is_well_formed() {
    let mut faults = Vec::new();
    for (file, table) in tables() {
        let mut seen = BTreeSet::new();
        for clause in &table.clause {
            let at = format!("{file} {}", clause.id);
            if !seen.insert(clause.id.as_str()) {
                faults.push(format!("{at}: the clause occurs twice"));
            }
            if clause.words.trim().is_empty() {
                faults.push(format!("{at}: no words"));
            }
            if clause.status != Status::Met && clause.note.trim().is_empty() {
                faults.push(format!("{at}: a clause that is not met needs a note"));
            }
            if matches!(clause.status, Status::Met | Status::Partly) && clause.tests.is_empty() {
                faults.push(format!("{at}: a clause that is met needs a test"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_named_test_exists() {
    let missing: Vec<String> = tables()
        .iter()
        .flat_map(|(file, table)| table.clause.iter().map(move |clause| (file, clause)))
        .flat_map(|(file, clause)| clause.tests.iter().map(move |test| (file, &clause.id, test)))
        .filter(|(_, _, test)| !exists(test))
        .map(|(file, id, test)| format!("{file} {id}: {test}"))
        .collect();
    assert!(missing.is_empty(), "no such test:\n{}", missing.join("\n"));
}

/// Compares the clauses that are a gap, are met partly or do not apply with `conformance/gaps.txt`. A new entry is a
/// failure: close the gap, or edit the list by hand and give the reason in the commit. A closed entry must be removed
/// from the list, so that it cannot return unnoticed.
#[test]
fn the_gaps_match_the_list() {
    let found: BTreeSet<String> = tables()
        .iter()
        .flat_map(|(file, table)| table.clause.iter().map(move |clause| (file, clause)))
        .filter_map(|(file, clause)| match clause.status {
            Status::Gap => Some(format!("{file} {} gap", clause.id)),
            Status::Partly => Some(format!("{file} {} partly", clause.id)),
            Status::NotApplicable => Some(format!("{file} {} not_applicable", clause.id)),
            Status::Met => None,
        })
        .collect();
    let text = std::fs::read_to_string(root().join("conformance/gaps.txt")).unwrap();
    let listed = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned);
    let listed: BTreeSet<String> = listed.collect();
    let new: Vec<_> = found.difference(&listed).collect();
    let closed: Vec<_> = listed.difference(&found).collect();
    assert!(new.is_empty(), "gaps that are not in conformance/gaps.txt: {new:#?}");
    assert!(closed.is_empty(), "no longer gaps, remove them from conformance/gaps.txt: {closed:#?}");
}

/// Compares the summary (`UPDATE_GOLDEN=1` rewrites it).
#[test]
fn the_summary_is_up_to_date() {
    let mut text = String::from(
        "# Conformance\n\nOne table per standard. A table contains each clause that concerns a station, with a summary, \
         its status and\nthe tests that verify it. A test checks that all named tests exist and that the tables match the \
         list of gaps\n(`gaps.txt`).\n\n\
         | standard | version | title | met | partly | gap | not applicable |\n|---|---|---|---|---|---|---|\n",
    );
    for (file, table) in tables() {
        let count = |status| table.clause.iter().filter(|clause| clause.status == status).count();
        let (met, partly) = (count(Status::Met), count(Status::Partly));
        let (gap, not_applicable) = (count(Status::Gap), count(Status::NotApplicable));
        let Table { standard, version, title, .. } = table;
        writeln!(
            text,
            "| [{standard}]({file}.toml) | {version} | {title} | {met} | {partly} | {gap} | {not_applicable} |"
        )
        .unwrap();
    }
    let path = root().join("conformance/README.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "UPDATE_GOLDEN=1 rewrites it");
}
