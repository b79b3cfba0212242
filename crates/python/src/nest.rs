//! Nested Python structures for the engine: tensors, variables and other values in lists, tuples and dicts.

use crate::array::{Array, ArrayValue, is_shape, read, wrap};
use crate::containers::{DictForm, NestingLevel, TRACED, check_hashable, flattened, named_tuple};
use crate::convert;
use crate::numpy::Memory;
use crate::strings;
use crate::variable::{argument_object, variable_class};
use ::numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType, PyWeakrefMethods,
    PyWeakrefReference,
};
use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use taut::strings::StringTensor;
use taut::traces::{Leaf, Static};
use taut::{Tensor, Variable};
use taut_autodiff::nest::{Nest, rebuilt_variable};

/// A nested structure.
pub enum Tree {
    Tensor(Tensor),
    Strings(StringTensor),
    /// An object made of tensors, such as a `RaggedTensor`: its class, and its parts.
    Composite(Py<PyType>, Vec<Tree>),
    /// A variable, and its Python object.
    Variable(Variable, Py<PyAny>),
    /// A variable inside of an object of another class, which belongs to the signature itself.
    BoundVariable(Variable, Py<PyAny>),
    Value(StaticValue),
    List(Vec<Tree>),
    Tuple(Vec<Tree>),
    /// A named tuple or an extension type: its class, and its fields.
    NamedTuple(Py<PyType>, Vec<Tree>),
    /// Keys and values, in the order of the keys.
    Dict(Vec<(StaticValue, Tree)>, DictForm),
    /// An `IndexedSlices`: values and indices, and the dense shape.
    IndexedSlices(Box<[Tree; 2]>, Vec<i64>),
}

/// A value other than a tensor, which is part of a trace's signature.
pub enum StaticValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    /// Any other object: equal if it is the same object, or an equal one of the same class.
    Object(Py<PyAny>),
    /// A weak reference to an object that is equal only to itself: traces do not keep it alive.
    Weak(Py<PyWeakrefReference>),
}

impl StaticValue {
    pub fn of(object: &Bound<'_, PyAny>) -> StaticValue {
        if object.is_none() {
            return StaticValue::None;
        }
        if let Ok(value) = object.cast_exact::<PyBool>() {
            return StaticValue::Bool(value.is_true());
        }
        if let Ok(value) = object.cast_exact::<PyInt>()
            && let Ok(value) = value.extract::<i64>()
        {
            return StaticValue::Int(value);
        }
        if let Ok(value) = object.cast_exact::<PyFloat>()
            && let Ok(value) = value.extract::<f64>()
        {
            return StaticValue::Float(value);
        }
        if let Ok(value) = object.cast_exact::<PyString>()
            && let Ok(value) = value.to_str()
        {
            return StaticValue::Str(value.to_owned());
        }
        StaticValue::Object(object.clone().unbind())
    }

    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            StaticValue::None => py.None().into_bound(py),
            StaticValue::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
            StaticValue::Int(value) => value.into_pyobject(py)?.into_any(),
            StaticValue::Float(value) => value.into_pyobject(py)?.into_any(),
            StaticValue::Str(value) => PyString::new(py, value).into_any(),
            StaticValue::Object(object) => object.bind(py).clone(),
            StaticValue::Weak(object) => {
                object.bind(py).upgrade().unwrap_or_else(|| py.None().into_bound(py))
            }
        })
    }

    pub fn copy(&self) -> StaticValue {
        match self {
            StaticValue::None => StaticValue::None,
            StaticValue::Bool(value) => StaticValue::Bool(*value),
            StaticValue::Int(value) => StaticValue::Int(*value),
            StaticValue::Float(value) => StaticValue::Float(*value),
            StaticValue::Str(value) => StaticValue::Str(value.clone()),
            StaticValue::Object(object) => StaticValue::Object(Python::attach(|py| object.clone_ref(py))),
            StaticValue::Weak(object) => StaticValue::Weak(Python::attach(|py| object.clone_ref(py))),
        }
    }

    /// A weak reference to an object that compares by identity; `None` for other objects.
    fn weak(object: &Bound<'_, PyAny>) -> PyResult<Option<StaticValue>> {
        let py = object.py();
        let equal = pyo3::intern!(py, "__eq__");
        if !object.get_type().getattr(equal)?.is(&py.get_type::<PyAny>().getattr(equal)?) {
            return Ok(None);
        }
        // An object without support for weak references is kept alive.
        Ok(PyWeakrefReference::new(object).ok().map(|made| StaticValue::Weak(made.unbind())))
    }
}

