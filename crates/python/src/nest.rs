//! Structures of Python's: tensors, variables and values in lists, tuples and dicts, as the engine sees them.

use crate::array::{Array, Value as Kind, read, wrap};
use crate::convert;
use crate::numpy::Memory;
use ::numpy::PyUntypedArray;
use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType, PyWeakrefMethods, PyWeakrefReference,
};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use taut::traces::{Leaf, Static};
use taut::{Tensor, Variable};
use taut_autodiff::nest::Nest;

/// A structure.
pub enum Tree {
    Tensor(Tensor),
    /// A variable, and the object that it is to Python.
    Variable(Variable, Py<PyAny>),
    Value(Plain),
    List(Vec<Tree>),
    Tuple(Vec<Tree>),
    /// A tuple of a class of its own.
    Record(Py<PyType>, Vec<Tree>),
    /// By name, in the order of the names.
    Dict(Vec<(Plain, Tree)>),
    /// Rows of a table: the rows, their numbers, and the table's shape.
    Rows(Box<[Tree; 2]>, Vec<i64>),
}

/// A value that a function is traced for.
pub enum Plain {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Word(String),
    /// Anything else: the same if it is the same object, or an equal one of the same class.
    Object(Py<PyAny>),
    /// An object that is only the same as itself, by a weak reference: traces do not keep it.
    Weak(Py<PyWeakrefReference>),
}

impl Plain {
    pub fn of(object: &Bound<'_, PyAny>) -> Plain {
        if object.is_none() {
            return Plain::None;
        }
        if let Ok(value) = object.cast_exact::<PyBool>() {
            return Plain::Bool(value.is_true());
        }
        if let Ok(value) = object.cast_exact::<PyInt>()
            && let Ok(value) = value.extract::<i64>()
        {
            return Plain::Int(value);
        }
        if let Ok(value) = object.cast_exact::<PyFloat>()
            && let Ok(value) = value.extract::<f64>()
        {
            return Plain::Float(value);
        }
        if let Ok(value) = object.cast_exact::<PyString>()
            && let Ok(value) = value.to_str()
        {
            return Plain::Word(value.to_owned());
        }
        Plain::Object(object.clone().unbind())
    }

    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Plain::None => py.None().into_bound(py),
            Plain::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
            Plain::Int(value) => value.into_pyobject(py)?.into_any(),
            Plain::Float(value) => value.into_pyobject(py)?.into_any(),
            Plain::Word(value) => PyString::new(py, value).into_any(),
            Plain::Object(object) => object.bind(py).clone(),
            Plain::Weak(object) => object.bind(py).upgrade().unwrap_or_else(|| py.None().into_bound(py)),
        })
    }

    fn copy(&self) -> Plain {
        match self {
            Plain::None => Plain::None,
            Plain::Bool(value) => Plain::Bool(*value),
            Plain::Int(value) => Plain::Int(*value),
            Plain::Float(value) => Plain::Float(*value),
            Plain::Word(value) => Plain::Word(value.clone()),
            Plain::Object(object) => Plain::Object(Python::attach(|py| object.clone_ref(py))),
            Plain::Weak(object) => Plain::Weak(Python::attach(|py| object.clone_ref(py))),
        }
    }

    /// A weak reference to an object that equals nothing but itself; none if there is no such.
    fn weak(object: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
        let py = object.py();
        let equal = pyo3::intern!(py, "__eq__");
        if !object.get_type().getattr(equal)?.is(&py.get_type::<PyAny>().getattr(equal)?) {
            return Ok(None);
        }
        // What has no place for weak references is kept.
        Ok(PyWeakrefReference::new(object).ok().map(|made| Plain::Weak(made.unbind())))
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plain::None => f.write_str("None"),
            Plain::Bool(true) => f.write_str("True"),
            Plain::Bool(false) => f.write_str("False"),
            Plain::Int(value) => write!(f, "{value}"),
            Plain::Float(value) => write!(f, "{value:?}"),
            Plain::Word(value) => write!(f, "{value:?}"),
            Plain::Object(object) => {
                let text = Python::attach(|py| object.bind(py).repr().map(|text| text.to_string()));
                f.write_str(&text.unwrap_or_else(|_| "an object".into()))
            }
            Plain::Weak(object) => {
                let alive = Python::attach(|py| {
                    object.bind(py).upgrade().map(|object| Plain::Object(object.unbind()))
                });
                match alive {
                    Some(alive) => alive.fmt(f),
                    None => f.write_str("an object that is gone"),
                }
            }
        }
    }
}

