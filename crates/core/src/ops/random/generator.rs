//! Where keys come from when nobody keeps them: a seed, and a count of the calls so far.

use super::{
    fold_in, stateless_bernoulli, stateless_bernoulli_each, stateless_categorical, stateless_exponential,
    stateless_gamma, stateless_integers, stateless_normal, stateless_permutation, stateless_shuffle,
    stateless_truncated_normal, stateless_uniform,
};
use crate::error::Result;
use crate::graph::{self, KeySource};
use crate::ops::OpEntry;
use crate::{DType, Shape, Tensor};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A source of random numbers that may be shared between threads.
///
/// Each call takes the next key; what a call draws depends on the seed and on how many calls came before it, and on
/// nothing else.
///
/// ```
/// use taut_core::{DType, ops::random::Generator};
/// let draw = || Generator::from_seed(42).normal([3], 0.0, 1.0, DType::F32)?.to_vec::<f32>();
/// assert_eq!(draw()?, draw()?);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Generator {
    /// Shared with the traced functions that draw from it.
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared(Mutex<State>);

#[derive(Clone, Copy, Debug)]
struct State {
    seed: u64,
    counter: u64,
}

impl Shared {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        // A thread that panicked elsewhere cannot have left two numbers half written.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeySource for Shared {
    fn next(&self) -> [u64; 2] {
        self.with(|state| {
            let State { seed, counter } = *state;
            state.counter = counter.wrapping_add(1);
            [seed, counter]
        })
    }
}

/// The generator behind the functions of this module.
static GLOBAL: LazyLock<Generator> = LazyLock::new(Generator::from_entropy);

/// Starts the module's own generator anew from this seed. Without a call, its seed is another one in each run.
pub fn set_seed(seed: u64) {
    GLOBAL.set_seed(seed);
}

/// The seed of the module's own generator, and how many keys were taken from it.
pub fn state() -> (u64, u64) {
    GLOBAL.state()
}

/// Lets the module's own generator go on where [`state`] was taken.
pub fn set_state((seed, counter): (u64, u64)) {
    GLOBAL.set_state(seed, counter);
}

/// The next key of the module's own generator: for [`dropout`](crate::ops::nn::dropout) and the functions called
/// `stateless_…`.
#[track_caller]
pub fn next_key() -> Result<Tensor> {
    GLOBAL.next_key()
}

/// The keys that a piece of work took, so that it can be done again with the same random numbers.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Each with the number of loops around the work that took it.
    list: Vec<(Key, usize)>,
    next: usize,
    /// How many functions were being traced when the work began: the keys of a trace inside it are not its own.
    depth: usize,
}

#[derive(Clone, Debug)]
enum Key {
    Numbers([u64; 2]),
    /// One that each call of a traced function takes anew.
    Traced(Tensor),
}

