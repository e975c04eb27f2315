//! Results of a bench: rows of figures, as JSON for programs and as tables for people.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::machine::{COMMIT, Machine, MachineMonitor};
use crate::statistics::Summary;

mod html;
mod table;

pub(crate) use table::{figure, size_text};

/// The rows of one run of one bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Name of the bench: `bus`.
    pub bench: String,
    /// Commit that was built, with `-dirty` if the sources differed from it; `unknown` outside a repository.
    pub commit: String,
    /// The machine.
    pub machine: Machine,
    /// Rows of Viaduct, floors and papers.
    pub rows: Vec<Row>,
    /// Notes for the reader of the tables, such as rows that were left out and the reason.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Additional tables of the bench.
    #[serde(skip)]
    pub sections: Vec<Section>,
    /// Distributions for the HTML page.
    #[serde(skip)]
    pub charts: Vec<Chart>,
    /// `true` if the additional tables show all rows.
    #[serde(skip)]
    pub sections_only: bool,
}

/// An additional table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Title.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Number of leading columns with words; the others are figures.
    pub words: usize,
    /// Cells as text.
    pub rows: Vec<Vec<String>>,
    /// Explanation of the figures.
    pub about: String,
}

/// Distributions that are drawn into one chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// One curve each.
    pub lines: Vec<Line>,
}

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// Name of the row.
    pub name: String,
    /// `ours`, `rival` or `floor`.
    pub kind: String,
    /// Samples in ascending order, each with the share of samples that do not exceed it.
    pub points: Vec<(f64, f64)>,
}

/// One row: a distribution of latencies, or a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// `viaduct` or `viaduct.PART` for ours, `floor.*`, `paper.*`, or the rival's name.
    pub name: String,
    /// Parameters of the measurement.
    pub params: Map<String, Value>,
    /// Unit of the figures.
    pub unit: String,
    /// Number of samples; for a rate, of messages.
    pub n: u64,
    /// Number of messages that were sent and did not arrive; `null` if a paper omits it.
    pub lost: Option<u64>,
    /// Smallest sample. This and the following figures are `null` for a rate, or if a paper omits them.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest sample.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub sd: Option<f64>,
    /// Per second, the median of the rounds; `null` for latencies.
    pub rate: Option<f64>,
    /// Cost of the path's threads, if it was counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Cost>,
    /// All samples in the order of measuring; for a rate, one per round.
    #[serde(skip)]
    pub samples: Vec<f64>,
    /// Figures that the table shows next to the row.
    #[serde(skip)]
    pub references: References,
}

/// Cost of the threads of a publisher and all its subscribers after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Page faults.
    pub page_faults: u64,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_involuntary: u64,
    /// Allocations per message; `null` if they are not counted.
    pub allocations: Option<f64>,
    /// Bytes of these allocations, per message.
    pub allocated_octets: Option<f64>,
    /// Deliveries of a message in other memory than the producer filled; `null` if unknown.
    pub copied: Option<u64>,
}

/// References of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct References {
    /// The paper's mean, or its rate.
    pub paper: Option<f64>,
    /// The floor's median, or its rate.
    pub floor: Option<f64>,
    /// Lateness of the publisher, 99th percentile.
    pub late: Option<f64>,
    /// Latency from the scheduled time of sending, 99th percentile.
    pub tick: Option<f64>,
}

impl Row {
    /// Returns a row of latencies in microseconds.
    #[must_use]
    pub fn latencies(name: &str, params: &Value, samples: Vec<f64>, lost: u64) -> Self {
        let summary = Summary::of(&samples);
        let figure = |pick: fn(&Summary) -> f64| summary.as_ref().map(pick);
        Self {
            n: samples.len() as u64,
            lost: Some(lost),
            min: figure(|summary| summary.min),
            p50: figure(|summary| summary.p50),
            p99: figure(|summary| summary.p99),
            p999: figure(|summary| summary.p999),
            max: figure(|summary| summary.max),
            mean: figure(|summary| summary.mean),
            sd: figure(|summary| summary.sd),
            samples,
            ..Self::empty(name, params, "us")
        }
    }

    /// Returns a row of messages per second: the median rate of the rounds, and the messages of all rounds.
    #[must_use]
    pub fn rates(name: &str, params: &Value, rates: Vec<f64>, messages: u64, lost: u64) -> Self {
        let rate = Summary::of(&rates).map(|summary| summary.p50);
        Self { n: messages, lost: Some(lost), rate, samples: rates, ..Self::empty(name, params, "messages") }
    }

    pub(crate) fn empty(name: &str, params: &Value, unit: &str) -> Self {
        Self {
            name: name.to_owned(),
            params: params.as_object().cloned().unwrap_or_default(),
            unit: unit.to_owned(),
            n: 0,
            lost: None,
            min: None,
            p50: None,
            p99: None,
            p999: None,
            max: None,
            mean: None,
            sd: None,
            rate: None,
            cost: None,
            samples: Vec::new(),
            references: References::default(),
        }
    }

    /// Returns `true` if the figures are published ones.
    #[must_use]
    pub fn is_paper(&self) -> bool {
        self.name.starts_with("paper.")
    }

    /// Returns `true` for a floor.
    #[must_use]
    pub fn is_floor(&self) -> bool {
        self.name.starts_with("floor.")
    }
}

