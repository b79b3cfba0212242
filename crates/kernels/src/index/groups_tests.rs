use super::testing::*;
use super::*;
use crate::DType;

fn grouped(ids: &Array, limit: usize) -> (Array, Array, usize) {
    let count = ids.shape[0];
    let (mut order, mut starts) = (Array::zeros(DType::I32, &[count]), Array::zeros(DType::I32, &[count]));
    let mut room = scratch(group_scratch(count));
    let room = bytemuck::cast_slice_mut(&mut room);
    let groups = group(ids.view(), limit, order.out(), starts.out(), room).unwrap();
    (order, starts, groups)
}

/// Lists of ids with different repetitions, longer than a tile.
fn lists() -> Vec<Vec<f64>> {
    let many = (0..300).map(|i| f64::from(i * 7 % 41)).collect();
    vec![vec![], vec![3.0], vec![5.0; 4], vec![4.0, 0.0, 4.0, 2.0, 0.0, 4.0], many]
}

#[test]
fn groups_are_the_distinct_ids_in_order() {
    for ids in lists() {
        for layout in LAYOUTS {
            let list = Array::laid_out(layout, DType::I64, &[ids.len()], &ids);
            let (order, starts, groups) = grouped(&list, 50);
            let mut sorted: Vec<usize> = (0..ids.len()).collect();
            sorted.sort_by(|&a, &b| ids[a].total_cmp(&ids[b]));
            assert_eq!(order.values(), sorted.iter().map(|&i| i as f64).collect::<Vec<_>>());
            let begins = |&i: &usize| i == 0 || ids[sorted[i]] != ids[sorted[i - 1]];
            let mut wanted: Vec<f64> = (0..ids.len()).filter(begins).map(|i| i as f64).collect();
            assert_eq!(groups, wanted.len());
            wanted.resize(ids.len(), ids.len() as f64);
            assert_eq!(starts.values(), wanted);
        }
    }
}

#[test]
fn ids_out_of_range_are_rejected_with_value_and_position() {
    for (value, limit) in [(-1.0, 9), (9.0, 9), (0.0, 0)] {
        let ids = Array::new(DType::I64, &[1], &[value]);
        let (mut order, mut starts) = (Array::zeros(DType::I32, &[1]), Array::zeros(DType::I32, &[1]));
        let bad =
            group(ids.view(), limit, order.out(), starts.out(), bytemuck::cast_slice_mut(&mut scratch(8)))
                .unwrap_err();
        assert_eq!(bad, BadIndex { value: value as i64, limit, position: 0, axis: 0 });
    }
}

#[test]
fn sums_follow_the_definition_for_all_types_and_layouts() {
    for ids in lists() {
        for dtype in DType::REAL.into_iter().filter(|&dtype| dtype != DType::Bool) {
            for (layout, tail) in LAYOUTS.into_iter().zip([&[3][..], &[], &[2, 2], &[100]]) {
                let row: usize = tail.iter().product();
                let shape: Vec<usize> = [ids.len()].iter().chain(tail).copied().collect();
                let values: Vec<f64> = (0..ids.len() * row).map(|i| (i % 4) as f64).collect();
                let rows = Array::laid_out(layout, dtype, &shape, &values);
                let list = Array::new(DType::U16, &[ids.len()], &ids);
                let (order, starts, groups) = grouped(&list, 50);
                let found = Groups { ids: list.view(), order: order.view(), starts: starts.view() };
                let mut distinct: Vec<f64> = ids.clone();
                distinct.sort_by(f64::total_cmp);
                distinct.dedup();
                // The last ones are beyond the last group.
                for first in [0, groups / 2, groups, groups + 5] {
                    let shape: Vec<usize> = [7].iter().chain(tail).copied().collect();
                    let (mut which, mut sums) = (Array::zeros(DType::I64, &[7]), Array::zeros(dtype, &shape));
                    group_sum(rows.view(), &found, first, which.out(), sums.out());
                    for i in 0..7 {
                        let id = distinct.get(first + i).copied().unwrap_or(-1.0);
                        assert_eq!(which.values()[i], id);
                        for j in 0..row {
                            let own = (0..ids.len()).filter(|&k| ids[k] == id).map(|k| values[k * row + j]);
                            assert_eq!(sums.values()[i * row + j], own.sum::<f64>(), "{dtype} {layout:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn take_rows_and_put_rows_touch_only_the_named_rows() {
    let ids = [3.0, -1.0, 0.0, 5.0, 3.0];
    for dtype in DType::REAL {
        for layout in LAYOUTS {
            let one = |x: f64| if dtype == DType::Bool { f64::from(x != 0.0) } else { x };
            let values: Vec<f64> = (0..10).map(|i| one(f64::from(i % 3))).collect();
            let x = Array::laid_out(layout, dtype, &[5, 2], &values);
            let list = Array::laid_out(layout, DType::I32, &[5], &ids);
            let mut taken = Array::new(dtype, &[5, 2], &[1.0; 10]);
            take_rows(x.view(), list.view(), taken.out());
            let row = |id: f64| {
                if (0.0..5.0).contains(&id) { values[2 * id as usize..][..2].to_vec() } else { vec![0.0; 2] }
            };
            assert_eq!(taken.values(), ids.iter().flat_map(|&id| row(id)).collect::<Vec<_>>());

            let new: Vec<f64> = (0..10).map(|i| one(f64::from(i))).collect();
            let rows = Array::laid_out(layout, dtype, &[5, 2], &new);
            let mut out = Array::new(dtype, &[5, 2], &values);
            put_rows(out.out(), list.view(), rows.view());
            let mut wanted = values.clone();
            wanted[6..8].copy_from_slice(&new[8..10]); // the last of two
            wanted[0..2].copy_from_slice(&new[4..6]);
            assert_eq!(out.values(), wanted, "{dtype} {layout:?}");
        }
    }
}

#[test]
fn put_rows_with_several_threads_equals_one_thread() {
    let (rows, row, count) = (1000, 64, 700);
    let ids: Vec<f64> = (0..count).map(|i| (i * 37 % rows) as f64).collect();
    let list = Array::new(DType::I64, &[count], &ids);
    let new = Array::new(DType::F32, &[count, row], &(0..count * row).map(|i| i as f64).collect::<Vec<_>>());
    let mut out = Array::zeros(DType::F32, &[rows, row]);
    put_rows(out.out(), list.view(), new.view());
    let mut taken = Array::zeros(DType::F32, &[count, row]);
    take_rows(out.view(), list.view(), taken.out());
    assert_eq!(taken.values(), new.values());
}