thread_local! {
    /// The pieces of work, one in the other, whose keys are written down or given.
    static KEYS: RefCell<Vec<Keys>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    /// The numbers of the steps of the loops being traced, one in the other, each with the number of functions around it.
    static INDICES: RefCell<Vec<(usize, Tensor)>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with the keys that an earlier run took, whatever generators it asks; returns the keys it took. Keys
/// beyond those are new ones.
pub fn with_keys<R>(keys: &Keys, work: impl FnOnce() -> R) -> (R, Keys) {
    struct Frame;
    impl Drop for Frame {
        fn drop(&mut self) {
            KEYS.with_borrow_mut(Vec::pop);
        }
    }
    KEYS.with_borrow_mut(|frames| {
        frames.push(Keys { list: keys.list.clone(), next: 0, depth: graph::depth() });
    });
    let frame = Frame;
    let result = work();
    let taken = KEYS.with_borrow(|frames| frames.last().cloned().unwrap_or_default());
    drop(frame);
    (result, taken)
}

impl Generator {
    /// A generator that draws the same numbers in every run.
    pub fn from_seed(seed: u64) -> Generator {
        Generator::from_state(seed, 0)
    }

    /// A generator that goes on where [`Generator::state`] was taken.
    pub fn from_state(seed: u64, counter: u64) -> Generator {
        Generator { shared: Arc::new(Shared(Mutex::new(State { seed, counter }))) }
    }

    /// A generator with a seed from the operating system.
    pub fn from_entropy() -> Generator {
        // The hasher's keys are the randomness that the standard library asks the system for.
        Generator::from_seed(RandomState::new().hash_one(0u64))
    }

    /// Starts anew from this seed.
    pub fn set_seed(&self, seed: u64) {
        self.set_state(seed, 0);
    }

    /// Goes on where [`Generator::state`] was taken.
    pub fn set_state(&self, seed: u64, counter: u64) {
        self.shared.with(|state| *state = State { seed, counter });
    }

    /// The seed, and how many keys were taken.
    pub fn state(&self) -> (u64, u64) {
        self.shared.with(|state| (state.seed, state.counter))
    }

    /// The next key (uint64, shape `[2]`), for the functions called `stateless_…`.
    #[track_caller]
    pub fn next_key(&self) -> Result<Tensor> {
        let source: Arc<dyn KeySource> = self.shared.clone();
        take_key(&source)
    }
}

/// The next key of a source: in a traced function, one that each of its calls takes anew.
#[track_caller]
pub fn take_key(source: &Arc<dyn KeySource>) -> Result<Tensor> {
    let (key, loops) = next(source);
    let key = match key {
        Key::Numbers(numbers) => Tensor::from_slice(&numbers, [2])?,
        Key::Traced(key) => key,
    };
    let depth = graph::depth();
    let indices: SmallVec<[Tensor; 2]> = INDICES.with_borrow(|frames| {
        frames.iter().take(loops).filter(|(of, _)| *of == depth).map(|(_, index)| index.clone()).collect()
    });
    indices.into_iter().try_fold(key, fold_in)
}

/// Runs `work`, the body of a loop that is being traced, so that each of its keys is another one at each step: it is
/// made of the key that the loop got and of the step's number, an int64.
pub fn with_index<R>(index: &Tensor, work: impl FnOnce() -> R) -> R {
    struct Frame;
    impl Drop for Frame {
        fn drop(&mut self) {
            INDICES.with_borrow_mut(Vec::pop);
        }
    }
    INDICES.with_borrow_mut(|frames| frames.push((graph::depth(), index.clone())));
    let _frame = Frame;
    work()
}

/// The numbers of the next key of a source; `None` in a traced function, where only its calls know them.
pub fn take_numbers(source: &Arc<dyn KeySource>) -> Option<[u64; 2]> {
    match next(source).0 {
        Key::Numbers(numbers) => Some(numbers),
        Key::Traced(_) => None,
    }
}

/// The next key, and the number of loops whose steps it is to be another one for: where work is done again, those that were
/// around it the first time.
fn next(source: &Arc<dyn KeySource>) -> (Key, usize) {
    KEYS.with_borrow_mut(|frames| {
        let depth = graph::depth();
        let outer = frames.partition_point(|keys| keys.depth < depth);
        let frames = &mut frames[outer..];
        // The innermost work that is done again says which key; work around it is not doing that part again.
        let again = frames.iter().rposition(|keys| keys.next < keys.list.len());
        let key = match again {
            Some(i) => frames[i].list[frames[i].next].clone(),
            None => {
                let key = match graph::next_key(source.clone()) {
                    Some(key) => Key::Traced(key),
                    None => Key::Numbers(source.next()),
                };
                (key, INDICES.with_borrow(Vec::len))
            }
        };
        for (i, keys) in frames.iter_mut().enumerate().skip(again.unwrap_or(0)) {
            if Some(i) != again {
                keys.list.push(key.clone());
            }
            keys.next += 1;
        }
        key
    })
}

/// Declares each distribution twice: as a method, and as a function of the module's own generator.
macro_rules! distributions {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) = $stateless:ident;)*) => {
        impl Generator {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, $($arg: $ty),*) -> Result<Tensor> {
                $stateless(self.next_key()?, $($arg),*)
            }
        )*}

        $(
            $(#[$doc])*
            ///
            /// Drawn from the module's own generator; see [`set_seed`].
            #[track_caller]
            pub fn $name($($arg: $ty),*) -> Result<Tensor> {
                GLOBAL.$name($($arg),*)
            }
        )*
    };
}

