#![allow(missing_docs, clippy::all, clippy::pedantic)]
use std::time::Instant;
use taut_plan::search::*;
use taut_plan::shape::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let which = &args[1];
    let limit: u64 = args[2].parse().unwrap();
    let restart: u64 = args[3].parse().unwrap();
    let mode: u32 = args[4].parse().unwrap();
    for c in which.chars() {
        let text = std::fs::read_to_string(format!("crates/plan/tests/minimalloc/{c}.1048576.csv")).unwrap();
        let list: Vec<(u64, u32, u32, u64)> = text.lines().skip(1).map(|l| {
            let v: Vec<u32> = l.split(',').map(|x| x.parse().unwrap()).collect();
            (v[3] as u64, v[1], v[2], 1)
        }).collect();
        let shape = Shape::new(&list);
        let mut res = vec![];
        let t = Instant::now();
        let mut search = Search::new(&shape, 1 << 20);
        search.mode = mode;
        let mut k = 0u64;
        let mut r = String::from("-");
        while search.steps < limit {
            let mut rng = k.wrapping_mul(0x9E3779B97F4A7C15) | 1;
            let key: Vec<u64> = (0..shape.len()).map(|b| {
                let len = (shape.hi[b] - shape.lo[b]) as u64;
                let time = (list[b].2 - list[b].1) as u64;
                let s = shape.size[b];
                let base = match k % 5 {
                    0 => len as f64,
                    1 => time as f64 * s as f64,
                    2 => time as f64,
                    3 => len as f64 * s as f64,
                    _ => s as f64,
                };
                rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
                let noise = if k < 5 { 1.0 } else { 1.0 + 0.3 * ((rng >> 40) as f64 / (1u64 << 24) as f64) };
                (base * noise * 1024.0) as u64
            }).collect();
            match search.run(&key, restart) {
                Outcome::Found(off) => {
                    let ok = (0..list.len()).all(|i| off[i] + list[i].0 <= 1 << 20 && (0..i).all(|j| list[i].1 >= list[j].2 || list[j].1 >= list[i].2 || off[i] >= off[j] + list[j].0 || off[j] >= off[i] + list[i].0));
                    r = format!("found by {k} ok {ok}");
                    break;
                }
                Outcome::Impossible => { r = "impossible".into(); break; }
                Outcome::OutOfSteps => {}
            }
            res.push(search.maxdepth);
            search.maxdepth = 0;
            k += 1;
        }
        println!("{c} n {} m {} steps {} {:.2?} {r} {:?}", shape.len(), shape.sections(), search.steps, t.elapsed(), &res[..res.len().min(12)]);
    }
}