impl Static for Plain {
    fn same(&self, other: &dyn Any) -> bool {
        let Some(other) = other.downcast_ref::<Plain>() else { return false };
        match (self, other) {
            (Plain::None, Plain::None) => true,
            (Plain::Bool(a), Plain::Bool(b)) => a == b,
            (Plain::Int(a), Plain::Int(b)) => a == b,
            (Plain::Float(a), Plain::Float(b)) => a.to_bits() == b.to_bits(),
            (Plain::Word(a), Plain::Word(b)) => a == b,
            (Plain::Object(a), Plain::Object(b)) => {
                a.is(b)
                    || Python::attach(|py| {
                        let (a, b) = (a.bind(py), b.bind(py));
                        // Only a plain yes counts: arrays and the like compare element by element.
                        a.get_type().is(b.get_type()) && a.eq(b).unwrap_or(false) && a.hash().is_ok()
                    })
            }
            (Plain::Weak(a), Plain::Weak(b)) => a.is(b),
            (Plain::Weak(kept), Plain::Object(object)) | (Plain::Object(object), Plain::Weak(kept)) => {
                Python::attach(|py| kept.bind(py).upgrade().is_some_and(|kept| kept.is(object)))
            }
            _ => false,
        }
    }

    fn boxed(&self) -> Box<dyn Static> {
        let weak = match self {
            Plain::Object(object) => Python::attach(|py| Plain::weak(object.bind(py)).ok().flatten()),
            _ => None,
        };
        Box::new(weak.unwrap_or_else(|| self.copy()))
    }

    fn is_expired(&self) -> bool {
        matches!(self, Plain::Weak(object) if Python::attach(|py| object.bind(py).upgrade().is_none()))
    }

    fn hash_value(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Plain::None => 0.hash(&mut hasher),
            Plain::Bool(value) => value.hash(&mut hasher),
            Plain::Int(value) => value.hash(&mut hasher),
            Plain::Float(value) => value.to_bits().hash(&mut hasher),
            Plain::Word(value) => value.hash(&mut hasher),
            // Equal objects have equal hashes; what has none is known by itself alone.
            Plain::Object(object) => {
                let own = Python::attach(|py| object.bind(py).hash());
                own.unwrap_or(object.as_ptr().addr() as isize).hash(&mut hasher);
            }
            // Only what is kept is weak, and it is asked for by the hash of what it was made of.
            Plain::Weak(object) => object.as_ptr().addr().hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// How leaves that are no tensors are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// Numbers stay values, arrays become tensors: arguments of functions.
    Arguments,
    /// Numbers become tensors: states of loops, results of functions.
    Tensors,
    /// As `Tensors`, in memory that nobody else can write to.
    Copies,
}

/// How deep structures may be: beyond it, something holds itself.
const DEEPEST: u32 = 200;

/// One level further into a structure.
pub struct Level(());

thread_local! {
    static LEVEL: Cell<u32> = const { Cell::new(0) };
}

impl Level {
    pub fn enter() -> PyResult<Level> {
        if LEVEL.get() >= DEEPEST {
            let text = format!("a structure is nested more than {DEEPEST} times, or holds itself");
            return Err(PyRecursionError::new_err(text));
        }
        LEVEL.set(LEVEL.get() + 1);
        Ok(Level(()))
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVEL.set(LEVEL.get() - 1);
    }
}

impl Tree {
    /// The structure of an object.
    pub fn of(object: &Bound<'_, PyAny>, leaves: Leaves) -> PyResult<Tree> {
        if let Ok(array) = object.cast::<Array>() {
            return Ok(match &array.get().0 {
                Kind::Tensor(tensor) => Tree::Tensor(tensor.clone()),
                Kind::Variable(variable) if leaves == Leaves::Arguments => {
                    Tree::Variable(variable.clone(), object.clone().unbind())
                }
                Kind::Variable(variable) => Tree::Tensor(read(variable)?),
            });
        }
        if let Ok(list) = object.cast_exact::<PyList>() {
            let _level = Level::enter()?;
            return Ok(Tree::List(list.iter().map(|part| Tree::of(&part, leaves)).collect::<PyResult<_>>()?));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            let _level = Level::enter()?;
            let parts = tuple.iter().map(|part| Tree::of(&part, leaves)).collect::<PyResult<_>>()?;
            if tuple.is_exact_instance_of::<PyTuple>() {
                return Ok(Tree::Tuple(parts));
            }
            if tuple.hasattr(pyo3::intern!(object.py(), "_fields"))? {
                return Ok(Tree::Record(tuple.get_type().unbind(), parts));
            }
            return Ok(Tree::Value(Plain::of(object)));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            let _level = Level::enter()?;
            let keys = dict.keys();
            keys.sort().map_err(|error| {
                PyTypeError::new_err(format!("the keys of a dict of tensors must have an order: {error}"))
            })?;
            let entry = |key: Bound<'_, PyAny>| -> PyResult<(Plain, Tree)> {
                let value =
                    dict.get_item(&key)?.unwrap_or_else(|| object.py().None().into_bound(object.py()));
                Ok((Plain::of(&key), Tree::of(&value, leaves)?))
            };
            return Ok(Tree::Dict(keys.iter().map(entry).collect::<PyResult<_>>()?));
        }
        if object.is_none() {
            return Ok(Tree::Value(Plain::None));
        }
        if leaves == Leaves::Arguments
            && let Ok(method) = object.getattr(pyo3::intern!(object.py(), "__taut_variable__"))
        {
            let inner = method.call0()?.cast_into::<Array>()?;
            return Ok(match &inner.get().0 {
                Kind::Variable(variable) => Tree::Variable(variable.clone(), object.clone().unbind()),
                Kind::Tensor(tensor) => Tree::Tensor(tensor.clone()),
            });
        }
        if object.is_instance(rows_class(object.py())?)? {
            let part = |name: &str| Tree::of(&object.getattr(name)?, Leaves::Tensors);
            let shape = object.getattr("dense_shape")?;
            let dims = if shape.is_none() { Vec::new() } else { convert::ints(&shape)? };
            return Ok(Tree::Rows(Box::new([part("values")?, part("indices")?]), dims));
        }
        let memory = if leaves == Leaves::Copies { Memory::Own } else { Memory::Share };
        let is_array = object.cast::<PyUntypedArray>().is_ok();
        if is_array || object.hasattr(pyo3::intern!(object.py(), "__taut_tensor__"))? {
            return Ok(Tree::Tensor(convert::tensor_of(object, None, memory)?));
        }
        if leaves != Leaves::Arguments
            && (convert::number(object)?.is_some()
                || object.hasattr(pyo3::intern!(object.py(), "__array__"))?)
        {
            return Ok(Tree::Tensor(convert::tensor_of(object, None, memory)?));
        }
        Ok(Tree::Value(Plain::of(object)))
    }