impl fmt::Debug for StaticValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StaticValue::None => f.write_str("None"),
            StaticValue::Bool(true) => f.write_str("True"),
            StaticValue::Bool(false) => f.write_str("False"),
            StaticValue::Int(value) => write!(f, "{value}"),
            StaticValue::Float(value) => write!(f, "{value:?}"),
            StaticValue::Str(value) => write!(f, "{value:?}"),
            StaticValue::Object(object) => {
                let text = Python::attach(|py| object.bind(py).repr().map(|text| text.to_string()));
                f.write_str(&text.unwrap_or_else(|_| "an object".into()))
            }
            StaticValue::Weak(object) => {
                let alive = Python::attach(|py| {
                    object.bind(py).upgrade().map(|object| StaticValue::Object(object.unbind()))
                });
                match alive {
                    Some(alive) => alive.fmt(f),
                    None => f.write_str("a deleted object"),
                }
            }
        }
    }
}

impl Static for StaticValue {
    fn same(&self, other: &dyn Any) -> bool {
        let Some(other) = other.downcast_ref::<StaticValue>() else { return false };
        match (self, other) {
            (StaticValue::None, StaticValue::None) => true,
            (StaticValue::Bool(a), StaticValue::Bool(b)) => a == b,
            (StaticValue::Int(a), StaticValue::Int(b)) => a == b,
            (StaticValue::Float(a), StaticValue::Float(b)) => a.to_bits() == b.to_bits(),
            (StaticValue::Str(a), StaticValue::Str(b)) => a == b,
            (StaticValue::Object(a), StaticValue::Object(b)) => {
                a.is(b)
                    || Python::attach(|py| {
                        let (a, b) = (a.bind(py), b.bind(py));
                        // Only a hashable object with a true `==` counts: arrays compare elementwise.
                        a.get_type().is(b.get_type()) && a.eq(b).unwrap_or(false) && a.hash().is_ok()
                    })
            }
            (StaticValue::Weak(a), StaticValue::Weak(b)) => a.is(b),
            (StaticValue::Weak(kept), StaticValue::Object(object))
            | (StaticValue::Object(object), StaticValue::Weak(kept)) => {
                Python::attach(|py| kept.bind(py).upgrade().is_some_and(|kept| kept.is(object)))
            }
            _ => false,
        }
    }

    fn boxed(&self) -> Box<dyn Static> {
        let weak = match self {
            StaticValue::Object(object) => {
                Python::attach(|py| StaticValue::weak(object.bind(py)).ok().flatten())
            }
            _ => None,
        };
        Box::new(weak.unwrap_or_else(|| self.copy()))
    }

    fn is_expired(&self) -> bool {
        matches!(self, StaticValue::Weak(object) if Python::attach(|py| object.bind(py).upgrade().is_none()))
    }

