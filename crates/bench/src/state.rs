//! Finished measurements, in memory and in a state file from which an interrupted run continues. The file has one
//! line that identifies the run, then a line for each finished round of a case.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;

/// Identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Measured commit.
    pub(crate) commit: String,
    /// Options as text.
    pub(crate) options: String,
}

#[derive(Serialize, Deserialize)]
struct Line<O> {
    round: usize,
    case: String,
    outcome: O,
}

/// Outcomes by case and round.
type Outcomes<O> = BTreeMap<(String, usize), O>;

/// Finished measurements with their outcomes.
#[derive(Debug)]
pub(crate) struct Measured<O> {
    outcomes: Outcomes<O>,
    file: Option<(PathBuf, File)>,
}

impl<O> Default for Measured<O> {
    fn default() -> Self {
        Self { outcomes: Outcomes::new(), file: None }
    }
}

impl<O: Serialize + DeserializeOwned> Measured<O> {
    /// Reads the state file of this run, if there is one, and appends to it from now on.
    pub(crate) fn resume(path: &Path, run: &Run) -> Result<Self, BenchError> {
        let broken = BenchError::system("cannot use the state file");
        let text = if path.exists() { fs::read_to_string(path).map_err(&broken)? } else { String::new() };
        let (outcomes, whole) = parse(path, &text, run)?;
        let mut file = File::options().create(true).append(true).open(path).map_err(&broken)?;
        // A truncated last line is measured again.
        file.set_len(whole as u64).map_err(&broken)?;
        if whole == 0 {
            write_line(&mut file, run).map_err(&broken)?;
        }
        Ok(Self { outcomes, file: Some((path.to_owned(), file)) })
    }

    pub(crate) fn len(&self) -> usize {
        self.outcomes.len()
    }

    pub(crate) fn has(&self, case: &str, round: usize) -> bool {
        self.outcomes.contains_key(&(case.to_owned(), round))
    }

    pub(crate) fn add(&mut self, case: &str, round: usize, outcome: O) -> Result<(), BenchError> {
        let line = Line { round, case: case.to_owned(), outcome };
        if let Some((_, file)) = &mut self.file {
            write_line(file, &line).map_err(BenchError::system("cannot write the state file"))?;
        }
        self.outcomes.insert((line.case, round), line.outcome);
        Ok(())
    }

    /// Returns the outcome of a round of a case, or `None` if it is not measured.
    pub(crate) fn get(&self, case: &str, round: usize) -> Option<&O> {
        self.outcomes.get(&(case.to_owned(), round))
    }

    /// Returns the rounds of a case in order.
    pub(crate) fn of<'a>(&'a self, case: &'a str) -> impl Iterator<Item = &'a O> {
        let rounds = (case.to_owned(), 0)..=(case.to_owned(), usize::MAX);
        self.outcomes.range(rounds).map(|(_, outcome)| outcome)
    }
}

/// Parses the outcomes. Returns them with the length of the complete lines in bytes.
fn parse<O: DeserializeOwned>(path: &Path, text: &str, run: &Run) -> Result<(Outcomes<O>, usize), BenchError> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].lines();
    let Some(first) = lines.next() else {
        return Ok((Outcomes::new(), 0));
    };
    let refused = |why: String| {
        BenchError::broken(
            &format!("cannot resume from {}", path.display()),
            &format!("{why}; delete it to start again"),
        )
    };
    let known: Run = serde_json::from_str(first).map_err(|problem| refused(format!("not a state file: {problem}")))?;
    if known != *run {
        let (theirs, ours) =
            (format!("{} ({})", known.commit, known.options), format!("{} ({})", run.commit, run.options));
        return Err(refused(format!("the file is of another run: it has {theirs}, this run has {ours}")));
    }
    let entry = |text: &str| {
        let line: Line<O> =
            serde_json::from_str(text).map_err(|problem| refused(format!("invalid line: {problem}")))?;
        Ok(((line.case, line.round), line.outcome))
    };
    Ok((lines.map(entry).collect::<Result<_, BenchError>>()?, whole))
}

fn write_line(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(commit: &str) -> Run {
        Run { commit: commit.to_owned(), options: "10 samples".to_owned() }
    }

    /// Outcomes of the tests: latencies.
    type Latencies = Vec<u64>;

    #[test]
    fn restores_outcomes_and_ignores_a_truncated_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut first = Measured::<Latencies>::resume(&path, &run("a")).unwrap();
        for round in [1, 0] {
            first.add("case", round, vec![round as u64]).unwrap();
        }
        drop(first);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"round\":2,\"ca")).unwrap();
        let mut second = Measured::<Latencies>::resume(&path, &run("a")).unwrap();
        assert_eq!((second.len(), second.has("case", 1), second.has("case", 2)), (2, true, false));
        second.add("case", 2, vec![2]).unwrap();
        let latencies: Vec<u64> = second.of("case").flatten().copied().collect();
        assert_eq!(latencies, [0, 1, 2]);
        assert_eq!(Measured::<Latencies>::resume(&path, &run("a")).unwrap().len(), 3);
        assert_eq!(second.of("cas").count() + second.of("case ").count(), 0);
    }

    #[test]
    fn rejects_the_file_of_another_run_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        drop(Measured::<Latencies>::resume(&path, &run("a")).unwrap());
        let before = fs::read_to_string(&path).unwrap();
        let refused = Measured::<Latencies>::resume(&path, &run("b")).unwrap_err().to_string();
        assert!(
            refused.contains("the file is of another run: it has a (10 samples), this run has b (10 samples)"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        fs::write(&path, "something else\n").unwrap();
        assert!(Measured::<Latencies>::resume(&path, &run("a")).unwrap_err().to_string().contains("not a state file"));
    }
}
