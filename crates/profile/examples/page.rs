//! Writes the page of a small training run, and the numbers it must show: `page <folder> [epochs]`.
//!
//! The browser test opens `page.html` and compares it with the numbers of `expected.txt`.

use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::binary::{less, squared_difference};
use taut_core::ops::contract::matmul;
use taut_core::ops::random::Generator;
use taut_core::ops::reduce::mean;
use taut_core::ops::shape::slice;
use taut_core::ops::unary::{cast, relu, tanh};
use taut_core::{DType, Result, Tensor, s};
use taut_function::function;
use taut_profile::{MemoryKind, ProfileReport, mark, record};

const SAMPLES: usize = 512;
const BATCH: usize = 64;

/// Two layers, their gradients, and their updates.
fn train_step((w1, b1, w2): (&Variable, &Variable, &Variable), x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let tape = GradientTape::new();
    let hidden = relu((matmul(x, w1)? + b1.read())?)?;
    let predicted = tanh(matmul(&hidden, w2)?)?;
    let loss = mean(squared_difference(&predicted, y)?, None, false)?;
    for (variable, gradient) in [w1, b1, w2].into_iter().zip(tape.gradient(&loss, &[w1, b1, w2])?) {
        if let Some(gradient) = gradient {
            variable.assign_sub((gradient.dense()? * 0.5f32)?)?;
        }
    }
    Ok(loss)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = std::path::PathBuf::from(arguments.next().unwrap_or_else(|| "target/page".into()));
    let epochs: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(6);

    let ((history, program, model), timeline) = record(|| {
        let random = Generator::from_seed(7);
        let x = random.normal([SAMPLES, 128], 0.0, 1.0, DType::F32)?;
        let teacher = random.normal([128, 8], 0.0, 0.2, DType::F32)?;
        let y = tanh(matmul(&x, &teacher)?)?;
        let w1 = Variable::new(random.normal([128, 256], 0.0, 0.09, DType::F32)?)?;
        let b1 = Variable::new(Tensor::from_vec(vec![0.0f32; 256], [256])?)?;
        let w2 = Variable::new(random.normal([256, 8], 0.0, 0.06, DType::F32)?)?;
        let step = {
            let (w1, b1, w2) = (w1.clone(), b1.clone(), w2.clone());
            function(move |(x, y): &(Tensor, Tensor)| train_step((&w1, &b1, &w2), x, y))
        };
        let mut history = Vec::new();
        let (mut program, mut frontier) = (None, None);
        for epoch in 1..=epochs {
            mark(format!("epoch {epoch}"));
            let mut total = 0.0;
            for batch in 0..SAMPLES / BATCH {
                let rows = (batch * BATCH) as isize..((batch + 1) * BATCH) as isize;
                let (x, y) = (slice(&x, &s![rows.clone()])?, slice(&y, &s![rows])?);
                if program.is_none() {
                    program = Some(step.plan((&x, &y))?);
                    frontier = Some(step.frontier((&x, &y))?);
                }
                total += f64::from(step.call((&x, &y))?.item::<f32>()?);
            }
            let hidden = relu((matmul(&x, &w1)? + b1.read())?)?;
            let guess = tanh(matmul(&hidden, &w2)?)?;
            let near = less(squared_difference(&guess, &y)?, 0.01f32)?;
            let accuracy = mean(cast(near, DType::F32)?, None, false)?.item::<f32>()?;
            history.push(vec![epoch as f64, total / (SAMPLES / BATCH) as f64, f64::from(accuracy)]);
        }
        Ok::<_, taut_core::Error>((history, program.zip(frontier), (w1, b1, w2, step)))
    })
    .and_then(|(outcome, timeline)| Ok((outcome?, timeline)))?;

    drop(model);

    let seconds = timeline.duration().as_secs_f64();
    let mut report = ProfileReport::new(
        "A small network learns another's </script><script>alert(1)</script> & \"answers\"",
    )
    .timeline(&timeline)
    .figure("Samples per second", format!("{:.0}", (SAMPLES * epochs) as f64 / seconds))
    .history(&["epoch", "loss", "accuracy"], &history)
    .note("Two layers of 256 and 8 units, 512 samples, batches of 64, plain gradient descent.");
    let Some((program, frontier)) = program else { return Ok(()) };
    report = report.plan("train step", &program);
    let smallest = frontier.smallest().bytes;
    report = report.frontier(&frontier, Some(smallest.into()))?;
    report.write(folder.join("page.html"))?;
    // Pages with less on them.
    ProfileReport::new("nothing").write(folder.join("nothing.html"))?;
    ProfileReport::new("a plan").plan("train step", &program).write(folder.join("plan.html"))?;
    let ((), idle) = record(|| ())?;
    ProfileReport::new("idle")
        .timeline(&idle)
        .history(&["epoch", "loss"], &[vec![1.0, f64::NAN]])
        .write(folder.join("idle.html"))?;
    std::fs::write(folder.join("trace.json"), timeline.to_chrome_trace())?;

    let peak = timeline.peak();
    let alive = timeline.live_at(peak.at);
    let table = program.table();
    let is_shown = |home| matches!(home, taut_plan::Home::Arena(_) | taut_plan::Home::Output(_));
    let rectangles = table.rows.iter().filter(|row| row.bytes > 0 && is_shown(row.home)).count();
    // A moment in the middle of a program: the last step of the last run.
    let inside = timeline.calls().filter(|call| !call.is_run && call.depth == 1).last();
    let inside = inside.map_or(peak.at, |call| call.start);
    let inside_rows = timeline.live_at(inside);
    assert!(inside_rows.iter().any(|row| row.kind == MemoryKind::ArenaValues));
    let expected = [
        ("peak", peak.bytes.to_string()),
        ("alive", alive.len().to_string()),
        ("largest", alive.first().map_or(0, |row| row.bytes).to_string()),
        ("rectangles", rectangles.to_string()),
        ("steps", program.steps.len().to_string()),
        ("planned", program.peak_bytes().to_string()),
        ("inside", format!("{}ns", inside.as_nanos())),
        ("inside_bytes", inside_rows.iter().map(|row| row.bytes).sum::<usize>().to_string()),
        ("inside_alive", inside_rows.len().to_string()),
        ("ops", timeline.by_op().len().to_string()),
        ("budget_plans", frontier.rows().len().to_string()),
        ("budget", smallest.to_string()),
    ];
    let expected: Vec<String> = expected.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
    std::fs::write(folder.join("expected.txt"), expected.concat())?;
    println!(
        "{}: peak {} bytes, {} calls",
        folder.join("page.html").display(),
        peak.bytes,
        timeline.calls().count()
    );
    Ok(())
}