    fn hash_value(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            StaticValue::None => 0.hash(&mut hasher),
            StaticValue::Bool(value) => value.hash(&mut hasher),
            StaticValue::Int(value) => value.hash(&mut hasher),
            StaticValue::Float(value) => value.to_bits().hash(&mut hasher),
            StaticValue::Str(value) => value.hash(&mut hasher),
            // Equal objects have equal hashes; unhashable ones are compared by identity.
            StaticValue::Object(object) => {
                let own = Python::attach(|py| object.bind(py).hash());
                own.unwrap_or(object.as_ptr().addr() as isize).hash(&mut hasher);
            }
            // A weak reference exists only in a stored signature, which is found by the hash of the original object.
            StaticValue::Weak(object) => object.as_ptr().addr().hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// How leaves that are not tensors are converted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// Numbers stay values, arrays become tensors: for arguments of functions.
    Arguments,
    /// As `Arguments`, of which a signature is made: what compares by a content that may change is refused.
    Signature,
    /// Numbers become tensors: for states of loops and results of functions.
    Tensors,
    /// As `Tensors`, without sharing writable memory.
    Copies,
}

impl Leaves {
    /// Whether numbers stay values.
    fn keep_numbers(self) -> bool {
        matches!(self, Leaves::Arguments | Leaves::Signature)
    }
}

impl Tree {
    /// Converts a Python object.
    pub fn of(object: &Bound<'_, PyAny>, leaves: Leaves) -> PyResult<Tree> {
        if let Ok(array) = object.cast::<Array>() {
            return Ok(match &array.get().0 {
                ArrayValue::Tensor(tensor) => Tree::Tensor(tensor.clone()),
                ArrayValue::Strings(strings) => Tree::Strings(strings.clone()),
                ArrayValue::Variable(variable) if leaves.keep_numbers() => {
                    let (variable, own) = (variable.clone(), object.clone().unbind());
                    // Of an object of another class, nothing is known but that it is a variable.
                    if object.get_type().is(variable_class(object.py())?) {
                        Tree::Variable(variable, own)
                    } else {
                        Tree::BoundVariable(variable, own)
                    }
                }
                ArrayValue::Variable(variable) => Tree::Tensor(read(variable)?),
            });
        }
        if let Ok(list) = object.cast::<PyList>() {
            let _level = NestingLevel::enter()?;
            let parts = list.iter().map(|part| Tree::of(&part, leaves));
            return Ok(Tree::List(convert::collected(list.len(), parts)?));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            let _level = NestingLevel::enter()?;
            let parts = tuple.iter().map(|part| Tree::of(&part, leaves));
            let parts = convert::collected(tuple.len(), parts)?;
            if tuple.is_exact_instance_of::<PyTuple>() {
                return Ok(Tree::Tuple(parts));
            }
            if tuple.hasattr(pyo3::intern!(object.py(), "_fields"))? {
                return Ok(Tree::NamedTuple(tuple.get_type().unbind(), parts));
            }
            return Ok(Tree::Value(StaticValue::of(object)));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            let _level = NestingLevel::enter()?;
            let keys = dict.keys();
            keys.sort().map_err(|error| {
                PyTypeError::new_err(format!("the keys of a dict of tensors must be sortable: {error}"))
            })?;
            let entry = |key: Bound<'_, PyAny>| -> PyResult<(StaticValue, Tree)> {
                let value =
                    dict.get_item(&key)?.unwrap_or_else(|| object.py().None().into_bound(object.py()));
                Ok((StaticValue::of(&key), Tree::of(&value, leaves)?))
            };
            let parts = convert::collected(keys.len(), keys.iter().map(entry))?;
            return Ok(Tree::Dict(parts, DictForm::of(dict, &keys)?));
        }
        if object.is_none() {
            return Ok(Tree::Value(StaticValue::None));
        }
        if leaves.keep_numbers()
            && let Ok(method) = object.getattr(pyo3::intern!(object.py(), "__taut_variable__"))
        {
            let inner = method.call0()?.cast_into::<Array>()?;
            return Ok(match &inner.get().0 {
                ArrayValue::Variable(variable) => {
                    Tree::BoundVariable(variable.clone(), object.clone().unbind())
                }
                ArrayValue::Tensor(tensor) => Tree::Tensor(tensor.clone()),
                ArrayValue::Strings(strings) => Tree::Strings(strings.clone()),
            });
        }
        if object.is_instance(indexed_slices_class(object.py())?)? {
            let part = |name: &str| Tree::of(&object.getattr(name)?, Leaves::Tensors);
            let shape = object.getattr("_static_shape")?;
            let dims = if shape.is_none() { Vec::new() } else { convert::ints(&shape)? };
            return Ok(Tree::IndexedSlices(Box::new([part("values")?, part("indices")?]), dims));
        }
        if let Ok(method) = object.getattr(pyo3::intern!(object.py(), "_taut_parts")) {
            let _level = NestingLevel::enter()?;
            let parts = method.call0()?.cast_into::<PyTuple>()?;
            let parts = parts.iter().map(|part| Tree::of(&part, leaves)).collect::<PyResult<_>>()?;
            let (class, traced) = (object.get_type(), object.hasattr(pyo3::intern!(object.py(), TRACED))?);
            return Ok(if traced { Tree::NamedTuple } else { Tree::Composite }(class.unbind(), parts));
        }
        let memory = if leaves == Leaves::Copies { Memory::Own } else { Memory::Share };
        let is_array = object.cast::<PyUntypedArray>().is_ok();
        if is_array && strings::is_strings(object) {
            return Ok(Tree::Strings(strings::strings_of(object)?));
        }
        if is_array
            || object.hasattr(pyo3::intern!(object.py(), "__taut_tensor__"))?
            || convert::is_numpy_scalar(object)?
        {
            return Ok(Tree::Tensor(convert::tensor_of(object, None, memory)?));
        }
        if !leaves.keep_numbers()
            && (object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>())
        {
            return Ok(Tree::Strings(strings::strings_of(object)?));
        }
        if !leaves.keep_numbers()
            && (convert::number(object)?.is_some()
                || is_shape(object)?
                || object.hasattr(pyo3::intern!(object.py(), "__array__"))?)
        {
            return Ok(Tree::Tensor(convert::tensor_of(object, None, memory)?));
        }
        if let Some((metadata, components)) = flattened(object)? {
            let _level = NestingLevel::enter()?;
            let parts = vec![Tree::Value(StaticValue::of(&metadata)), Tree::of(&components, leaves)?];
            return Ok(Tree::NamedTuple(object.get_type().unbind(), parts));
        }
        check_hashable(object, leaves)?;
        Ok(Tree::Value(StaticValue::of(object)))
    }

