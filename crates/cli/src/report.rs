//! Profiles one more step of a run: its planned and measured peaks, and the report page.

use crate::Outcome;
use crate::session::Session;
use std::path::Path;
use taut::memory::Bytes;
use taut::profile::{self, ProfileReport};

/// Profiles a training step, compares it with its plan, and writes the page to `page`, if given.
pub fn profile_step(session: &Session, page: Option<&Path>) -> Outcome {
    let (x, y) = &session.batch;
    // Without a kept arena, the step allocates all that was planned.
    session.trainer.release();
    let (loss, timeline) = profile::record(|| session.trainer.train_step(x, y))?;
    loss?;
    for run in timeline.planned() {
        println!(
            "training step: planned {} bytes, measured {} bytes: {}",
            run.planned,
            run.measured,
            if run.is_exact() { "equal" } else { "not equal" }
        );
    }
    let Some(path) = page else { return Ok(()) };
    let history = session.trainer.history();
    let names: Vec<&str> = history
        .epochs
        .first()
        .map_or(Vec::new(), |epoch| epoch.scores.iter().map(|(name, _)| name.as_str()).collect());
    let rows: Vec<Vec<f64>> = history
        .epochs
        .iter()
        .map(|epoch| {
            let scores = epoch.scores.iter().map(|&(_, value)| value);
            std::iter::once(epoch.number as f64).chain(scores).collect()
        })
        .collect();
    let (samples, seconds) = history
        .epochs
        .iter()
        .fold((0, 0.0), |(samples, seconds), epoch| (samples + epoch.samples, seconds + epoch.seconds));
    let mut report = ProfileReport::new(format!("Taut: {}", session.title))
        .timeline(&timeline)
        .plan("train step", &session.plan)
        .history(&[&["epoch"], &names[..]].concat(), &rows)
        .figure("samples per second", format!("{:.0}", samples as f64 / seconds.max(1e-9)));
    let state = session.trainer.optimizer().named_variables();
    let bytes = |variables: &[(String, taut::Variable)]| -> usize {
        variables.iter().map(|(_, variable)| variable.spec().bytes()).sum()
    };
    report = report
        .figure("variables", Bytes(bytes(&session.trainer.model().named_variables())).to_string())
        .figure("optimizer", Bytes(bytes(&state)).to_string())
        .note("One training step after the last epoch: forward, backward, update and metrics.");
    if let Some((budget, frontier)) = &session.budget {
        report = report.frontier(frontier, Some(*budget))?;
    }
    report.write(path)?;
    println!("memory and time of this step: open {} in a browser", path.display());
    Ok(())
}
