//! Learning rates that change with the step.
//!
//! A schedule is made of ops on the step, so a traced function computes the rate anew at each call, without being traced again.

use std::f64::consts::PI;
use std::fmt::Debug;
use std::sync::Arc;
use taut_core::ops::binary::{
    add, div, equal, greater_equal, less, less_equal, maximum, minimum, mul, pow, sub, where_,
};
use taut_core::ops::unary::{ceil, cos, floor, log};
use taut_core::{DType, Error, Result, Tensor};

/// A learning rate that depends on the step.
pub trait Schedule: Debug + Send + Sync + 'static {
    /// The rate after this many steps. Both are single `float64`s; no values are read.
    fn rate(&self, step: &Tensor) -> Result<Tensor>;

    /// Refuses settings that make no sense.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The rate after this many steps, as a number.
    ///
    /// ```
    /// use taut_nn::schedules::{ExponentialDecay, Schedule};
    /// let schedule = ExponentialDecay { initial: 0.1, steps: 10.0, decay: 0.5, staircase: false };
    /// assert!((schedule.at(20)? - 0.025).abs() < 1e-12);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    fn at(&self, step: u64) -> Result<f64> {
        self.check()?;
        self.rate(&Tensor::constant(step as f64, DType::F64)?)?.item()
    }
}

/// A learning rate: a number, which can be set later on, or a schedule.
#[derive(Clone, Debug)]
pub enum Rate {
    /// This one, until another is set.
    Fixed(f64),
    /// What a schedule says.
    Scheduled(Arc<dyn Schedule>),
}

impl From<f64> for Rate {
    fn from(rate: f64) -> Rate {
        Rate::Fixed(rate)
    }
}

impl<S: Schedule> From<S> for Rate {
    fn from(schedule: S) -> Rate {
        Rate::Scheduled(Arc::new(schedule))
    }
}

impl Rate {
    /// Refuses a rate that makes no sense.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Rate::Fixed(rate) => check_rate("the learning rate", *rate),
            Rate::Scheduled(schedule) => schedule.check(),
        }
    }
}

/// Refuses a number that is no learning rate.
pub(crate) fn check_rate(what: &str, rate: f64) -> Result<()> {
    if rate.is_finite() && rate >= 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("{what} is {rate}")).help("it must be finite, and zero or more"))
}

/// Refuses a number of steps that nothing can be divided by.
fn check_steps(what: &str, steps: f64) -> Result<()> {
    if steps.is_finite() && steps > 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("{what} is {steps}")).help("it must be finite, and more than zero"))
}

/// Refuses a setting that is not a finite number.
fn check_finite(what: &str, value: f64) -> Result<()> {
    if value.is_finite() { Ok(()) } else { Err(Error::value(format!("{what} is {value}"))) }
}

fn number(value: f64) -> Result<Tensor> {
    Tensor::constant(value, DType::F64)
}

/// The same rate at all steps. A plain number is one that can be set later on; this one cannot.
#[derive(Clone, Debug)]
pub struct Constant(pub f64);

impl Schedule for Constant {
    fn rate(&self, _step: &Tensor) -> Result<Tensor> {
        number(self.0)
    }

    fn check(&self) -> Result<()> {
        check_rate("the learning rate", self.0)
    }
}

/// `initial * decay^(step / steps)`.
#[derive(Clone, Debug)]
pub struct ExponentialDecay {
    /// The first rate.
    pub initial: f64,
    /// After how many steps the rate is `decay` of what it was.
    pub steps: f64,
    /// What becomes of the rate in that time.
    pub decay: f64,
    /// Whether it changes only once in that time.
    pub staircase: bool,
}

impl Schedule for ExponentialDecay {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        mul(pow(self.decay, times(step, self.steps, self.staircase)?)?, self.initial)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("the decay", self.decay)?;
        check_steps("steps", self.steps)
    }
}

/// How many times `steps` steps were made.
fn times(step: &Tensor, steps: f64, whole: bool) -> Result<Tensor> {
    let times = div(step, steps)?;
    if whole { floor(times) } else { Ok(times) }
}

