//! Code and memory of the codecs on microcontrollers. `make size-constrained` measures them, because that needs a compiler.

use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use crate::report::{Row, Section};

/// File with the figures, in the folder of the rivals.
const FILE: &str = "bin/codec-size.json";

/// Figures of all codecs.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CodecSizes {
    /// Name and version of the compiler.
    compiler: String,
    rows: Vec<CodecSize>,
}

/// A codec on a processor. All figures are in bytes, and those of the same program without a codec are subtracted.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodecSize {
    /// Name of the rows: `viaduct.codec`, or that of a rival.
    name: String,
    /// Name for the table.
    codec: String,
    processor: String,
    /// Rust's name of the target.
    target: String,
    code: u64,
    constants: u64,
    /// RAM that is allocated at the start.
    #[serde(rename = "static")]
    static_ram: u64,
    /// Highest use of the stack; `None` if it was not measured.
    stack: Option<u64>,
    /// Highest use of the stack by the whole program, with its buffers; `None` if it was not measured.
    stack_of_program: Option<u64>,
}

impl CodecSizes {
    /// Reads the figures from the folder of the rivals.
    ///
    /// # Errors
    /// The reason for which there are no figures, and the remedy.
    pub(super) fn read(rivals: &Path) -> Result<Self, String> {
        const REMEDY: &str = "`make size-constrained` measures them";
        let path = rivals.join(FILE);
        let text =
            std::fs::read_to_string(&path).map_err(|cause| format!("`{}`: {cause}; {REMEDY}", path.display()))?;
        serde_json::from_str(&text).map_err(|cause| format!("`{}`: {cause}; {REMEDY} again", path.display()))
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        self.rows.iter().flat_map(|size| size.rows(&self.compiler))
    }

    pub(super) fn section(&self) -> Section {
        let rows = self.rows.iter().map(|size| {
            let figures = size.figures().map(|(_, bytes)| bytes.map_or_else(String::new, |bytes| bytes.to_string()));
            [size.codec.clone(), size.processor.clone()].into_iter().chain(figures).collect()
        });
        let columns = ["codec", "processor", "code", "constants", "static RAM", "stack", "stack of the program"]
            .map(str::to_owned);
        Section {
            title: "Code and memory of the codecs on microcontrollers, bytes".to_owned(),
            columns: columns.to_vec(),
            words: 2,
            rows: rows.collect(),
            about: format!(
                "A robot that publishes, built by {} for small code, minus the same program without a codec. The stack is the highest use in QEMU; that of \
                 the program contains two buffers of 256 octets. Measured by `make size-constrained`, possibly from another commit.",
                self.compiler
            ),
        }
    }
}

impl CodecSize {
    fn figures(&self) -> [(&'static str, Option<u64>); 5] {
        [
            ("code", Some(self.code)),
            ("constants", Some(self.constants)),
            ("static_ram", Some(self.static_ram)),
            ("stack", self.stack),
            ("stack_of_program", self.stack_of_program),
        ]
    }

    fn rows(&self, compiler: &str) -> impl Iterator<Item = Row> {
        self.figures().into_iter().filter_map(move |(what, value)| {
            let params = json!({
                "codec": self.codec, "what": what, "processor": self.processor, "target": self.target, "compiler": compiler,
            });
            value.map(|bytes| Row { n: 1, mean: Some(bytes as f64), ..Row::empty(&self.name, &params, "bytes") })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_script_writes() {
        let folder = tempfile::tempdir().unwrap();
        let missing = CodecSizes::read(folder.path()).unwrap_err();
        assert!(missing.contains("codec-size.json") && missing.contains("make size-constrained"), "{missing}");

        std::fs::create_dir(folder.path().join("bin")).unwrap();
        let text = r#"{"compiler":"rustc 1.95.0","rows":[
{"name":"viaduct.codec","codec":"CoAP","processor":"Cortex-M0","target":"thumbv6m-none-eabi","code":1136,"constants":16,"static":0,"stack":null,"stack_of_program":892}
]}"#;
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let sizes = CodecSizes::read(folder.path()).unwrap();
        assert_eq!(sizes.section().rows, [["CoAP", "Cortex-M0", "1136", "16", "0", "", "892"]]);
        let rows: Vec<_> = sizes.rows().map(|row| (row.params["what"].clone(), row.mean, row.unit)).collect();
        let expected = [("code", 1136.0), ("constants", 16.0), ("static_ram", 0.0), ("stack_of_program", 892.0)];
        assert_eq!(rows, expected.map(|(what, value)| (json!(what), Some(value), "bytes".to_owned())));
    }
}
