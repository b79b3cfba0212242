//! shape
use std::ops::Range;

pub struct Shape {
    pub size: Vec<u64>,
    pub raw: Vec<u64>,
    pub align: Vec<u64>,
    pub lo: Vec<u32>,
    pub hi: Vec<u32>,
    pub load: Vec<u64>,
    pub grain: u64,
    pub words: usize,
    members: Vec<u64>,
    overlaps: Vec<u64>,
}

impl Shape {
    pub fn new(list: &[(u64, u32, u32, u64)]) -> Shape {
        let n = list.len();
        let mut events: Vec<(u32, bool)> = Vec::new();
        for &(_, a, b, _) in list {
            events.push((a, true));
            events.push((b, false));
        }
        events.sort_unstable();
        // a section begins at a start that follows an end
        let mut starts: Vec<u32> = Vec::new();
        let mut ended = true;
        for &(t, start) in &events {
            if start && ended {
                starts.push(t);
            } else if start {
                *starts.last_mut().unwrap() = t;
            }
            ended = !start;
        }
        // section k is the instant starts[k]
        let lo: Vec<u32> = list.iter().map(|l| starts.partition_point(|&t| t < l.1) as u32).collect();
        let hi: Vec<u32> = list.iter().map(|l| starts.partition_point(|&t| t < l.2) as u32).collect();
        let grain = list.iter().fold(0, |g, l| gcd(g, l.3)).max(1);
        let size: Vec<u64> = list.iter().map(|l| l.0.next_multiple_of(grain)).collect();
        let words = n.div_ceil(64);
        let m = starts.len();
        let mut members = vec![0u64; m * words];
        let mut load = vec![0; m];
        let mut overlaps = vec![0u64; n * words];
        for b in 0..n {
            for s in lo[b]..hi[b] {
                members[s as usize * words + b / 64] |= 1 << (b % 64);
                load[s as usize] += size[b];
            }
            for d in 0..n {
                if b != d && lo[b] < hi[d] && lo[d] < hi[b] {
                    overlaps[b * words + d / 64] |= 1 << (d % 64);
                }
            }
        }
        Shape {
            size,
            raw: list.iter().map(|l| l.0).collect(),
            align: list.iter().map(|l| l.3).collect(),
            lo,
            hi,
            load,
            grain,
            words,
            members,
            overlaps,
        }
    }
    pub fn len(&self) -> usize {
        self.size.len()
    }
    pub fn sections(&self) -> usize {
        self.load.len()
    }
    pub fn span(&self, b: usize) -> Range<usize> {
        self.lo[b] as usize..self.hi[b] as usize
    }
    pub fn members(&self, s: usize) -> &[u64] {
        &self.members[s * self.words..(s + 1) * self.words]
    }
    pub fn overlap(&self, b: usize) -> &[u64] {
        &self.overlaps[b * self.words..(b + 1) * self.words]
    }
}
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