/// One rate up to and including a step, then the next one.
#[derive(Clone, Debug)]
pub struct PiecewiseConstant {
    /// The last step of each rate but the last one, ascending.
    pub boundaries: Vec<f64>,
    /// The rates: one more than boundaries.
    pub rates: Vec<f64>,
}

impl Schedule for PiecewiseConstant {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        let last = number(self.rates.last().copied().unwrap_or(0.0))?;
        let earlier = self.boundaries.iter().zip(&self.rates).rev();
        earlier
            .into_iter()
            .try_fold(last, |later, (&boundary, &rate)| where_(less_equal(step, boundary)?, rate, later))
    }

    fn check(&self) -> Result<()> {
        let (boundaries, rates) = (self.boundaries.len(), self.rates.len());
        if boundaries + 1 != rates {
            let message = format!("{boundaries} boundaries and {rates} rates");
            return Err(Error::value(message).help("give one more rate than boundaries"));
        }
        self.boundaries.iter().try_for_each(|&boundary| check_finite("a boundary", boundary))?;
        if let Some([one, next]) = self.boundaries.array_windows().find(|[one, next]| one >= next) {
            let message = format!("the boundaries {one} and {next} do not ascend");
            return Err(Error::value(message));
        }
        self.rates.iter().try_for_each(|&rate| check_rate("a rate", rate))
    }
}

/// From one rate to another along a power of the time that is left.
#[derive(Clone, Debug)]
pub struct PolynomialDecay {
    /// The first rate.
    pub initial: f64,
    /// After how many steps the last rate is reached.
    pub steps: f64,
    /// The last rate.
    pub end: f64,
    /// The power: one for a straight line.
    pub power: f64,
    /// Whether it begins again, at a higher rate and with more time, whenever the end is reached.
    pub cycle: bool,
}

impl Schedule for PolynomialDecay {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        let part = if self.cycle {
            let rounds = where_(equal(step, 0.0)?, 1.0, ceil(div(step, self.steps)?)?)?;
            div(step, mul(rounds, self.steps)?)?
        } else {
            div(minimum(step, self.steps)?, self.steps)?
        };
        add(mul(pow(sub(1.0, part)?, self.power)?, self.initial - self.end)?, self.end)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("the last rate", self.end)?;
        check_rate("the power", self.power)?;
        check_steps("steps", self.steps)
    }
}

/// `initial / (1 + decay * step / steps)`.
#[derive(Clone, Debug)]
pub struct InverseTimeDecay {
    /// The first rate.
    pub initial: f64,
    /// The unit of time, in steps.
    pub steps: f64,
    /// How fast the rate falls per unit of time.
    pub decay: f64,
    /// Whether it changes only once per unit of time.
    pub staircase: bool,
}

impl Schedule for InverseTimeDecay {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        div(self.initial, add(mul(times(step, self.steps, self.staircase)?, self.decay)?, 1.0)?)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("the decay", self.decay)?;
        check_steps("steps", self.steps)
    }
}

/// Half a cosine from the first rate down to a part of it; perhaps a straight line up to it before.
#[derive(Clone, Debug)]
pub struct CosineDecay {
    /// The first rate.
    pub initial: f64,
    /// How many steps the cosine takes.
    pub steps: f64,
    /// The last rate, as a part of the one where the cosine begins.
    pub alpha: f64,
    /// The rate that is reached by a straight line in this many steps first, and where the cosine then begins.
    pub warmup: Option<(f64, f64)>,
}

impl Default for CosineDecay {
    fn default() -> CosineDecay {
        CosineDecay { initial: 0.001, steps: 1000.0, alpha: 0.0, warmup: None }
    }
}

/// Half a cosine, from one at zero to `alpha` at one.
fn half_cosine(part: Tensor, alpha: f64) -> Result<Tensor> {
    let cosine = mul(add(cos(mul(part, PI)?)?, 1.0)?, 0.5)?;
    add(mul(cosine, 1.0 - alpha)?, alpha)
}