    /// Converts back to a Python object.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Tree::Tensor(tensor) => wrap(py, tensor.clone())?,
            Tree::Strings(strings) => strings::wrap_strings(py, strings.clone())?,
            Tree::Composite(class, parts) => composite(py, class, objects(py, parts)?)?,
            Tree::Variable(variable, object) => argument_object(object.bind(py), variable)?,
            Tree::BoundVariable(_, object) => object.bind(py).clone(),
            Tree::Value(value) => value.object(py)?,
            Tree::List(parts) => PyList::new(py, objects(py, parts)?)?.into_any(),
            Tree::Tuple(parts) => PyTuple::new(py, objects(py, parts)?)?.into_any(),
            Tree::NamedTuple(class, parts) => named_tuple(py, class, objects(py, parts)?)?,
            Tree::Dict(parts, form) => {
                let values = parts.iter().map(|(_, part)| part.object(py)).collect::<PyResult<_>>()?;
                form.filled(py, parts, values)?
            }
            Tree::IndexedSlices(parts, dims) => {
                indexed_slices(py, [parts[0].object(py)?, parts[1].object(py)?], dims)?
            }
        })
    }

    /// Collects the tensors and variables, in order.
    pub fn sources(&self, found: &mut Vec<taut::GradientSource>) {
        match self {
            Tree::Tensor(tensor) => found.push(taut::GradientSource::Tensor(tensor.clone())),
            Tree::Variable(variable, _) | Tree::BoundVariable(variable, _) => {
                found.push(taut::GradientSource::Variable(variable.clone()));
            }
            Tree::Value(_) | Tree::Strings(_) => {}
            Tree::Composite(_, parts)
            | Tree::List(parts)
            | Tree::Tuple(parts)
            | Tree::NamedTuple(_, parts) => {
                parts.iter().for_each(|part| part.sources(found));
            }
            Tree::Dict(parts, _) => parts.iter().for_each(|(_, part)| part.sources(found)),
            Tree::IndexedSlices(parts, _) => parts.iter().for_each(|part| part.sources(found)),
        }
    }

    /// Whether it contains strings or composite tensors, whose sizes are not those of their shapes: functions of them are not
    /// traced but called.
    pub fn holds_strings(&self) -> bool {
        match self {
            Tree::Strings(_) | Tree::Composite(..) => true,
            Tree::Tensor(_)
            | Tree::Variable(..)
            | Tree::BoundVariable(..)
            | Tree::Value(_)
            | Tree::IndexedSlices(..) => false,
            Tree::List(parts) | Tree::Tuple(parts) | Tree::NamedTuple(_, parts) => {
                parts.iter().any(Tree::holds_strings)
            }
            Tree::Dict(parts, _) => parts.iter().any(|(_, part)| part.holds_strings()),
        }
    }

    /// Whether it has objects made of tensors, such as ragged tensors.
    pub fn holds_composites(&self) -> bool {
        match self {
            Tree::Composite(..) => true,
            Tree::List(parts) | Tree::Tuple(parts) | Tree::NamedTuple(_, parts) => {
                parts.iter().any(Tree::holds_composites)
            }
            Tree::Dict(parts, _) => parts.iter().any(|(_, part)| part.holds_composites()),
            _ => false,
        }
    }

    /// The structure with strings and composite tensors as plain values, which a trace does not replace.
    pub fn with_static_strings(self, py: Python<'_>) -> PyResult<Tree> {
        let all = |parts: Vec<Tree>| -> PyResult<Vec<Tree>> {
            parts.into_iter().map(|part| part.with_static_strings(py)).collect()
        };
        Ok(match self {
            Tree::Strings(_) | Tree::Composite(..) => {
                Tree::Value(StaticValue::Object(self.object(py)?.unbind()))
            }
            Tree::List(parts) => Tree::List(all(parts)?),
            Tree::Tuple(parts) => Tree::Tuple(all(parts)?),
            Tree::NamedTuple(class, parts) => Tree::NamedTuple(class, all(parts)?),
            Tree::Dict(parts, form) => {
                let entry = |(key, part): (StaticValue, Tree)| Ok((key, part.with_static_strings(py)?));
                Tree::Dict(parts.into_iter().map(entry).collect::<PyResult<_>>()?, form)
            }
            other => other,
        })
    }

    /// Whether it contains an object other than tensors of numbers, numbers and Python strings.
    pub fn holds_objects(&self) -> bool {
        match self {
            Tree::Strings(_) | Tree::Composite(..) => true,
            Tree::Tensor(_) | Tree::Variable(..) | Tree::BoundVariable(..) => false,
            Tree::Value(value) => matches!(value, StaticValue::Object(_) | StaticValue::Weak(_)),
            Tree::List(parts) | Tree::Tuple(parts) | Tree::NamedTuple(_, parts) => {
                parts.iter().any(Tree::holds_objects)
            }
            Tree::Dict(parts, _) => parts.iter().any(|(_, part)| part.holds_objects()),
            Tree::IndexedSlices(..) => false,
        }
    }

    /// Converts back to a Python object with these leaves in place of tensors and variables.
    pub fn filled<'py>(
        &self,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut all = |parts: &[Tree]| -> PyResult<Vec<Bound<'py, PyAny>>> {
            parts.iter().map(|part| part.filled(py, leaves)).collect()
        };
        Ok(match self {
            Tree::Tensor(_) | Tree::Variable(..) | Tree::BoundVariable(..) => {
                leaves.next().unwrap_or_else(|| py.None().into_bound(py))
            }
            Tree::Strings(strings) => strings::wrap_strings(py, strings.clone())?,
            Tree::Composite(class, parts) => composite(py, class, all(parts)?)?,
            Tree::Value(value) => value.object(py)?,
            Tree::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
            Tree::Tuple(parts) => PyTuple::new(py, all(parts)?)?.into_any(),
            Tree::NamedTuple(class, parts) => named_tuple(py, class, all(parts)?)?,
            Tree::Dict(parts, form) => {
                let values =
                    parts.iter().map(|(_, part)| part.filled(py, leaves)).collect::<PyResult<_>>()?;
                form.filled(py, parts, values)?
            }
            Tree::IndexedSlices(parts, dims) => {
                let filled = all(&parts[..])?;
                let [values, indices] = filled
                    .try_into()
                    .map_err(|_| PyTypeError::new_err("IndexedSlices has two components"))?;
                indexed_slices(py, [values, indices], dims)?
            }
        })
    }
}