distributions! {
    /// Floats drawn evenly from `low` up to, but never, `high`.
    uniform(shape: impl Into<Shape>, low: f64, high: f64, dtype: DType) = stateless_uniform;

    /// Floats of the normal distribution with this mean and standard deviation.
    normal(shape: impl Into<Shape>, mean: f64, std: f64, dtype: DType) = stateless_normal;

    /// Floats of the normal distribution, none further than two standard deviations from the mean.
    truncated_normal(shape: impl Into<Shape>, mean: f64, std: f64, dtype: DType) = stateless_truncated_normal;

    /// Floats of the exponential distribution with this rate.
    exponential(shape: impl Into<Shape>, rate: f64, dtype: DType) = stateless_exponential;

    /// Floats of the gamma distribution with shape parameter `alpha` and rate `beta`.
    gamma(shape: impl Into<Shape>, alpha: f64, beta: f64, dtype: DType) = stateless_gamma;

    /// Integers drawn evenly from `low` up to, but never, `high`.
    integers(shape: impl Into<Shape>, low: impl Into<i128>, high: impl Into<i128>, dtype: DType)
        = stateless_integers;

    /// Booleans, each true with probability `p`.
    bernoulli(shape: impl Into<Shape>, p: f64) = stateless_bernoulli;

    /// Booleans, each true with a probability of its own.
    bernoulli_each(probabilities: impl Into<Tensor>) = stateless_bernoulli_each;

    /// Class numbers `[batch, num_samples]`, drawn by unnormalised log-probabilities `[batch, classes]`.
    categorical(logits: impl Into<Tensor>, num_samples: usize) = stateless_categorical;

    /// The numbers from 0 to `n - 1` in random order.
    permutation(n: usize) = stateless_permutation;

    /// The tensor with the slices along its first axis in random order.
    shuffle(x: impl Into<Tensor>) = stateless_shuffle;
}

pub(crate) const ENTRIES: &[OpEntry] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use taut_memory::testing::ledger_check;

    fn normals(generator: &Generator) -> Vec<f32> {
        generator.normal([5], 0.0, 1.0, DType::F32).unwrap().to_vec().unwrap()
    }

    #[test]
    fn a_seed_and_a_count_say_everything() {
        let _ledger = ledger_check();
        let (a, b) = (Generator::from_seed(1), Generator::from_seed(1));
        let (first, second) = (normals(&a), normals(&a));
        assert_eq!([&first, &second], [&normals(&b), &normals(&b)]);
        assert_ne!(first, second);
        assert_ne!(first, normals(&Generator::from_seed(2)));
        assert_eq!(a.state(), (1, 2));
        assert_eq!(second, normals(&Generator::from_state(1, 1)));
        a.set_seed(1);
        assert_eq!(first, normals(&a));
    }

    #[test]
    fn methods_draw_what_their_keys_draw() {
        let _ledger = ledger_check();
        let key = Tensor::from_slice(&[9u64, 0], [2]).unwrap();
        let want: Vec<i64> = stateless_permutation(&key, 10).unwrap().to_vec().unwrap();
        assert_eq!(Generator::from_seed(9).permutation(10).unwrap().to_vec::<i64>().unwrap(), want);
        assert_eq!(Generator::from_seed(9).next_key().unwrap().to_vec::<u64>().unwrap(), [9, 0]);
    }

    /// The only test that may set the seed of the module's own generator: tests share it.
    #[test]
    fn the_module_has_a_generator_of_its_own() {
        let _ledger = ledger_check();
        set_seed(5);
        let global = uniform([4], 0.0, 1.0, DType::F64).unwrap().to_vec::<f64>().unwrap();
        let own = Generator::from_seed(5).uniform([4], 0.0, 1.0, DType::F64).unwrap();
        assert_eq!(global, own.to_vec::<f64>().unwrap());
        let now = state();
        let key = || next_key().unwrap().to_vec::<u64>().unwrap();
        let (first, other) = (key(), key());
        set_state(now);
        assert_ne!(first, other);
        assert_eq!(key(), first);
    }

    #[test]
    fn threads_take_different_keys() {
        let _ledger = ledger_check();
        let generator = Generator::from_seed(3);
        let take =
            || (0..50).map(|_| generator.next_key().unwrap().to_vec::<u64>().unwrap()[1]).collect::<Vec<_>>();
        let mut taken = std::thread::scope(|scope| {
            let threads = [scope.spawn(take), scope.spawn(take)];
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(0..100));
    }

    #[test]
    fn the_callers_line_is_in_the_error() {
        let _ledger = ledger_check();
        let error = Generator::from_seed(0).normal([1], 0.0, -1.0, DType::F32).unwrap_err();
        assert_eq!(error.location().unwrap().file(), file!());
    }
}
