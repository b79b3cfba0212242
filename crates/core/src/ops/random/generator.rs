//! Stateful generators of random keys: a seed, and a counter of the keys taken.

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
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A random generator that can be shared between threads.
///
/// Each call takes the next key. The samples of a call depend only on the seed and the number of calls before it.
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
    shared: Arc<SharedState>,
}

#[derive(Debug)]
struct SharedState(Mutex<GeneratorState>);

#[derive(Clone, Copy, Debug)]
struct GeneratorState {
    seed: u64,
    counter: u64,
}

impl SharedState {
    fn with<R>(&self, act: impl FnOnce(&mut GeneratorState) -> R) -> R {
        // A panic cannot leave the two numbers inconsistent, so poisoning is ignored.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeySource for SharedState {
    fn next(&self) -> [u64; 2] {
        self.with(|state| {
            let GeneratorState { seed, counter } = *state;
            state.counter = counter.wrapping_add(1);
            [seed, counter]
        })
    }
}

/// The global generator, used by the functions of this module.
static GLOBAL: LazyLock<Generator> = LazyLock::new(Generator::from_entropy);

/// The generators of calls with a seed of their own, by this seed.
static OF_SEEDS: LazyLock<Mutex<HashMap<u64, Arc<CallSeed>>>> = LazyLock::new(Mutex::default);

/// A generator of calls with the same seed. Its keys are the same in every run of the program.
#[derive(Debug)]
struct CallSeed {
    seed: u64,
    counter: AtomicU64,
}

impl KeySource for CallSeed {
    fn next(&self) -> [u64; 2] {
        [self.seed, self.counter.fetch_add(1, Ordering::Relaxed)]
    }

    fn call_seed(&self) -> Option<u64> {
        Some(self.seed)
    }
}

/// Resets the global generator to this seed, and the generators of [`next_key_of_seed`] to their starts. By default it has a
/// different seed in each run.
pub fn set_seed(seed: u64) {
    GLOBAL.set_seed(seed);
    for source in OF_SEEDS.lock().unwrap_or_else(PoisonError::into_inner).values() {
        source.counter.store(0, Ordering::Relaxed);
    }
}

/// Gives the global generator a seed from the operating system, as at the start of the program, and resets the generators
/// of [`next_key_of_seed`].
pub fn forget_seed() {
    set_seed(random_seed());
}

/// The seed of the global generator, and the number of keys taken from it.
pub fn state() -> (u64, u64) {
    GLOBAL.state()
}

/// Restores the global generator to a [`state`].
pub fn set_state((seed, counter): (u64, u64)) {
    GLOBAL.set_state(seed, counter);
}

/// The next key of the global generator, for [`dropout`](crate::ops::nn::dropout) and the functions `stateless_…`.
#[track_caller]
pub fn next_key() -> Result<Tensor> {
    GLOBAL.next_key()
}

/// The next key of calls with this seed, which do not depend on the seed of the global generator: the same ones in every run of
/// the program.
#[track_caller]
pub fn next_key_of_seed(seed: u64) -> Result<Tensor> {
    let mut all = OF_SEEDS.lock().unwrap_or_else(PoisonError::into_inner);
    let source = all.entry(seed).or_insert_with(|| {
        // Unlike a seed of the global generator, which is often the same small number.
        let seed = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x2545_f491_4f6c_dd1d);
        Arc::new(CallSeed { seed, counter: AtomicU64::new(0) })
    });
    let source: Arc<dyn KeySource> = source.clone();
    drop(all);
    take_key(&source)
}

/// The keys taken by a computation, recorded so that it can be recomputed with the same random numbers.
#[derive(Clone, Debug, Default)]
pub struct RecordedKeys {
    /// Each with the number of loops that enclosed the draw.
    list: Vec<(RecordedKey, usize)>,
    next: usize,
    /// The depth of nested traces when the recording began: keys of a trace inside the computation are not recorded.
    depth: usize,
}

#[derive(Clone, Debug)]
enum RecordedKey {
    Concrete([u64; 2]),
    /// An input of a traced function, for which each call takes a new key.
    Traced(Tensor),
}

thread_local! {
    /// The nested computations whose keys are recorded or replayed.
    static KEYS: RefCell<Vec<RecordedKeys>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    /// The step indices of the nested loops being traced, each with the depth of nested traces around it.
    static LOOP_INDICES: RefCell<Vec<(usize, Tensor)>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    /// The stream that replaces generators on this thread.
    static KEY_STREAM: Cell<Option<KeyStream>> = const { Cell::new(None) };
}

