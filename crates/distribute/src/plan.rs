//! What a planned step means for a number of ranks: bytes, messages and time.

use crate::group::{Digest, Group};
use std::fmt;
use std::time::Duration;
use taut_core::{Error, ErrorKind, Result};
use taut_plan::Program;

/// A network between ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// The time of an empty message.
    pub latency: Duration,
    /// Bytes that a rank sends per second, while it receives as many.
    pub bandwidth: f64,
}

impl Network {
    /// Ethernet of 25 Gbit/s, with a latency of 20 µs.
    pub const ETHERNET_25G: Network = Network { latency: Duration::from_micros(20), bandwidth: 25e9 / 8.0 };
}

/// The memory and the messages of one rank in a planned step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankPlan {
    /// The number of ranks.
    pub ranks: usize,
    /// Bytes of the variables that a step updates: the model, and the optimizer's state.
    pub variable_bytes: usize,
    /// Bytes of the batch and of variables that are only read.
    pub input_bytes: usize,
    /// Bytes that the step allocates beside them.
    pub peak_bytes: usize,
    /// All of these, and constants.
    pub total_bytes: usize,
    /// Collectives of a step.
    pub collectives: usize,
    /// Messages that the busiest rank sends in a step.
    pub messages: u64,
    /// Bytes that the busiest rank sends in a step.
    pub sent_bytes: u64,
}

impl RankPlan {
    /// What a planned step means for a rank of `ranks`.
    pub fn new(program: &Program, ranks: usize) -> RankPlan {
        let collectives = program.collectives();
        let sum = |count: fn(&taut_core::Traffic) -> u64| {
            collectives.iter().map(|(_, traffic)| count(traffic)).fold(0, u64::saturating_add)
        };
        RankPlan {
            ranks,
            variable_bytes: program.variable_bytes(),
            input_bytes: program.input_bytes(),
            peak_bytes: program.peak_bytes(),
            total_bytes: program.total_bytes(),
            collectives: collectives.len(),
            messages: sum(|traffic| traffic.messages),
            sent_bytes: sum(|traffic| traffic.bytes),
        }
    }

    /// The time of the step's messages on a network: a latency per message, and the bytes by the bandwidth. Computation is not
    /// included.
    pub fn time(&self, network: &Network) -> Duration {
        let seconds =
            self.messages as f64 * network.latency.as_secs_f64() + self.sent_bytes as f64 / network.bandwidth;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl fmt::Display for RankPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes as f64 / 1048576.0;
        writeln!(f, "{} ranks, per rank:", self.ranks)?;
        writeln!(f, "  variables  {:>12.3} MiB", mib(self.variable_bytes))?;
        writeln!(f, "  inputs     {:>12.3} MiB", mib(self.input_bytes))?;
        writeln!(f, "  step       {:>12.3} MiB", mib(self.peak_bytes))?;
        writeln!(f, "  total      {:>12.3} MiB", mib(self.total_bytes))?;
        write!(
            f,
            "  sent       {:>12.3} MiB in {} messages of {} collectives",
            mib(usize::try_from(self.sent_bytes).unwrap_or(usize::MAX)),
            self.messages,
            self.collectives
        )
    }
}

/// Fails on every rank if the collectives of a planned step differ between ranks, before it runs.
pub(crate) fn check_same(program: &Program, group: &Group) -> Result<()> {
    let collectives = program.collectives();
    let hash = |(step, _): &(&taut_plan::ProgramStep, taut_core::Traffic)| {
        let mut digest = Digest::default();
        digest.bytes(step.name().as_bytes());
        for target in &step.targets {
            digest.bytes(target.spec.to_string().as_bytes());
        }
        digest.value()
    };
    let hashes: Vec<u64> = collectives.iter().map(hash).collect();
    let mut all = Digest::default();
    hashes.iter().for_each(|hash| all.word(*hash));
    let words = group.all_gather_words("the collectives of a step", &[hashes.len() as u64, all.value()])?;
    let own = [hashes.len() as u64, all.value()];
    if words.chunks_exact(2).all(|other| other == own) {
        return Ok(());
    }
    // All ranks see the difference, and look for the first one.
    let most = words.chunks_exact(2).map(|pair| pair[0]).max().unwrap_or(0) as usize;
    let mut padded = hashes.clone();
    padded.resize(most, 0);
    let lists = group.all_gather_words("the list of collectives", &padded)?;
    let first = (0..most).find(|&i| lists.iter().skip(i).step_by(most).any(|hash| *hash != padded[i]));
    let index = first.unwrap_or(0);
    let here = match collectives.get(index) {
        Some((step, _)) => {
            let specs =
                step.targets.iter().map(|target| target.spec.to_string()).collect::<Vec<_>>().join(", ");
            format!("{} {specs} at {}", step.name(), step.at)
        }
        None => "none".to_owned(),
    };
    let counts = words.chunks_exact(2).map(|pair| pair[0].to_string()).collect::<Vec<_>>().join(", ");
    let message = format!(
        "all ranks must plan the same collectives, got {counts} of them by rank; the first that differs is number {index}, here {here}"
    );
    Err(Error::new(ErrorKind::Unavailable, message)
        .help("build the same model, optimizer and batch size on every rank"))
}

impl Group {
    /// Fails on every rank if the collectives of a planned step differ between ranks: in number, order, types or shapes. Call it on
    /// all ranks before the first run.
    #[track_caller]
    pub fn check_same_plan(&self, program: &Program) -> Result<()> {
        let at = taut_memory::Location::caller();
        check_same(program, self).map_err(|error| error.at(at))
    }
}