    /// The object of a structure.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Tree::Tensor(tensor) => wrap(py, tensor.clone())?,
            Tree::Variable(_, object) => object.bind(py).clone(),
            Tree::Value(value) => value.object(py)?,
            Tree::List(parts) => PyList::new(py, objects(py, parts)?)?.into_any(),
            Tree::Tuple(parts) => PyTuple::new(py, objects(py, parts)?)?.into_any(),
            Tree::Record(class, parts) => class.bind(py).call1(PyTuple::new(py, objects(py, parts)?)?)?,
            Tree::Dict(parts) => {
                let dict = PyDict::new(py);
                for (key, part) in parts {
                    dict.set_item(key.object(py)?, part.object(py)?)?;
                }
                dict.into_any()
            }
            Tree::Rows(parts, dims) => rows(py, [parts[0].object(py)?, parts[1].object(py)?], dims)?,
        })
    }

    /// The tensors and variables in it, in order.
    pub fn sources(&self, found: &mut Vec<taut::GradientSource>) {
        match self {
            Tree::Tensor(tensor) => found.push(taut::GradientSource::Tensor(tensor.clone())),
            Tree::Variable(variable, _) => found.push(taut::GradientSource::Variable(variable.clone())),
            Tree::Value(_) => {}
            Tree::List(parts) | Tree::Tuple(parts) | Tree::Record(_, parts) => {
                parts.iter().for_each(|part| part.sources(found));
            }
            Tree::Dict(parts) => parts.iter().for_each(|(_, part)| part.sources(found)),
            Tree::Rows(parts, _) => parts.iter().for_each(|part| part.sources(found)),
        }
    }

    /// Whether something in it is neither a tensor nor a number or word.
    pub fn holds_objects(&self) -> bool {
        match self {
            Tree::Tensor(_) | Tree::Variable(..) => false,
            Tree::Value(value) => matches!(value, Plain::Object(_) | Plain::Weak(_)),
            Tree::List(parts) | Tree::Tuple(parts) | Tree::Record(_, parts) => {
                parts.iter().any(Tree::holds_objects)
            }
            Tree::Dict(parts) => parts.iter().any(|(_, part)| part.holds_objects()),
            Tree::Rows(..) => false,
        }
    }

    /// The same structure as an object, with these in place of its tensors and variables.
    pub fn filled<'py>(
        &self,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut all = |parts: &[Tree]| -> PyResult<Vec<Bound<'py, PyAny>>> {
            parts.iter().map(|part| part.filled(py, leaves)).collect()
        };
        Ok(match self {
            Tree::Tensor(_) | Tree::Variable(..) => leaves.next().unwrap_or_else(|| py.None().into_bound(py)),
            Tree::Value(value) => value.object(py)?,
            Tree::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
            Tree::Tuple(parts) => PyTuple::new(py, all(parts)?)?.into_any(),
            Tree::Record(class, parts) => class.bind(py).call1(PyTuple::new(py, all(parts)?)?)?,
            Tree::Dict(parts) => {
                let dict = PyDict::new(py);
                for (key, part) in parts {
                    dict.set_item(key.object(py)?, part.filled(py, leaves)?)?;
                }
                dict.into_any()
            }
            Tree::Rows(parts, dims) => {
                let filled = all(&parts[..])?;
                let [values, indices] =
                    filled.try_into().map_err(|_| PyTypeError::new_err("rows have two parts"))?;
                rows(py, [values, indices], dims)?
            }
        })
    }
}

