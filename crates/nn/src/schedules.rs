//! Learning-rate schedules.
//!
//! A schedule is written with ops on the step, so a traced function computes the rate at each call without a retrace.

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
    /// The rate after this many steps. Both are scalar `float64`s; no values are read.
    fn rate(&self, step: &Tensor) -> Result<Tensor>;

    /// Rejects invalid settings.
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

/// A learning rate: a number that can be changed later, or a schedule.
#[derive(Clone, Debug)]
pub enum LearningRate {
    /// A number, until another one is set.
    Fixed(f64),
    /// A schedule.
    Scheduled(Arc<dyn Schedule>),
}

impl From<f64> for LearningRate {
    fn from(rate: f64) -> LearningRate {
        LearningRate::Fixed(rate)
    }
}

impl<S: Schedule> From<S> for LearningRate {
    fn from(schedule: S) -> LearningRate {
        LearningRate::Scheduled(Arc::new(schedule))
    }
}

impl LearningRate {
    /// Rejects an invalid rate.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            LearningRate::Fixed(rate) => check_rate("the learning rate", *rate),
            LearningRate::Scheduled(schedule) => schedule.check(),
        }
    }
}

/// Rejects a number that is negative or not finite.
pub(crate) fn check_rate(what: &str, rate: f64) -> Result<()> {
    if rate.is_finite() && rate >= 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("{what} must be finite and >= 0, got {rate}")))
}

/// Rejects a number of steps that is not positive and finite.
fn check_steps(what: &str, steps: f64) -> Result<()> {
    if steps.is_finite() && steps > 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("{what} must be finite and > 0, got {steps}")))
}

/// Rejects a setting that is not finite.
fn check_finite(what: &str, value: f64) -> Result<()> {
    if value.is_finite() { Ok(()) } else { Err(Error::value(format!("{what} must be finite, got {value}"))) }
}

fn number(value: f64) -> Result<Tensor> {
    Tensor::constant(value, DType::F64)
}

/// The same rate at all steps. Unlike a plain number, it cannot be changed later.
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
    /// The number of steps in which the rate is multiplied by `decay`.
    pub steps: f64,
    /// The factor per `steps` steps.
    pub decay: f64,
    /// Whether the rate changes only every `steps` steps.
    pub staircase: bool,
}

impl Schedule for ExponentialDecay {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        mul(pow(self.decay, elapsed(step, self.steps, self.staircase)?)?, self.initial)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("the decay", self.decay)?;
        check_steps("steps", self.steps)
    }
}

/// `step / steps`, rounded down for a staircase.
fn elapsed(step: &Tensor, steps: f64, staircase: bool) -> Result<Tensor> {
    let elapsed = div(step, steps)?;
    if staircase { floor(elapsed) } else { Ok(elapsed) }
}

/// A constant rate up to and including each boundary.
#[derive(Clone, Debug)]
pub struct PiecewiseConstant {
    /// The last step of each rate except the last one, in ascending order.
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
            let message = format!(
                "expected one more rate than boundaries, got {rates} rates and {boundaries} boundaries"
            );
            return Err(Error::value(message));
        }
        self.boundaries.iter().try_for_each(|&boundary| check_finite("a boundary", boundary))?;
        if let Some([one, next]) = self.boundaries.array_windows().find(|[one, next]| one >= next) {
            let message = format!("boundaries must be in ascending order, got {one} before {next}");
            return Err(Error::value(message));
        }
        self.rates.iter().try_for_each(|&rate| check_rate("a rate", rate))
    }
}

/// Decay from one rate to another by a power of the remaining time.
#[derive(Clone, Debug)]
pub struct PolynomialDecay {
    /// The first rate.
    pub initial: f64,
    /// The number of steps until the last rate is reached.
    pub steps: f64,
    /// The last rate.
    pub end: f64,
    /// The power: 1 is linear.
    pub power: f64,
    /// Whether the decay restarts, over more steps, whenever the end is reached.
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
    /// The decay per unit of time.
    pub decay: f64,
    /// Whether the rate changes only once per unit of time.
    pub staircase: bool,
}

impl Schedule for InverseTimeDecay {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        div(self.initial, add(mul(elapsed(step, self.steps, self.staircase)?, self.decay)?, 1.0)?)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("the decay", self.decay)?;
        check_steps("steps", self.steps)
    }
}

