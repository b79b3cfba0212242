//! The report: one self-contained HTML page.

mod budget;
mod data;

use crate::plan_summary::PlanSummary;
use crate::timeline::Timeline;
use std::path::Path;
use std::sync::Arc;
use taut_core::{Error, ErrorKind, Result};
use taut_function::{MemoryBudget, MemoryFrontier};
use taut_plan::Program;

/// A page about a recording: memory over time, plans, time per op.
///
/// It is one HTML file without references to others, which can be opened from disk. `#at=peak`, `#at=1234us` or `#step=57`
/// in its URL selects that moment, or that step of the plan.
///
/// ```
/// use taut_core::{DType, Spec, trace};
/// use taut_plan::Program;
/// use taut_profile::ProfileReport;
///
/// let graph = trace(&[Spec::new(DType::F32, [256])], |x| Ok(vec![((&x[0] * 2.0)? + 1.0)?]))?.graph;
/// let html = ProfileReport::new("a chain")
///     .figure("samples per second", "12,000")
///     .history(&["epoch", "loss", "test loss"], &[vec![1.0, 0.9, 1.0], vec![2.0, 0.4, 0.5]])
///     .plan("chain", &Program::new(&graph)?)
///     .note("Made for the documentation.")
///     .to_html();
/// assert!(html.contains("a chain"));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct ProfileReport<'a> {
    title: String,
    timeline: Option<&'a Timeline>,
    plans: Vec<(String, Arc<PlanSummary>)>,
    notes: Vec<String>,
    figures: Vec<(String, String)>,
    columns: Vec<String>,
    rows: Vec<Vec<f64>>,
    budget: Option<budget::BudgetChart>,
}

impl<'a> ProfileReport<'a> {
    /// An empty page with this title.
    pub fn new(title: impl Into<String>) -> ProfileReport<'a> {
        ProfileReport { title: title.into(), ..ProfileReport::default() }
    }

    /// Shows a recording: memory over time, time per op, planned against measured, and the plans of what ran.
    pub fn timeline(mut self, timeline: &'a Timeline) -> ProfileReport<'a> {
        self.timeline = Some(timeline);
        self
    }

    /// Shows a plan under a name. If the program is part of the recording, that is its name there, too.
    pub fn plan(mut self, name: impl Into<String>, program: &Program) -> ProfileReport<'a> {
        self.plans.push((name.into(), Arc::new(PlanSummary::new(program))));
        self
    }

    /// Shows the plans among which a memory budget chooses, and the one that it chose.
    pub fn frontier(
        mut self,
        frontier: &MemoryFrontier,
        chosen: Option<MemoryBudget>,
    ) -> Result<ProfileReport<'a>> {
        self.budget = Some(budget::BudgetChart::new(frontier, chosen)?);
        Ok(self)
    }

    /// Adds a line of text.
    pub fn note(mut self, note: impl Into<String>) -> ProfileReport<'a> {
        self.notes.push(note.into());
        self
    }

    /// Adds a figure to those at the head of the page.
    pub fn figure(mut self, label: impl Into<String>, value: impl Into<String>) -> ProfileReport<'a> {
        self.figures.push((label.into(), value.into()));
        self
    }

    /// Adds charts: the first column is the x axis, the others are curves. Columns whose names end with the same word
    /// (`loss`, `test loss`) share a chart. Rows may be short; values that are not finite are left out.
    pub fn history(mut self, columns: &[&str], rows: &[Vec<f64>]) -> ProfileReport<'a> {
        self.columns = columns.iter().map(|&column| column.to_owned()).collect();
        self.rows = rows.to_vec();
        self
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let title = escaped(&self.title);
        let style = include_str!("page/page.css");
        let scripts = [
            include_str!("page/data.js"),
            include_str!("page/memory.js"),
            include_str!("page/budget.js"),
            include_str!("page/plan.js"),
            include_str!("page/times.js"),
            include_str!("page/page.js"),
        ];
        let script = scripts.join("\n");
        // Inside a script element, only `<` could end it or begin a comment.
        let data = data::of(self).replace('<', "\\u003c");
        let body = include_str!("page/body.html");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\
             <script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>\n\"use strict\";\n{script}</script>\n</body>\n</html>\n"
        )
    }

    /// Writes the page to a file, and creates its folder if it does not exist.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let at = taut_memory::Location::caller();
        let path = path.as_ref();
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display())).at(at)
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(path, self.to_html()).map_err(failed)
    }
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
