//! An LSTM over time, as a scan.

use taut::{DType, Dense, GradientTape, Loops, Result, Tensor, Variable};

/// The matrices and the bias of the four gates, and what trains them.
pub struct Lstm {
    /// What the input is multiplied with: `[inputs, 4 * hidden]`.
    pub wx: Variable,
    /// What the state is multiplied with: `[hidden, 4 * hidden]`.
    pub wh: Variable,
    pub b: Variable,
    pub rate: f64,
    pub loops: Loops,
    /// Whether all steps' inputs are multiplied at once, before the loop: one large product instead of many small ones, for the
    /// memory of all that it makes.
    pub at_once: bool,
}

impl Lstm {
    /// One step: from the state, the cell and what the input adds to the gates, to the next state and cell.
    fn cell(&self, (h, c): (Tensor, Tensor), z: Tensor) -> Result<(Tensor, Tensor)> {
        let gates = taut::split((z + taut::matmul(h, &self.wh)?)?, 4, 1)?;
        let [i, f, o] = [0, 1, 3].map(|gate| taut::sigmoid(&gates[gate]));
        let c = ((f? * c)? + (i? * taut::tanh(&gates[2])?)?)?;
        Ok(((o? * taut::tanh(&c)?)?, c))
    }

    /// The sum of the squares of the last state, for inputs `[steps, batch, inputs]`.
    fn loss(&self, x: &Tensor) -> Result<Tensor> {
        let [steps, batch, inputs] = [0, 1, 2].map(|axis| x.shape()[axis]);
        let hidden = self.wh.shape()[0];
        let zero = taut::zeros([batch, hidden], DType::F32)?;
        let begin = (zero.clone(), zero);
        let ((h, _), ()) = if self.at_once {
            let rows = taut::reshape(x, &[(steps * batch) as isize, inputs as isize])?;
            let z = (taut::matmul(rows, &self.wx)? + &self.b)?;
            let z = taut::reshape(z, &[steps as isize, batch as isize, 4 * hidden as isize])?;
            self.loops.scan(|state, z| Ok((self.cell(state, z)?, ())), begin, z)?
        } else {
            let step = |state, x: Tensor| {
                let z = (taut::matmul(x, &self.wx)? + &self.b)?;
                Ok((self.cell(state, z)?, ()))
            };
            self.loops.scan(step, begin, x.clone())?
        };
        taut::sum(taut::square(h)?, None, false)
    }

    /// One step of training.
    pub fn train(&self, x: &Tensor) -> Result<Tensor> {
        let tape = GradientTape::new();
        let loss = self.loss(x)?;
        let variables = [&self.wx, &self.wh, &self.b];
        for (variable, gradient) in variables.iter().zip(tape.gradient(&loss, &variables)?) {
            variable.assign_sub((gradient.dense()? * self.rate)?)?;
        }
        Ok(loss)
    }
}