impl Clone for Tree {
    fn clone(&self) -> Tree {
        // `rebuild` without tensors keeps the structure's own.
        self.rebuild(&mut std::iter::empty())
    }
}

fn objects<'py>(py: Python<'py>, parts: &[Tree]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    parts.iter().map(|part| part.object(py)).collect()
}

/// An object of a class that is made of tensors, from its parts.
pub fn composite<'py>(
    py: Python<'py>,
    class: &Py<PyType>,
    parts: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    class.bind(py).call_method1(pyo3::intern!(py, "_taut_from_parts"), PyTuple::new(py, parts)?)
}

static INDEXED_SLICES: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn indexed_slices_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    INDEXED_SLICES.import(py, "taut.indexed_slices", "IndexedSlices")
}

/// A Python `IndexedSlices`.
pub fn indexed_slices<'py>(
    py: Python<'py>,
    parts: [Bound<'py, PyAny>; 2],
    dims: &[i64],
) -> PyResult<Bound<'py, PyAny>> {
    let [values, indices] = parts;
    let shape = if dims.is_empty() { py.None().into_bound(py) } else { PyTuple::new(py, dims)?.into_any() };
    indexed_slices_class(py)?.call1((values, indices, shape))
}

impl Nest for Tree {
    type Owned = Tree;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        match self {
            Tree::Tensor(tensor) => visit(Leaf::Tensor(tensor)),
            Tree::Strings(strings) => strings.leaves(visit),
            Tree::Variable(variable, _) => visit(Leaf::Variable(variable)),
            Tree::BoundVariable(variable, _) => visit(Leaf::BoundVariable(variable)),
            Tree::Value(value) => visit(Leaf::Value(value)),
            Tree::Composite(_, parts)
            | Tree::List(parts)
            | Tree::Tuple(parts)
            | Tree::NamedTuple(_, parts) => {
                visit(Leaf::Parts(parts.len()));
                parts.iter().for_each(|part| part.leaves(visit));
            }
            Tree::Dict(parts, _) => {
                visit(Leaf::Parts(parts.len()));
                for (key, part) in parts {
                    match key {
                        StaticValue::Str(name) => visit(Leaf::Name(name)),
                        other => visit(Leaf::Value(other)),
                    }
                    part.leaves(visit);
                }
            }
            Tree::IndexedSlices(parts, dims) => {
                visit(Leaf::Parts(2 + dims.len()));
                parts.iter().for_each(|part| part.leaves(visit));
                dims.iter().for_each(|dim| visit(Leaf::Value(dim)));
            }
        }
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Tree {
        let mut all = |parts: &[Tree]| parts.iter().map(|part| part.rebuild(tensors)).collect::<Vec<Tree>>();
        match self {
            Tree::Strings(strings) => Tree::Strings(strings.rebuild(tensors)),
            Tree::Composite(class, parts) => {
                Tree::Composite(Python::attach(|py| class.clone_ref(py)), all(parts))
            }
            Tree::Tensor(tensor) => Tree::Tensor(tensors.next().unwrap_or_else(|| tensor.clone())),
            Tree::Variable(variable, object) => {
                Tree::Variable(rebuilt_variable(variable), Python::attach(|py| object.clone_ref(py)))
            }
            Tree::BoundVariable(variable, object) => {
                Tree::BoundVariable(variable.clone(), Python::attach(|py| object.clone_ref(py)))
            }
            Tree::Value(value) => Tree::Value(value.copy()),
            Tree::List(parts) => Tree::List(all(parts)),
            Tree::Tuple(parts) => Tree::Tuple(all(parts)),
            Tree::NamedTuple(class, parts) => {
                Tree::NamedTuple(Python::attach(|py| class.clone_ref(py)), all(parts))
            }
            Tree::Dict(parts, form) => {
                let parts = parts.iter().map(|(key, part)| (key.copy(), part.rebuild(tensors))).collect();
                Tree::Dict(parts, form.clone())
            }
            Tree::IndexedSlices(parts, dims) => {
                let [values, indices] = &**parts;
                Tree::IndexedSlices(
                    Box::new([values.rebuild(tensors), indices.rebuild(tensors)]),
                    dims.clone(),
                )
            }
        }
    }
}