impl Schedule for CosineDecay {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        let Some((target, steps)) = self.warmup else {
            let part = div(minimum(step, self.steps)?, self.steps)?;
            return mul(half_cosine(part, self.alpha)?, self.initial);
        };
        let part = div(minimum(sub(step, steps)?, self.steps)?, self.steps)?;
        let down = mul(half_cosine(part, self.alpha)?, target)?;
        if steps == 0.0 {
            return Ok(down);
        }
        let up = add(mul(div(step, steps)?, target - self.initial)?, self.initial)?;
        where_(less(step, steps)?, up, down)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("alpha", self.alpha)?;
        check_steps("steps", self.steps)?;
        let Some((target, steps)) = self.warmup else { return Ok(()) };
        check_rate("the rate to warm up to", target)?;
        check_rate("the number of warm-up steps", steps)
    }
}

/// Half cosines that begin again and again, each longer and lower than the one before.
#[derive(Clone, Debug)]
pub struct CosineDecayRestarts {
    /// The first rate.
    pub initial: f64,
    /// How many steps the first cosine takes.
    pub first_steps: f64,
    /// How many times longer each one is than the one before: one or more.
    pub longer: f64,
    /// Where each one begins, as a part of where the one before did.
    pub lower: f64,
    /// The last rate of a cosine, as a part of the first rate.
    pub alpha: f64,
}

impl Default for CosineDecayRestarts {
    fn default() -> CosineDecayRestarts {
        CosineDecayRestarts { initial: 0.001, first_steps: 1000.0, longer: 2.0, lower: 1.0, alpha: 0.0 }
    }
}

impl Schedule for CosineDecayRestarts {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        let time = div(step, self.first_steps)?;
        let (round, part) = if self.longer == 1.0 {
            let round = floor(&time)?;
            let part = sub(time, &round)?;
            (round, part)
        } else {
            // Round r begins at (longer^r - 1) / (longer - 1), in units of the first one.
            let grown = add(mul(&time, self.longer - 1.0)?, 1.0)?;
            let round = floor(div(log(&grown)?, self.longer.ln())?)?;
            // The quotient of logarithms may miss a whole number by a rounding error, either way.
            let late = greater_equal(&grown, pow(self.longer, add(&round, 1.0)?)?)?;
            let round = where_(late, add(&round, 1.0)?, round)?;
            let early = less(grown, pow(self.longer, &round)?)?;
            let round = where_(early, sub(&round, 1.0)?, round)?;
            let length = pow(self.longer, &round)?;
            let begin = div(sub(&length, 1.0)?, self.longer - 1.0)?;
            (round, div(sub(time, begin)?, length)?)
        };
        let height = pow(self.lower, round)?;
        let cosine = mul(mul(add(cos(mul(part, PI)?)?, 1.0)?, 0.5)?, height)?;
        mul(add(mul(cosine, 1.0 - self.alpha)?, self.alpha)?, self.initial)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("lower", self.lower)?;
        check_rate("alpha", self.alpha)?;
        check_steps("first_steps", self.first_steps)?;
        if !self.longer.is_finite() || self.longer < 1.0 {
            return Err(Error::value(format!("longer is {}", self.longer)).help("it must be one or more"));
        }
        Ok(())
    }
}

/// A straight line from zero (or `from`) up to where another schedule begins, and then that schedule.
#[derive(Clone, Debug)]
pub struct Warmup {
    /// The first rate.
    pub from: f64,
    /// How many steps the line takes.
    pub steps: f64,
    /// What comes then, from its own beginning.
    pub then: Arc<dyn Schedule>,
}

impl Warmup {
    /// A line of this many steps from zero to where `then` begins.
    pub fn new(steps: u64, then: impl Schedule) -> Warmup {
        Warmup { from: 0.0, steps: steps as f64, then: Arc::new(then) }
    }
}

impl Schedule for Warmup {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        let target = self.then.rate(&number(0.0)?)?;
        let up = add(mul(sub(target, self.from)?, div(step, self.steps)?)?, self.from)?;
        // Both are computed, whichever counts: `then` is never asked for what was before its beginning.
        let later = self.then.rate(&maximum(sub(step, self.steps)?, 0.0)?)?;
        where_(less(step, self.steps)?, up, later)
    }

    fn check(&self) -> Result<()> {
        check_rate("the first rate", self.from)?;
        check_steps("the number of warm-up steps", self.steps)?;
        self.then.check()
    }
}
