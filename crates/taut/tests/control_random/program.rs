//! Random programs, and their generator.

use std::ops::Range;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A float.
    Number,
    /// Three floats.
    Vector,
    /// Three by three floats.
    Matrix,
    /// An int64.
    Count,
}

/// The inputs of every program.
pub const KINDS: [ValueKind; 5] =
    [ValueKind::Number, ValueKind::Vector, ValueKind::Matrix, ValueKind::Count, ValueKind::Vector];

impl ValueKind {
    pub fn shape(self) -> &'static [usize] {
        match self {
            ValueKind::Number | ValueKind::Count => &[],
            ValueKind::Vector => &[3],
            ValueKind::Matrix => &[3, 3],
        }
    }

    pub fn len(self) -> usize {
        self.shape().iter().product()
    }

    /// The type of a row.
    fn row(self) -> ValueKind {
        if self == ValueKind::Matrix { ValueKind::Vector } else { ValueKind::Number }
    }

    /// The type of three rows.
    fn rows(self) -> ValueKind {
        if self == ValueKind::Vector { ValueKind::Matrix } else { ValueKind::Vector }
    }
}

/// Statements in order, each of which adds values to the scope; and which values are returned.
#[derive(Debug)]
pub struct Block {
    pub statements: Vec<Statement>,
    pub results: Vec<usize>,
}

/// A value is referred to by its position among all that are in scope, outermost first.
#[derive(Debug)]
pub enum Statement {
    Let(Expression),
    /// The body has the index and the states in scope.
    For {
        range: Range<i64>,
        states: Vec<usize>,
        body: Block,
    },
    /// The body has the states in scope.
    While {
        test: Test,
        most: Option<usize>,
        states: Vec<usize>,
        body: Block,
    },
    /// The body has the states and an element in scope; it returns the states, and any number of results per element.
    Scan {
        /// Of three elements, the first ones.
        steps: usize,
        backward: bool,
        states: Vec<usize>,
        elements: Vec<usize>,
        /// The results per element.
        made: Vec<ValueKind>,
        body: Block,
    },
    /// The same, of which only the states are returned.
    Fold {
        steps: usize,
        backward: bool,
        states: Vec<usize>,
        elements: Vec<usize>,
        made: Vec<ValueKind>,
        body: Block,
    },
    /// The first block if the number is below the threshold.
    If {
        number: usize,
        threshold: f64,
        branches: [Block; 2],
    },
    Switch {
        count: usize,
        branches: Vec<Block>,
    },
}

/// The condition of a `while`.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// The first state, which each step increments, is below this.
    Counts(i64),
    /// The first state, which each step increases, is below the threshold plus a fraction of a captured value.
    Clock { threshold: f64, outside: usize },
}

#[derive(Debug)]
pub enum Expression {
    Sin(usize),
    Tanh(usize),
    /// Times a constant.
    Scaled(usize, f64),
    /// A weighted sum.
    Mixed(usize, usize),
    /// Elementwise product; the second factor may be broadcast.
    Product(usize, usize),
    /// The tanh of a matrix product.
    Matmul(usize, usize),
    Transposed(usize),
    /// A third of the sum.
    Sum(usize),
    /// The sine of a count.
    Wave(usize),
    Number(f64),
    Vector([f64; 3]),
    /// A count and a constant.
    Plus(usize, i64),
    /// The increment of the first state of a `while`: about a half, depending on a value.
    Tick(usize, usize),
}

/// Options of the generator.
#[derive(Clone, Copy)]
pub struct Wishes {
    /// How deep loops and branches may be nested.
    pub depth: usize,
    /// Whether every `while` has a limit.
    pub bounded: bool,
    /// Whether sums are allowed whose order is not determined: the compiler may add in another order, and a branch outside of
    /// loops runs eagerly, where the tape accumulates gradients in another order.
    pub sums: bool,
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes { depth: 3, bounded: false, sums: true }
    }
}