/// Cosine decay, with an optional linear warm-up.
#[derive(Clone, Debug)]
pub struct CosineDecay {
    /// The first rate.
    pub initial: f64,
    /// The number of steps of the cosine.
    pub steps: f64,
    /// The last rate, as a fraction of the rate at the start of the cosine.
    pub alpha: f64,
    /// The target rate and the number of steps of a linear warm-up before the cosine.
    pub warmup: Option<(f64, f64)>,
}

impl Default for CosineDecay {
    fn default() -> CosineDecay {
        CosineDecay { initial: 0.001, steps: 1000.0, alpha: 0.0, warmup: None }
    }
}

/// Half a cosine period, from 1 at 0 to `alpha` at 1.
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
        check_rate("the warm-up target", target)?;
        check_rate("the number of warm-up steps", steps)
    }
}

/// Cosine decay with warm restarts.
#[derive(Clone, Debug)]
pub struct CosineDecayRestarts {
    /// The first rate.
    pub initial: f64,
    /// The number of steps of the first period.
    pub first_steps: f64,
    /// The factor of the length from one period to the next; at least 1.
    pub t_mul: f64,
    /// The factor of the initial rate from one period to the next.
    pub m_mul: f64,
    /// The last rate of a period, as a fraction of the first rate.
    pub alpha: f64,
}

impl Default for CosineDecayRestarts {
    fn default() -> CosineDecayRestarts {
        CosineDecayRestarts { initial: 0.001, first_steps: 1000.0, t_mul: 2.0, m_mul: 1.0, alpha: 0.0 }
    }
}

impl Schedule for CosineDecayRestarts {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        let time = div(step, self.first_steps)?;
        let (round, part) = if self.t_mul == 1.0 {
            let round = floor(&time)?;
            let part = sub(time, &round)?;
            (round, part)
        } else {
            // Period r starts at (t_mul^r - 1) / (t_mul - 1), in units of the first period.
            let grown = add(mul(&time, self.t_mul - 1.0)?, 1.0)?;
            let round = floor(div(log(&grown)?, self.t_mul.ln())?)?;
            // The quotient of logarithms may miss an integer by a rounding error in either direction.
            let late = greater_equal(&grown, pow(self.t_mul, add(&round, 1.0)?)?)?;
            let round = where_(late, add(&round, 1.0)?, round)?;
            let early = less(grown, pow(self.t_mul, &round)?)?;
            let round = where_(early, sub(&round, 1.0)?, round)?;
            let length = pow(self.t_mul, &round)?;
            let begin = div(sub(&length, 1.0)?, self.t_mul - 1.0)?;
            (round, div(sub(time, begin)?, length)?)
        };
        let height = pow(self.m_mul, round)?;
        let cosine = mul(mul(add(cos(mul(part, PI)?)?, 1.0)?, 0.5)?, height)?;
        mul(add(mul(cosine, 1.0 - self.alpha)?, self.alpha)?, self.initial)
    }

    fn check(&self) -> Result<()> {
        check_rate("the initial rate", self.initial)?;
        check_rate("m_mul", self.m_mul)?;
        check_rate("alpha", self.alpha)?;
        check_steps("first_steps", self.first_steps)?;
        if !self.t_mul.is_finite() || self.t_mul < 1.0 {
            return Err(Error::value(format!("t_mul must be finite and >= 1, got {}", self.t_mul)));
        }
        Ok(())
    }
}

/// A linear warm-up from `from` (zero by default) to the initial rate of another schedule, then that schedule.
#[derive(Clone, Debug)]
pub struct Warmup {
    /// The first rate.
    pub from: f64,
    /// The number of warm-up steps.
    pub steps: f64,
    /// The schedule after the warm-up, from its step 0.
    pub schedule: Arc<dyn Schedule>,
}

impl Warmup {
    /// A warm-up of this many steps from zero to the initial rate of `schedule`.
    pub fn new(steps: u64, schedule: impl Schedule) -> Warmup {
        Warmup { from: 0.0, steps: steps as f64, schedule: Arc::new(schedule) }
    }
}

impl Schedule for Warmup {
    fn rate(&self, step: &Tensor) -> Result<Tensor> {
        let target = self.schedule.rate(&number(0.0)?)?;
        let up = add(mul(sub(target, self.from)?, div(step, self.steps)?)?, self.from)?;
        // Both branches are computed, so the step passed to `schedule` is clamped at 0.
        let later = self.schedule.rate(&maximum(sub(step, self.steps)?, 0.0)?)?;
        where_(less(step, self.steps)?, up, later)
    }

    fn check(&self) -> Result<()> {
        check_rate("the first rate", self.from)?;
        check_steps("the number of warm-up steps", self.steps)?;
        self.schedule.check()
    }
}
