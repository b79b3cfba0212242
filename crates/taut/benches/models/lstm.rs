//! An LSTM over time, and how it is trained.

use taut::{DType, DenseGradient, GradientTape, Loops, Result, Tensor, Variable};

/// The matrices and the bias of the four gates, and what trains them.
pub struct Lstm {
    /// What the input is multiplied with: `[inputs, 4 * hidden]`.
    pub wx: Variable,
    /// What the state is multiplied with: `[hidden, 4 * hidden]`.
    pub wh: Variable,
    pub b: Variable,
    pub rate: f64,
    pub loops: Loops,
    /// Whether the inputs of all steps are multiplied at once, before the loop: one large product instead of many small ones, for the
    /// memory of all that it makes, and of its gradient.
    pub at_once: bool,
}

impl Lstm {
    /// The last state, for inputs `[steps, batch, inputs]`.
    fn last(&self, x: &Tensor) -> Result<Tensor> {
        let (wx, wh, b) = (self.wx.read(), self.wh.read(), self.b.read());
        let zero = taut::zeros([x.shape()[1], wh.shape()[0]], DType::F32)?;
        let begin = (zero.clone(), zero);
        if self.at_once {
            let (_, (h, _)) = self.loops.lstm(x, begin, &wx, &wh, &b)?;
            return Ok(h);
        }
        let step = |(h, c): (Tensor, Tensor), x: Tensor| {
            let gates = ((taut::matmul(x, &wx)? + taut::matmul(h, &wh)?)? + &b)?;
            let gates = taut::split(gates, 4, 1)?;
            let [i, f, o] = [0, 1, 3].map(|gate| taut::sigmoid(&gates[gate]));
            let c = ((f? * c)? + (i? * taut::tanh(&gates[2])?)?)?;
            Ok((((o? * taut::tanh(&c)?)?, c), ()))
        };
        let ((h, _), ()) = self.loops.scan(step, begin, x.clone())?;
        Ok(h)
    }

    /// One step of training, on the sum of the squares of the last state.
    pub fn train(&self, x: &Tensor) -> Result<Tensor> {
        let tape = GradientTape::new();
        let loss = taut::sum(taut::square(self.last(x)?)?, None, false)?;
        let variables = [&self.wx, &self.wh, &self.b];
        for (variable, gradient) in variables.iter().zip(tape.gradient(&loss, &variables)?) {
            variable.assign_sub((gradient.dense()? * self.rate)?)?;
        }
        Ok(loss)
    }
}