/// A stream of keys in place of those of generators.
#[derive(Clone, Copy, Debug)]
pub struct KeyStream {
    /// The seed in place of the global generator; `None` to leave that as it is.
    pub seed: Option<u64>,
    /// Combined with the seed.
    pub run: u64,
    /// The number of the next key.
    pub next: u64,
}

/// Runs `work` with a stream of its own in place of the generators of [`next_key_of_seed`] and, if the stream has a seed, of the
/// global one. So its random numbers do not depend on what is drawn elsewhere.
pub fn with_key_stream<R>(stream: KeyStream, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<KeyStream>);
    impl Drop for Restore {
        fn drop(&mut self) {
            KEY_STREAM.set(self.0);
        }
    }
    let _restore = Restore(KEY_STREAM.replace(Some(stream)));
    work()
}

/// The next key of a source, outside of traces.
fn next_words(source: &Arc<dyn KeySource>) -> [u64; 2] {
    let Some(stream) = KEY_STREAM.get() else {
        return source.next();
    };
    let is_global = std::ptr::addr_eq(Arc::as_ptr(source), Arc::as_ptr(&GLOBAL.shared));
    let Some(seed) = (if is_global { stream.seed } else { source.call_seed() }) else {
        return source.next();
    };
    KEY_STREAM.set(Some(KeyStream { next: stream.next.wrapping_add(1), ..stream }));
    [seed ^ stream.run, stream.next]
}

/// Runs `work` with the keys recorded in an earlier run, whichever generators it draws from; returns its result and the
/// keys it took. Draws beyond the recorded ones take new keys.
pub fn with_recorded_keys<R>(keys: &RecordedKeys, work: impl FnOnce() -> R) -> (R, RecordedKeys) {
    struct Frame;
    impl Drop for Frame {
        fn drop(&mut self) {
            KEYS.with_borrow_mut(Vec::pop);
        }
    }
    KEYS.with_borrow_mut(|frames| {
        frames.push(RecordedKeys { list: keys.list.clone(), next: 0, depth: graph::function_depth() });
    });
    let frame = Frame;
    let result = work();
    let taken = KEYS.with_borrow(|frames| frames.last().cloned().unwrap_or_default());
    drop(frame);
    (result, taken)
}

/// A seed from the operating system.
fn random_seed() -> u64 {
    // The standard library seeds its hashers from it.
    RandomState::new().hash_one(0u64)
}

impl Generator {
    /// A generator with this seed, which draws the same samples in every run.
    pub fn from_seed(seed: u64) -> Generator {
        Generator::from_state(seed, 0)
    }

    /// A generator with a saved [`Generator::state`].
    pub fn from_state(seed: u64, counter: u64) -> Generator {
        Generator { shared: Arc::new(SharedState(Mutex::new(GeneratorState { seed, counter }))) }
    }

    /// A generator with a seed from the operating system.
    pub fn from_entropy() -> Generator {
        Generator::from_seed(random_seed())
    }

    /// Resets the generator to this seed.
    pub fn set_seed(&self, seed: u64) {
        self.set_state(seed, 0);
    }

    /// Restores a saved [`Generator::state`].
    pub fn set_state(&self, seed: u64, counter: u64) {
        self.shared.with(|state| *state = GeneratorState { seed, counter });
    }

    /// The seed, and the number of keys taken.
    pub fn state(&self) -> (u64, u64) {
        self.shared.with(|state| (state.seed, state.counter))
    }

    /// The next key (`uint64[2]`), for the functions `stateless_…`.
    #[track_caller]
    pub fn next_key(&self) -> Result<Tensor> {
        let source: Arc<dyn KeySource> = self.shared.clone();
        take_key(&source)
    }
}

/// The next key of a source; in a traced function, an input for which each call takes a new key.
#[track_caller]
pub fn take_key(source: &Arc<dyn KeySource>) -> Result<Tensor> {
    let (key, loops) = next(source);
    let key = match key {
        RecordedKey::Concrete(words) => Tensor::from_slice(&words, [2])?,
        RecordedKey::Traced(key) => key,
    };
    let depth = graph::function_depth();
    let indices: SmallVec<[Tensor; 2]> = LOOP_INDICES.with_borrow(|frames| {
        frames.iter().take(loops).filter(|(of, _)| *of == depth).map(|(_, index)| index.clone()).collect()
    });
    indices.into_iter().try_fold(key, fold_in)
}

/// Runs `work`, the body of a loop being traced, so that each draw has a different key at each step: the loop's key with
/// the step index, an `int64`, folded in.
pub fn with_loop_index<R>(index: &Tensor, work: impl FnOnce() -> R) -> R {
    struct Frame;
    impl Drop for Frame {
        fn drop(&mut self) {
            LOOP_INDICES.with_borrow_mut(Vec::pop);
        }
    }
    LOOP_INDICES.with_borrow_mut(|frames| frames.push((graph::function_depth(), index.clone())));
    let _frame = Frame;
    work()
}

