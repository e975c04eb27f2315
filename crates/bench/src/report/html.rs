//! The report as one HTML page: tables, and charts that a script in the page draws. It loads nothing.

use serde_json::json;

use super::{Report, Section, table};
use crate::report::{Row, figure};

/// Template of the page, with placeholders for title and data.
const PAGE: &str = include_str!("page.html");

pub(super) fn page(report: &Report) -> String {
    let data = json!({
        "bench": report.bench,
        "machine": table::machine(report),
        "notes": report.notes,
        "sections": report.sections.iter().chain(&[all_rows(report)]).collect::<Vec<_>>(),
        "charts": report.charts,
    });
    // The data is inside a script element, which a "</" in a text would end.
    PAGE.replace("{{bench}}", &report.bench).replace("{{data}}", &data.to_string().replace('<', "\\u003c"))
}

/// Returns every row as in the JSON.
fn all_rows(report: &Report) -> Section {
    let columns = ["row", "conditions", "n", "lost", "min", "p50", "p99", "p99.9", "max", "mean", "sd"];
    Section {
        title: format!("All rows, {}", report.rows.first().map_or("us", |row| row.unit.as_str())),
        columns: columns.map(str::to_owned).to_vec(),
        words: 2,
        rows: report.rows.iter().map(cells).collect(),
        about: "no sample is removed; figures that a paper does not publish are empty".to_owned(),
    }
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.name.clone(), conditions(row), row.n.to_string()];
    cells.push(row.lost.map(|lost| lost.to_string()).unwrap_or_default());
    cells.extend([row.min, row.p50, row.p99, row.p999, row.max, row.mean, row.sd].map(figure));
    cells
}

/// Returns the parameters, the most varied first, without constant ones.
fn conditions(row: &Row) -> String {
    let nothing = |text: &str| matches!(text, "null" | "false" | "none" | "");
    let first = ["size", "measure", "fill", "mode", "cores", "policy"];
    let others =
        row.params.keys().map(String::as_str).filter(|key| !first.contains(key) && !table::IN_NOTES.contains(key));
    let param = |key: &str| {
        let text = table::param(key, row.params.get(key));
        if nothing(&text) {
            return None;
        }
        Some(if first.contains(&key) { text } else { format!("{key} {text}") })
    };
    first.into_iter().chain(others).filter_map(param).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::machine::Machine;
    use crate::report::{Chart, Line};

    fn report() -> Report {
        let line = Line { name: "viaduct".into(), kind: "ours".into(), points: vec![(1.0, 0.5), (3.0, 1.0)] };
        Report {
            bench: "bus".into(),
            commit: "0123".into(),
            machine: Machine { cpus: 2, kernel: "Linux".into(), load: 0.0, steal: 0.0, psi_cpu: None },
            rows: vec![Row::latencies(
                "viaduct",
                &json!({"size": 1024, "mode": "thread", "observer": false}),
                vec![3.0],
                1,
            )],
            notes: vec!["</script><b>{{data}}".into()],
            sections: vec![],
            charts: vec![Chart { title: "1 KB".into(), unit: "us".into(), lines: vec![line] }],
            sections_only: false,
        }
    }

    #[test]
    fn page_has_no_external_references() {
        let page = page(&report());
        for outside in ["http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.starts_with("<!doctype html>"));
    }

    #[test]
    fn page_embeds_the_data_unchanged() {
        let page = page(&report());
        let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["notes"][0], "</script><b>{{data}}");
        assert_eq!(data["charts"][0]["lines"][0]["points"], json!([[1.0, 0.5], [3.0, 1.0]]));
        let row = &data["sections"][0]["rows"][0];
        assert_eq!((&row[0], &row[1], &row[5]), (&json!("viaduct"), &json!("1 KB, thread"), &json!("3.00")));
    }
}