impl Report {
    pub(crate) fn new(bench: &str, watch: MachineMonitor, rows: Vec<Row>, mut notes: Vec<String>) -> Self {
        let machine = watch.stop();
        if machine.load > 0.3 * machine.cpus as f64 {
            notes.push(format!(
                "other load on the machine before the run ({:.1}): medians are reliable, tails are not",
                machine.load
            ));
        }
        if machine.steal > 0.01 {
            notes.push(format!("CPU steal of {:.1} %: medians are reliable, tails are not", machine.steal * 100.0));
        }
        let (bench, commit) = (bench.to_owned(), COMMIT.to_owned());
        Self { bench, commit, machine, rows, notes, sections: Vec::new(), charts: Vec::new(), sections_only: false }
    }

    /// Returns the tables as text.
    #[must_use]
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// Writes the tables to standard output.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub fn print_table(&self) -> io::Result<()> {
        io::stdout().lock().write_all(self.table().as_bytes())
    }

    /// Writes the report as JSON, and all samples of all rows into a second file with the ending `.samples.csv`.
    /// Existing files are replaced when the new ones are complete. A target that is not a file, like `/dev/stdout`,
    /// gets the JSON only.
    ///
    /// # Errors
    /// Returns an error if one of the two files cannot be written.
    pub fn write_json(&self, path: &Path) -> io::Result<()> {
        if path.exists() && !path.is_file() {
            return self.put_json(File::create(path)?);
        }
        replace(path, |file| self.put_json(file))?;
        replace(&path.with_extension("samples.csv"), |file| self.put_samples(file))
    }

    /// Writes the report as one self-contained HTML page with tables and charts. An existing file is replaced when
    /// the new one is complete.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_html(&self, path: &Path) -> io::Result<()> {
        replace(path, |mut file| file.write_all(html::page(self).as_bytes()))
    }

    /// Checks that [`Self::write_json`] can write to `path`, without changing an existing file.
    ///
    /// # Errors
    /// Returns an error if the path cannot be written.
    pub fn check_writable(path: &Path) -> io::Result<()> {
        if path.exists() {
            File::options().append(true).open(path)?;
            if !path.is_file() {
                return Ok(());
            }
        }
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let partial = Self::partial(&path);
        File::create(&partial)?;
        std::fs::remove_file(partial)
    }

    fn partial(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        PathBuf::from(name)
    }

    fn put_json(&self, file: File) -> io::Result<()> {
        let mut json = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut json, self)?;
        writeln!(json)?;
        json.flush()
    }

    fn put_samples(&self, file: File) -> io::Result<()> {
        let mut samples = BufWriter::new(file);
        writeln!(samples, "row,name,unit,sample")?;
        for (number, row) in self.rows.iter().enumerate() {
            let unit = if row.rate.is_some() { "per_second" } else { &row.unit };
            for sample in &row.samples {
                writeln!(samples, "{number},{},{unit},{sample}", row.name)?;
            }
        }
        samples.flush()
    }
}

/// Writes a temporary file next to the target and renames it.
fn replace(path: &Path, put: impl FnOnce(File) -> io::Result<()>) -> io::Result<()> {
    // For a link, the file that it names is replaced.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let partial = Report::partial(&path);
    put(File::create(&partial)?).and_then(|()| std::fs::rename(&partial, &path)).inspect_err(|_| {
        // The error of the write is reported; a temporary file that remains is not.
        let _ = std::fs::remove_file(&partial);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Report {
        let latencies = Row::latencies("viaduct", &json!({"size": 32768}), vec![3.0, 1.0, 2.0], 1);
        let latencies = Row { cost: Some(Cost::default()), ..latencies };
        let rate = Row::rates("viaduct.decode", &json!({}), vec![260.0, 100.0, 250.0], 500, 0);
        Report::new("bus", MachineMonitor::start(), vec![latencies, rate], vec![])
    }

    #[test]
    fn json_has_the_documented_keys_and_can_be_read_back() {
        let report = report();
        let json = serde_json::to_value(&report).unwrap();
        let keys = |value: &Value| {
            let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys.join(" ")
        };
        assert_eq!(keys(&json), "bench commit machine rows");
        assert_eq!(keys(&json["machine"]), "cpus kernel load psi_cpu steal");
        let always = "lost max mean min n name p50 p99 p999 params rate sd unit";
        let rows = json["rows"].as_array().unwrap();
        assert_eq!(keys(&rows[0]), format!("cost {always}"));
        assert_eq!(
            keys(&rows[0]["cost"]),
            "allocated_octets allocations copied page_faults switches_involuntary switches_voluntary"
        );
        assert_eq!(keys(&rows[1]), always);
        let row = &json["rows"][0];
        assert_eq!(
            (&row["n"], &row["p50"], &row["lost"], &row["rate"]),
            (&json!(3), &json!(2.0), &json!(1), &Value::Null)
        );
        assert_eq!((&json["rows"][1]["rate"], &json["rows"][1]["p50"]), (&json!(250.0), &Value::Null));
        let back: Report = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(back).unwrap(), json);
    }

    #[test]
    fn writes_the_samples_to_a_second_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus.json");
        std::fs::write(&path, "earlier").unwrap();
        Report::check_writable(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "earlier");
        report().write_json(&path).unwrap();
        let back: Report = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(back.bench, "bus");
        let samples = std::fs::read_to_string(folder.path().join("bus.samples.csv")).unwrap();
        let latencies = "0,viaduct,us,3\n0,viaduct,us,1\n0,viaduct,us,2\n";
        let rates = ["260", "100", "250"].map(|rate| format!("1,viaduct.decode,per_second,{rate}\n")).concat();
        assert_eq!(samples, format!("row,name,unit,sample\n{latencies}{rates}"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
        assert!(Report::check_writable(folder.path()).is_err());
        assert!(Report::check_writable(&folder.path().join("missing/bus.json")).is_err());
    }
}