/// The two words of the next key of a source; `None` in a traced function, where a key is an input.
pub fn take_key_words(source: &Arc<dyn KeySource>) -> Option<[u64; 2]> {
    match next(source).0 {
        RecordedKey::Concrete(words) => Some(words),
        RecordedKey::Traced(_) => None,
    }
}

/// The next key, and the number of enclosing loops whose step indices are folded into it: in a recomputation, that of the
/// first run.
fn next(source: &Arc<dyn KeySource>) -> (RecordedKey, usize) {
    KEYS.with_borrow_mut(|frames| {
        let depth = graph::function_depth();
        let outer = frames.partition_point(|keys| keys.depth < depth);
        let frames = &mut frames[outer..];
        // The innermost computation that is being replayed determines the key; those around it only record it.
        let replayed = frames.iter().rposition(|keys| keys.next < keys.list.len());
        let key = match replayed {
            Some(i) => frames[i].list[frames[i].next].clone(),
            None => {
                let key = match graph::next_key(source.clone()) {
                    Some(key) => RecordedKey::Traced(key),
                    None => RecordedKey::Concrete(next_words(source)),
                };
                (key, LOOP_INDICES.with_borrow(Vec::len))
            }
        };
        for (i, keys) in frames.iter_mut().enumerate().skip(replayed.unwrap_or(0)) {
            if Some(i) != replayed {
                keys.list.push(key.clone());
            }
            keys.next += 1;
        }
        key
    })
}

/// Declares each distribution twice: as a method, and as a function of the global generator.
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
            /// Drawn from the global generator; see [`set_seed`].
            #[track_caller]
            pub fn $name($($arg: $ty),*) -> Result<Tensor> {
                GLOBAL.$name($($arg),*)
            }
        )*
    };
}

distributions! {
    /// Samples from the uniform distribution on `[low, high)`.
    uniform(shape: impl Into<Shape>, low: f64, high: f64, dtype: DType) = stateless_uniform;

    /// Samples from the normal distribution with this mean and standard deviation.
    normal(shape: impl Into<Shape>, mean: f64, std: f64, dtype: DType) = stateless_normal;

    /// Samples from the normal distribution truncated at two standard deviations from the mean.
    truncated_normal(shape: impl Into<Shape>, mean: f64, std: f64, dtype: DType) = stateless_truncated_normal;

    /// Samples from the exponential distribution with this rate.
    exponential(shape: impl Into<Shape>, rate: f64, dtype: DType) = stateless_exponential;

    /// Samples from the gamma distribution with shape parameter `alpha` and rate `beta`.
    gamma(shape: impl Into<Shape>, alpha: f64, beta: f64, dtype: DType) = stateless_gamma;

    /// Samples from the uniform distribution on the integers in `[low, high)`.
    integers(shape: impl Into<Shape>, low: impl Into<i128>, high: impl Into<i128>, dtype: DType)
        = stateless_integers;

    /// Samples from the Bernoulli distribution: booleans that are true with probability `p`.
    bernoulli(shape: impl Into<Shape>, p: f64) = stateless_bernoulli;

    /// Samples from Bernoulli distributions with one probability per element.
    bernoulli_each(probabilities: impl Into<Tensor>) = stateless_bernoulli_each;

    /// Class indices `[batch, num_samples]`, sampled from unnormalized log-probabilities `[batch, classes]`.
    categorical(logits: impl Into<Tensor>, num_samples: usize) = stateless_categorical;

    /// A random permutation of the integers in `[0, n)`.
    permutation(n: usize) = stateless_permutation;

    /// Shuffles a tensor along its first axis.
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
    fn seed_and_counter_determine_the_samples() {
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
    fn methods_draw_with_the_next_key() {
        let _ledger = ledger_check();
        let key = Tensor::from_slice(&[9u64, 0], [2]).unwrap();
        let want: Vec<i64> = stateless_permutation(&key, 10).unwrap().to_vec().unwrap();
        assert_eq!(Generator::from_seed(9).permutation(10).unwrap().to_vec::<i64>().unwrap(), want);
        assert_eq!(Generator::from_seed(9).next_key().unwrap().to_vec::<u64>().unwrap(), [9, 0]);
    }

    /// The only test that may set the global seed: tests run in parallel and share it.
    #[test]
    fn the_global_generator_has_a_seed_and_a_state() {
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
