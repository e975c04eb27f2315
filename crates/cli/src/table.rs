//! Tables for a terminal of 80 columns.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

/// A line below the header, and no other line.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Returns an empty table with these columns.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header);
    // The line below the header has a junction between two columns, which takes one more character.
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index + 1 == N { 0 } else { 1 }));
    }
    table
}

/// Returns a right-aligned cell.
pub(crate) fn number(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Returns the text, cut to a number of characters. An ellipsis replaces the characters that were cut off.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let mut start: String = text.chars().take(characters.saturating_sub(1)).collect();
    start.push('…');
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line() {
        let mut table = table(["topic", "per s"]);
        table.add_row([Cell::new("its/rx/cam"), number(7)]);
        table.add_row([Cell::new("its/rx/cpm"), number(50)]);
        let text = table.trim_fmt();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "topic       per s");
        assert!(lines[1].chars().all(|letter| letter == '─'), "{text}");
        assert_eq!(lines[2..], ["its/rx/cam      7", "its/rx/cpm     50"]);
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(cut("viaduct.its.V2xMessage", 22), "viaduct.its.V2xMessage");
        assert_eq!(cut("viaduct.its.V2xMessage", 18), "viaduct.its.V2xMe…");
    }
}
