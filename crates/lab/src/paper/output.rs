//! Tables and pictures of an artifact, as files.

use std::path::PathBuf;

use serde::Serialize;
use stlf_figure::Figure;

use super::spec::Spec;
use super::{Artifact, Made};
use crate::{Error, Folder};

/// A figure or table that is being made, with the files that it has so far.
pub(super) struct Output<'a> {
    artifact: Artifact,
    folder: &'a Folder,
    files: Vec<PathBuf>,
}

impl<'a> Output<'a> {
    pub(super) fn new(artifact: Artifact, folder: &'a Folder) -> Output<'a> {
        Output { artifact, folder, files: Vec::new() }
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.folder.write(name, bytes)?;
        self.files.push(self.folder.file(name));
        Ok(())
    }

    /// Rows, as CSV. A part is named where there are several.
    pub(super) fn rows<R: Serialize>(&mut self, part: &str, rows: &[R]) -> Result<(), Error> {
        let dash = if part.is_empty() { "" } else { "-" };
        let name = format!("{}{dash}{part}.csv", self.artifact.name());
        self.folder.write_csv(&name, rows)?;
        self.files.push(self.folder.file(&name));
        Ok(())
    }

    /// Writes the figure as SVG.
    pub(super) fn figure(&mut self, figure: &Figure) -> Result<(), Error> {
        let name = self.artifact.name();
        self.write(&format!("{name}.svg"), figure.to_svg().as_bytes())
    }

    /// Writes the table as Markdown and LaTeX.
    pub(super) fn table(&mut self, table: &Table) -> Result<(), Error> {
        let name = self.artifact.name();
        self.write(&format!("{name}.md"), table.markdown().as_bytes())?;
        self.write(&format!("{name}.tex"), table.latex().as_bytes())
    }

    /// Returns everything that was made, with a table and a note.
    pub(super) fn made(self, spec: &Spec, table: &Table, note: String) -> Made {
        let paper = spec.paper.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        let title = format!("{}{paper}", spec.title);
        Made { artifact: self.artifact, title, files: self.files, table: table.markdown(), note }
    }
}

/// Sentences and numbers in rows under a head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new<'h>(head: impl IntoIterator<Item = &'h str>) -> Table {
        Table { head: head.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = (0..self.head.len())
            .map(|column| if column == 0 { "---".to_owned() } else { "---:".to_owned() })
            .collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}{}{rows}", line(&self.head), line(&rule))
    }

    fn latex(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| latex(cell)).collect();
            format!("  {} \\\\\n", cells.join(" & "))
        };
        let columns = format!("l{}", "r".repeat(self.head.len().saturating_sub(1)));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!(
            "\\begin{{tabular}}{{{columns}}}\n  \\toprule\n{}  \\midrule\n{rows}  \\bottomrule\n\\end{{tabular}}\n",
            line(&self.head)
        )
    }
}

/// Returns a text as LaTeX writes it.
fn latex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '%' | '&' | '#' | '_' | '$' => out.extend(['\\', c]),
            'α' => out.push_str("$\\alpha$"),
            'ψ' => out.push_str("$\\psi$"),
            'φ' => out.push_str("$\\phi$"),
            '±' => out.push_str("$\\pm$"),
            '−' => out.push_str("$-$"),
            '–' => out.push_str("--"),
            c => out.push(c),
        }
    }
    out
}

/// Returns a share as a percentage with one decimal, without the sign.
pub(super) fn percent(share: f64) -> String {
    // Zero has no sign.
    match format!("{:.1}", 100.0 * share) {
        zero if zero == "-0.0" => "0.0".to_owned(),
        number => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_both_ways() {
        let mut table = Table::new(["method", "accuracy, %"]);
        table.row(["ψ-FedAvg".to_owned(), "71.3 ± 2.0".to_owned()]);
        assert_eq!(
            table.markdown(),
            "| method | accuracy, % |\n| --- | ---: |\n| ψ-FedAvg | 71.3 ± 2.0 |\n"
        );
        let latex = table.latex();
        assert!(latex.contains("\\begin{tabular}{lr}"), "{latex}");
        assert!(latex.contains("  $\\psi$-FedAvg & 71.3 $\\pm$ 2.0 \\\\"), "{latex}");
        assert!(latex.contains("accuracy, \\%"), "{latex}");
    }
}
