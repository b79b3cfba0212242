//! The page: one file with the numbers of the timeline, safe for any text.

mod common;

use common::{check_sums, exclusive, network, ones};
use serde_json::Value;
use taut_core::{DType, Spec, trace};
use taut_function::function;
use taut_memory::testing::ledger_check;
use taut_plan::{Home, Program};
use taut_profile::{MemoryKind, ProfileReport, mark, record};

const EVIL: &str = "</script><script>alert(1)</script><!-- & \"quoted\" 'x'";

fn data(html: &str) -> Value {
    let start = html.split("id=\"data\">").nth(1).unwrap();
    serde_json::from_str(start.split("</script>").next().unwrap()).unwrap()
}

#[test]
fn names_are_escaped() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let ((), timeline) = record(|| mark(EVIL)).unwrap();
    let graph = trace(&[Spec::new(DType::F32, [4])], |x| Ok(vec![(&x[0] * 2.0)?])).unwrap().graph;
    let html = ProfileReport::new(EVIL)
        .timeline(&timeline)
        .plan(EVIL, &Program::new(&graph).unwrap())
        .note(EVIL)
        .figure(EVIL, EVIL)
        .history(&["epoch", EVIL], &[vec![1.0, f64::NAN], vec![2.0, f64::INFINITY], vec![3.0]])
        .to_html();
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(!html.contains("<!--"));
    let data = data(&html);
    assert_eq!(data["title"], EVIL);
    assert_eq!(data["plans"][0]["name"], EVIL);
    assert_eq!(data["memory"]["marks"][0][1], EVIL);
    assert_eq!(data["rows"][0][1], Value::Null);
}

#[test]
fn the_page_is_self_contained() {
    let _ledger = ledger_check();
    let html = ProfileReport::new("nothing").to_html();
    let known = html.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "//cdn", "src=", "@import", "url("] {
        assert!(!known.contains(outside), "{outside}");
    }
    assert_eq!(data(&html)["memory"], Value::Null);
}

#[test]
fn the_pages_buffers_are_the_timelines() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let step = function(network);
    let x = ones(&[32, 64]);
    let program = step.plan(&x).unwrap();
    let (result, timeline) = record(|| {
        let y = step.call(&x).unwrap();
        step.call(&y).unwrap()
    })
    .unwrap();
    check_sums(&timeline);
    let data = data(&ProfileReport::new("numbers").timeline(&timeline).plan("network", &program).to_html());

    let plans = data["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 1, "the plan that ran is the plan that was named");
    let plan = &plans[0];
    assert_eq!((&plan["name"], &plan["runs"], &plan["exact"]), (&"network".into(), &2.into(), &true.into()));
    assert_eq!(plan["peak"], program.peak_bytes());
    let rows = program.table().rows;
    let is_shown = |home: Home| matches!(home, Home::Arena(_) | Home::Output(_));
    let shown = rows.iter().filter(|row| row.bytes > 0 && is_shown(row.home)).count();
    assert_eq!(plan["buffers"].as_array().unwrap().len(), shown);
    for buffer in plan["buffers"].as_array().unwrap() {
        let end = buffer[0].as_u64().unwrap() + buffer[1].as_u64().unwrap();
        assert!(end as usize <= program.peak_bytes());
    }

    // The bytes live at the end, computed from the page's lists alone.
    let memory = &data["memory"];
    let numbers = |name: &str| -> Vec<i64> {
        memory[name].as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
    };
    let (life, bytes) = (numbers("life"), numbers("bytes"));
    let left: i64 = life.iter().zip(&bytes).filter(|(life, _)| **life < 0).map(|(_, bytes)| bytes).sum();
    assert_eq!(left as usize, timeline.live_at_end());
    let kinds: Vec<&str> =
        data["kinds"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
    assert_eq!(kinds, MemoryKind::ALL.map(MemoryKind::name));
    let runs = memory["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["steps"].as_array().unwrap().len() == program.steps.len()));
    drop(result);
}

#[test]
fn a_long_recording_stays_a_small_page() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let ((), timeline) = record(|| {
        for _ in 0..70_000 {
            drop(ones(&[2]));
        }
    })
    .unwrap();
    let html = ProfileReport::new("long").timeline(&timeline).to_html();
    assert!(html.len() < 3 << 20, "{} bytes", html.len());
    let data = data(&html);
    assert!(data["warnings"][0].as_str().unwrap().starts_with("Memory is shown for the first"));
    assert!(data["memory"]["until"].as_u64() < data["memory"]["duration"].as_u64());
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let _ledger = ledger_check();
    let folder = std::env::temp_dir().join(format!("taut-report-{}", std::process::id()));
    ProfileReport::new("fine").write(folder.join("deep/page.html")).unwrap();
    let error = ProfileReport::new("not fine").write(folder.join("deep")).unwrap_err();
    assert_eq!(error.kind(), taut_core::ErrorKind::Io);
    assert!(error.location().unwrap().file().ends_with("report.rs"));
    std::fs::remove_dir_all(folder).unwrap();
}