impl Clone for Tree {
    fn clone(&self) -> Tree {
        // With no tensors in place of its own, a structure keeps those that it has.
        self.rebuild(&mut std::iter::empty())
    }
}

fn objects<'py>(py: Python<'py>, parts: &[Tree]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    parts.iter().map(|part| part.object(py)).collect()
}

static ROWS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn rows_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    ROWS.import(py, "taut.sparse", "IndexedSlices")
}

/// Rows of a table as an object.
pub fn rows<'py>(
    py: Python<'py>,
    parts: [Bound<'py, PyAny>; 2],
    dims: &[i64],
) -> PyResult<Bound<'py, PyAny>> {
    let [values, indices] = parts;
    let shape = if dims.is_empty() { py.None().into_bound(py) } else { PyTuple::new(py, dims)?.into_any() };
    rows_class(py)?.call1((values, indices, shape))
}

impl Nest for Tree {
    type Owned = Tree;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        match self {
            Tree::Tensor(tensor) => visit(Leaf::Tensor(tensor)),
            Tree::Variable(variable, _) => visit(Leaf::Variable(variable)),
            Tree::Value(value) => visit(Leaf::Value(value)),
            Tree::List(parts) | Tree::Tuple(parts) | Tree::Record(_, parts) => {
                visit(Leaf::Parts(parts.len()));
                parts.iter().for_each(|part| part.leaves(visit));
            }
            Tree::Dict(parts) => {
                visit(Leaf::Parts(parts.len()));
                for (key, part) in parts {
                    match key {
                        Plain::Word(name) => visit(Leaf::Name(name)),
                        other => visit(Leaf::Value(other)),
                    }
                    part.leaves(visit);
                }
            }
            Tree::Rows(parts, dims) => {
                visit(Leaf::Parts(2 + dims.len()));
                parts.iter().for_each(|part| part.leaves(visit));
                dims.iter().for_each(|dim| visit(Leaf::Value(dim)));
            }
        }
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Tree {
        let mut all = |parts: &[Tree]| parts.iter().map(|part| part.rebuild(tensors)).collect::<Vec<Tree>>();
        match self {
            Tree::Tensor(tensor) => Tree::Tensor(tensors.next().unwrap_or_else(|| tensor.clone())),
            Tree::Variable(variable, object) => {
                Tree::Variable(variable.clone(), Python::attach(|py| object.clone_ref(py)))
            }
            Tree::Value(value) => Tree::Value(value.copy()),
            Tree::List(parts) => Tree::List(all(parts)),
            Tree::Tuple(parts) => Tree::Tuple(all(parts)),
            Tree::Record(class, parts) => Tree::Record(Python::attach(|py| class.clone_ref(py)), all(parts)),
            Tree::Dict(parts) => {
                Tree::Dict(parts.iter().map(|(key, part)| (key.copy(), part.rebuild(tensors))).collect())
            }
            Tree::Rows(parts, dims) => {
                let [values, indices] = &**parts;
                Tree::Rows(Box::new([values.rebuild(tensors), indices.rebuild(tensors)]), dims.clone())
            }
        }
    }
}