/// Generates programs.
pub struct Generator {
    state: u64,
    sums: bool,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1;
        Generator { state, sums: true }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A number between -1 and 1.
    pub fn float(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn program(&mut self, wishes: Wishes) -> Block {
        self.sums = wishes.sums;
        let mut scope = KINDS.to_vec();
        let mut statements = Vec::new();
        for _ in 0..2 {
            self.expression(&mut scope, &mut statements);
            self.control(&mut scope, &mut statements, wishes, true);
        }
        let kinds: Vec<ValueKind> = (0..3).map(|_| self.kind()).collect();
        let results = kinds.into_iter().map(|kind| self.recent(&scope, kind)).collect();
        Block { statements, results }
    }

    fn kind(&mut self) -> ValueKind {
        self.one_of(&[
            ValueKind::Number,
            ValueKind::Number,
            ValueKind::Vector,
            ValueKind::Vector,
            ValueKind::Matrix,
            ValueKind::Count,
        ])
    }

    fn kinds(&mut self, most: usize) -> Vec<ValueKind> {
        (0..=self.below(most)).map(|_| self.kind()).collect()
    }

    /// Any value of this kind.
    fn any(&mut self, scope: &[ValueKind], kind: ValueKind) -> usize {
        let all: Vec<usize> = (0..scope.len()).filter(|&i| scope[i] == kind).collect();
        self.one_of(&all)
    }

    /// A value of this kind, preferably a recent one.
    fn recent(&mut self, scope: &[ValueKind], kind: ValueKind) -> usize {
        if self.chance(30) {
            return self.any(scope, kind);
        }
        let all: Vec<usize> = (0..scope.len()).rev().filter(|&i| scope[i] == kind).take(2).collect();
        self.one_of(&all)
    }

    fn expression(&mut self, scope: &mut Vec<ValueKind>, statements: &mut Vec<Statement>) {
        let kind = self.kind();
        let expression = self.expression_of(scope, kind);
        statements.push(Statement::Let(expression));
        scope.push(kind);
    }

    fn expression_of(&mut self, scope: &[ValueKind], kind: ValueKind) -> Expression {
        if kind == ValueKind::Count {
            return Expression::Plus(self.recent(scope, kind), self.below(4) as i64 - 1);
        }
        let one = self.recent(scope, kind);
        match (self.below(10), kind) {
            (0, _) => Expression::Sin(one),
            (1, _) => Expression::Tanh(one),
            (2, _) => Expression::Scaled(one, 0.4 + 0.5 * self.float().abs()),
            (3 | 4, _) => Expression::Mixed(one, self.any(scope, kind)),
            (5, _) => Expression::Product(one, self.any(scope, kind)),
            (6, ValueKind::Number) => Expression::Number(self.float()),
            (7, ValueKind::Number) => Expression::Wave(self.recent(scope, ValueKind::Count)),
            (8.., ValueKind::Number) if !self.sums => Expression::Sin(self.any(scope, kind)),
            (6..=8, ValueKind::Matrix) | (6 | 7, ValueKind::Vector) if !self.sums => {
                Expression::Tanh(self.any(scope, kind))
            }
            (8, ValueKind::Number) => Expression::Sum(self.recent(scope, ValueKind::Matrix)),
            (_, ValueKind::Number) => Expression::Sum(self.recent(scope, ValueKind::Vector)),
            (6, ValueKind::Vector) => Expression::Vector([self.float(), self.float(), self.float()]),
            (7, ValueKind::Vector) => Expression::Product(one, self.recent(scope, ValueKind::Number)),
            (8, ValueKind::Vector) => Expression::Matmul(one, self.any(scope, ValueKind::Matrix)),
            (_, ValueKind::Vector) => Expression::Matmul(self.any(scope, ValueKind::Matrix), one),
            (6, _) => Expression::Product(one, self.recent(scope, ValueKind::Vector)),
            (7, _) => Expression::Product(one, self.recent(scope, ValueKind::Number)),
            (8, _) => Expression::Transposed(one),
            (_, _) => Expression::Matmul(one, self.any(scope, ValueKind::Matrix)),
        }
    }

    /// A body or a branch that returns values of these kinds. The scope is unchanged.
    fn block(
        &mut self,
        scope: &[ValueKind],
        own: &[ValueKind],
        results: &[ValueKind],
        wishes: Wishes,
    ) -> Block {
        let mut scope = [scope, own].concat();
        let mut statements = Vec::new();
        for _ in 0..=self.below(3) {
            self.expression(&mut scope, &mut statements);
        }
        if wishes.depth > 0 && self.chance(60) {
            self.control(&mut scope, &mut statements, wishes, false);
            if self.chance(50) {
                self.expression(&mut scope, &mut statements);
            }
        }
        let mut chosen = Vec::new();
        for &kind in results {
            // A returned value is mostly a new one; else it is a state or a capture.
            chosen.push(if self.chance(60) {
                let expression = self.expression_of(&scope, kind);
                statements.push(Statement::Let(expression));
                scope.push(kind);
                scope.len() - 1
            } else {
                self.recent(&scope, kind)
            });
        }
        Block { statements, results: chosen }
    }

    /// Adds a loop or a branch.
    fn control(
        &mut self,
        scope: &mut Vec<ValueKind>,
        statements: &mut Vec<Statement>,
        wishes: Wishes,
        outermost: bool,
    ) {
        let inner = Wishes { depth: wishes.depth - 1, ..wishes };
        match self.below(if outermost && !wishes.sums { 8 } else { 10 }) {
            0..=2 => {
                let kinds = self.kinds(4);
                let states: Vec<usize> = kinds.iter().map(|&kind| self.recent(scope, kind)).collect();
                let own = [&[ValueKind::Count], &kinds[..]].concat();
                let body = self.block(scope, &own, &kinds, inner);
                let first = self.below(5) as i64 - 2;
                let steps = if outermost && self.chance(20) { 12 } else { self.one_of(&[0, 1, 2, 3, 4]) };
                statements.push(Statement::For { range: first..first + steps, states, body });
                scope.extend(kinds);
            }
            3..=5 => self.tested(scope, statements, inner, outermost),
            6 | 7 => {
                let (fold, backward, steps) = (self.chance(50), self.chance(50), self.below(4));
                let kinds = self.kinds(3);
                let states: Vec<usize> = kinds.iter().map(|&kind| self.recent(scope, kind)).collect();
                let count = 1 + self.below(2);
                let stacks: Vec<ValueKind> =
                    (0..count).map(|_| self.one_of(&[ValueKind::Vector, ValueKind::Matrix])).collect();
                let elements: Vec<usize> = stacks.iter().map(|&kind| self.recent(scope, kind)).collect();
                let rows = stacks.iter().map(|kind| kind.row());
                let own: Vec<ValueKind> = kinds.iter().copied().chain(rows).collect();
                let mut results = kinds.clone();
                if !fold {
                    results.extend(
                        (0..self.below(3)).map(|_| self.one_of(&[ValueKind::Number, ValueKind::Vector])),
                    );
                }
                let body = self.block(scope, &own, &results, inner);
                let made = results.split_off(kinds.len());
                scope.extend(kinds);
                scope.extend(made.iter().map(|kind| kind.rows()));
                statements.push(if fold {
                    Statement::Fold { steps, backward, states, elements, made, body }
                } else {
                    Statement::Scan { steps, backward, states, elements, made, body }
                });
            }
            8 => {
                let kinds = self.kinds(3);
                let number = self.recent(scope, ValueKind::Number);
                let branches = [(); 2].map(|()| self.block(scope, &[], &kinds, inner));
                statements.push(Statement::If { number, threshold: 0.3 * self.float(), branches });
                scope.extend(kinds);
            }
            _ => {
                let kinds = self.kinds(3);
                let count = self.recent(scope, ValueKind::Count);
                let branches = (0..=self.below(3)).map(|_| self.block(scope, &[], &kinds, inner)).collect();
                statements.push(Statement::Switch { count, branches });
                scope.extend(kinds);
            }
        }
    }

    fn tested(
        &mut self,
        scope: &mut Vec<ValueKind>,
        statements: &mut Vec<Statement>,
        inner: Wishes,
        outermost: bool,
    ) {
        let counts = self.chance(50);
        let clock = if counts { ValueKind::Count } else { ValueKind::Number };
        let others = self.kinds(3);
        let kinds = [&[clock], &others[..]].concat();
        // The first state begins at a known value.
        let start = if counts {
            let zero = self.any(scope, ValueKind::Count);
            Expression::Scaled(zero, 0.0)
        } else {
            Expression::Sin(self.recent(scope, ValueKind::Number))
        };
        statements.push(Statement::Let(start));
        scope.push(clock);
        let mut states = vec![scope.len() - 1];
        states.extend(others.iter().map(|&kind| self.recent(scope, kind)));
        let mut limited = inner.bounded || self.chance(50);
        let test = if counts {
            let far = [17, 33, 40];
            let far = if outermost && self.chance(30) { Some(self.one_of(&far)) } else { None };
            // Without a limit, such a loop runs in segments, whose gradients are summed.
            limited |= far.is_some() && !self.sums;
            Test::Counts(far.unwrap_or_else(|| self.below(5) as i64))
        } else {
            Test::Clock { threshold: 0.6, outside: self.any(scope, ValueKind::Number) }
        };
        let first = scope.len();
        let mut body = self.block(scope, &kinds, &others, inner);
        // The increment comes last, depending on a value in scope.
        let tick = if counts {
            Expression::Plus(first, 1)
        } else {
            let numbers: Vec<usize> = (0..first + kinds.len())
                .filter(|&i| scope.get(i).copied().unwrap_or_else(|| kinds[i - first]) == ValueKind::Number)
                .collect();
            Expression::Tick(first, self.one_of(&numbers))
        };
        body.statements.push(Statement::Let(tick));
        body.results.insert(0, usize::MAX);
        let most = limited.then(|| self.one_of(&[0, 1, 2, 4, 6, 50]));
        statements.push(Statement::While { test, most, states, body });
        scope.extend(kinds);
    }
}
