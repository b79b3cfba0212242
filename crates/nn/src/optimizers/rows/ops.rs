//! The ops of sparse updates. They have no gradients: updates are not differentiated.
//!
//! Ids are checked once, by [`group`]. The later ops cannot fail, so a table that is updated in place is never left half updated.

use taut_core::{DType, Effects, Error, Op, Result, Shape, Spec, Specs, Tensor, apply, apply_many};
use taut_kernels::index::{self, Groups};
use taut_kernels::{Arg, ViewMut, elementwise};

/// Ids, grouped by value.
#[derive(Clone, Debug)]
pub(super) struct GroupedIds {
    /// The ids.
    pub(super) ids: Tensor,
    /// Positions of the ids in sorted order, so that equal ids are neighbours.
    order: Tensor,
    /// The start of each group in `order`.
    starts: Tensor,
    /// The number of groups: a scalar `int64`.
    pub(super) count: Tensor,
}

/// Sorts ids, all of which must be in `0..limit`.
#[derive(Clone, Debug)]
struct GroupIds {
    limit: usize,
}

impl Op for GroupIds {
    fn name(&self) -> &'static str {
        "group_ids"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if !dtype.is_integer() || shape.rank() != 1 {
            return Err(Error::shape(format!("row ids must be integers of rank 1, got {}", inputs[0])));
        }
        // A sort key packs an id and a position into 64 bits.
        if i32::try_from(shape[0]).is_err() || u32::try_from(self.limit).is_err() {
            let message = format!(
                "a sparse update takes < 2^31 ids of < 2^32 rows, got {} of {}",
                shape[0], self.limit
            );
            return Err(Error::value(message));
        }
        let positions = Spec::new(DType::I32, shape.clone());
        Ok([positions.clone(), positions, Spec::new(DType::I64, Shape::scalar())].into_iter().collect())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let [order, starts, count] = outputs else { return Err(Error::value("group_ids has three outputs")) };
        let found = index::group(inputs[0].view(), self.limit, order.reborrow(), starts.reborrow(), scratch)?;
        count.slice::<i64>()[0] = found as i64;
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        index::group_scratch(inputs[0].shape.len())
    }

    fn attributes(&self) -> String {
        format!("limit={}", self.limit)
    }
}

/// Groups equal ids, all of which must be in `0..limit`.
pub(super) fn group(ids: &Tensor, limit: usize) -> Result<GroupedIds> {
    let outputs = apply_many(&GroupIds { limit }, vec![ids.clone()])?;
    let [order, starts, count] = &outputs[..] else {
        return Err(Error::value("group_ids has three outputs"));
    };
    Ok(GroupedIds { ids: ids.clone(), order: order.clone(), starts: starts.clone(), count: count.clone() })
}

/// The sums of `groups` groups of rows.
#[derive(Clone, Debug)]
struct SumGroups {
    groups: usize,
}

impl Op for SumGroups {
    fn name(&self) -> &'static str {
        "sum_groups"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let rows = inputs[0];
        let shape = rows.shape.clone().without(0).with_inserted(0, self.groups);
        let sums = Spec { dtype: rows.dtype, shape };
        Ok([Spec::new(DType::I64, [self.groups]), sums].into_iter().collect())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let [ids, sums] = outputs else { return Err(Error::value("sum_groups has two outputs")) };
        let first = inputs[4].view();
        let first = first.data::<i64>()[first.offset()];
        let groups = Groups { ids: inputs[1].view(), order: inputs[2].view(), starts: inputs[3].view() };
        // A negative number is out of range, like one that is too large.
        let first = usize::try_from(first).unwrap_or(usize::MAX / 2);
        index::group_sum(inputs[0].view(), &groups, first, ids.reborrow(), sums.reborrow());
        Ok(())
    }

    fn effects(&self) -> Effects {
        Effects::NONE
    }

    fn attributes(&self) -> String {
        format!("groups={}", self.groups)
    }
}

impl GroupedIds {
    /// The ids of `groups` groups from number `first` on, and the sums of their rows; -1 and zeros beyond the last group.
    pub(super) fn sums(&self, rows: &Tensor, first: &Tensor, groups: usize) -> Result<(Tensor, Tensor)> {
        let inputs = [rows, &self.ids, &self.order, &self.starts, first].map(Tensor::clone);
        let outputs = apply_many(&SumGroups { groups }, inputs.to_vec())?;
        Ok((outputs[0].clone(), outputs[1].clone()))
    }
}

#[derive(Clone, Debug)]
struct TakeRows;

impl Op for TakeRows {
    fn name(&self) -> &'static str {
        "take_rows"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (x, ids) = (inputs[0], inputs[1]);
        let shape = x.shape.clone().without(0).with_inserted(0, ids.shape.len());
        Ok(Spec { dtype: x.dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        index::take_rows(inputs[0].view(), inputs[1].view(), outputs[0].reborrow());
        Ok(())
    }

    fn effects(&self) -> Effects {
        Effects::NONE
    }
}

/// Gathers the rows of these ids; zeros for ids out of range.
pub(super) fn take_rows(x: &Tensor, ids: &Tensor) -> Result<Tensor> {
    apply(&TakeRows, [x.clone(), ids.clone()])
}

#[derive(Clone, Debug)]
struct PutRows;

impl Op for PutRows {
    fn name(&self) -> &'static str {
        "put_rows"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (x, ids, rows) = (inputs[0], inputs[1], inputs[2]);
        let expected = x.shape.clone().without(0).with_inserted(0, ids.shape.len());
        if rows.shape != expected || rows.dtype != x.dtype {
            return Err(Error::shape(format!("rows must be {}{expected}, got {rows}", x.dtype)));
        }
        Ok(x.clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        if let Arg::View(x) = inputs[0] {
            elementwise::copy(x, outputs[0].reborrow());
        }
        index::put_rows(outputs[0].reborrow(), inputs[1].view(), inputs[2].view());
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn effects(&self) -> Effects {
        Effects::NONE
    }
}

/// Scatters rows to these ids; rows whose ids are out of range are dropped.
pub(super) fn put_rows(x: Tensor, ids: &Tensor, rows: Tensor) -> Result<Tensor> {
    apply(&PutRows, [x, ids.clone(), rows])
}
