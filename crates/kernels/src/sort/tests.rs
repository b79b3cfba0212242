use super::*;
use crate::index::testing::*;
use std::cmp::Ordering;

/// Ascending order with NaN last, on `f64`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature sort_by asks for")]
fn order(a: &f64, b: &f64) -> Ordering {
    a.is_nan().cmp(&b.is_nan()).then(a.partial_cmp(b).unwrap_or(Ordering::Equal))
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
}

/// Row-major indices of each line along `axis`.
fn lines_of(shape: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let starts = coordinates(shape).into_iter().filter(|c| c[axis] == 0);
    starts
        .map(|mut c| {
            (0..shape[axis])
                .map(|i| {
                    c[axis] = i;
                    flat(shape, &c)
                })
                .collect()
        })
        .collect()
}

fn samples(dtype: DType, count: usize) -> Vec<f64> {
    let mut values = scrambled(count, 50);
    match dtype {
        DType::Bool => values.iter_mut().for_each(|v| *v %= 2.0),
        _ if dtype.is_unsigned_integer() => {}
        _ => values.iter_mut().for_each(|v| *v -= 25.0),
    }
    if dtype.is_float() {
        for (i, special) in [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY, 0.0].into_iter().enumerate() {
            values[i * 7 % count] = special;
        }
    }
    values
}

fn run_sort(x: &Array, axis: usize, descending: bool) -> Array {
    let dtype = x.view().dtype();
    let mut out = Array::zeros(dtype, &x.shape);
    let mut space = scratch(sort_scratch(dtype, &x.shape, axis));
    sort(x.view(), axis, descending, out.out(), bytemuck::cast_slice_mut(&mut space));
    out
}

fn run_argsort(x: &Array, axis: usize, descending: bool, index: DType) -> Array {
    let mut out = Array::zeros(index, &x.shape);
    let mut space = scratch(argsort_scratch(&x.shape, axis, index));
    argsort(x.view(), axis, descending, out.out(), bytemuck::cast_slice_mut(&mut space));
    out
}

#[test]
fn sort_and_argsort_follow_a_stable_reference() {
    let shape = [3, 19, 4];
    for dtype in DType::REAL {
        let values = samples(dtype, 3 * 19 * 4);
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &shape, &values);
            for axis in 0..3 {
                for descending in [false, true] {
                    let mut sorted = values.clone();
                    let mut places = vec![0.0; values.len()];
                    for line in lines_of(&shape, axis) {
                        let mut picks: Vec<usize> = (0..line.len()).collect();
                        picks.sort_by(|&a, &b| {
                            let order = order(&values[line[a]], &values[line[b]]);
                            if descending { order.reverse() } else { order }
                        });
                        for (slot, pick) in line.iter().zip(picks) {
                            sorted[*slot] = values[line[pick]];
                            places[*slot] = pick as f64;
                        }
                    }
                    let case = format!("{dtype} {layout:?} axis {axis} descending {descending}");
                    assert!(same(&run_sort(&x, axis, descending).values(), &sorted), "{case}");
                    for index in [DType::I32, DType::I64] {
                        assert_eq!(
                            run_argsort(&x, axis, descending, index).values(),
                            places,
                            "{case} {index}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn wide_keys_that_share_their_top_bits() {
    // Differences both far beyond and below the 32 bits that are sorted first.
    let values: Vec<i64> =
        scrambled(3000, 40).iter().map(|&v| (v as i64 % 3) * (1 << 60) - (v as i64) * 5 + 7).collect();
    let x = Array::of(&[3000], &values);
    let mut expected: Vec<usize> = (0..3000).collect();
    expected.sort_by_key(|&i| values[i]);
    assert_eq!(
        run_argsort(&x, 0, false, DType::I64).typed::<i64>(),
        expected.iter().map(|&i| i as i64).collect::<Vec<_>>()
    );
    expected.sort_by_key(|&i| (std::cmp::Reverse(values[i]), i));
    assert_eq!(
        run_argsort(&x, 0, true, DType::I32).typed::<i32>(),
        expected.iter().map(|&i| i as i32).collect::<Vec<_>>()
    );
    let extremes = Array::of(&[4], &[u64::MAX, 0, u64::MAX - 1, 1]);
    assert_eq!(run_sort(&extremes, 0, false).typed::<u64>(), [0, 1, u64::MAX - 1, u64::MAX]);
    assert_eq!(run_argsort(&extremes, 0, false, DType::I64).values(), [1.0, 3.0, 2.0, 0.0]);
}

#[test]
fn sort_of_long_and_of_small_things() {
    let values = scrambled(50_000, 1 << 20);
    let x = Array::new(DType::F32, &[50_000], &values);
    let mut sorted = values.clone();
    sorted.sort_by(order);
    assert_eq!(run_sort(&x, 0, false).values(), sorted);
    let empty = Array::zeros(DType::F32, &[2, 0]);
    assert!(run_sort(&empty, 1, false).values().is_empty());
    assert!(run_argsort(&empty, 0, true, DType::I32).values().is_empty());
    let one = Array::new(DType::F32, &[1], &[3.0]);
    assert_eq!(run_sort(&one, 0, true).values(), [3.0]);
    let row = Array::new(DType::I32, &[1], &[3.0]).broadcast(&[5]);
    assert_eq!(run_argsort(&row, 0, true, DType::I64).values(), [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn top_k_is_the_head_of_a_descending_sort() {
    let shape = [11, 70];
    for dtype in DType::REAL {
        let values = samples(dtype, 770);
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &shape, &values);
            for k in [0, 1, 5, 34, 35, 36, 70] {
                for index in [DType::I32, DType::I64] {
                    let mut top = Array::zeros(dtype, &[11, k]);
                    let mut places = Array::zeros(index, &[11, k]);
                    let mut space = scratch(top_k_scratch(dtype, &shape, k));
                    let space = bytemuck::cast_slice_mut(&mut space);
                    top_k(x.view(), k, true, top.out(), places.out(), space);
                    let full = run_argsort(&x, 1, true, DType::I64).values();
                    let expected: Vec<f64> = full.chunks(70).flat_map(|row| row[..k].to_vec()).collect();
                    assert_eq!(places.values(), expected, "{dtype} {layout:?} {k}");
                    let expected: Vec<f64> = expected
                        .iter()
                        .enumerate()
                        .map(|(i, &place)| values[i / k * 70 + place as usize])
                        .collect();
                    assert!(same(&top.values(), &expected), "{dtype} {layout:?} {k}");

                    top_k(x.view(), k, false, top.out(), places.out(), space);
                    let mut any: Vec<f64> = places.values();
                    let mut all: Vec<f64> = full.chunks(70).flat_map(|row| row[..k].to_vec()).collect();
                    for part in [&mut any, &mut all] {
                        part.chunks_mut(k.max(1)).for_each(|row| row.sort_by(order));
                    }
                    assert_eq!(any, all);
                }
            }
        }
    }
}

#[test]
fn searchsorted_counts_what_comes_before() {
    for dtype in DType::REAL {
        let mut rows: Vec<Vec<f64>> = samples(dtype, 46).chunks(23).map(<[f64]>::to_vec).collect();
        for row in &mut rows {
            row.sort_by(order);
        }
        let values = samples(dtype, 18);
        for layout in LAYOUTS {
            let sorted = Array::laid_out(layout, dtype, &[2, 23], &rows.concat());
            let wanted = Array::laid_out(layout, dtype, &[2, 9], &values);
            for right in [false, true] {
                for index in [DType::I32, DType::I64] {
                    let mut out = Array::zeros(index, &[2, 9]);
                    searchsorted(sorted.view(), wanted.view(), right, out.out());
                    let expected: Vec<f64> = values
                        .iter()
                        .enumerate()
                        .map(|(i, v)| {
                            let before = |e: &&f64| match order(e, v) {
                                Ordering::Less => true,
                                Ordering::Equal => right,
                                Ordering::Greater => false,
                            };
                            rows[i / 9].iter().filter(before).count() as f64
                        })
                        .collect();
                    assert_eq!(out.values(), expected, "{dtype} {layout:?} right {right}");
                }
            }
        }
    }
    let (none, values) = (Array::zeros(DType::F32, &[0]), Array::new(DType::F32, &[2], &[1.0, 2.0]));
    let mut out = Array::new(DType::I32, &[2], &[7.0, 7.0]);
    searchsorted(none.view(), values.view(), false, out.out());
    assert_eq!(out.values(), [0.0, 0.0]);
}

#[test]
fn unique_values_with_all_that_belongs_to_them() {
    for dtype in DType::REAL {
        let values = samples(dtype, 60);
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &[4, 15], &values);
            let mut expected = values.clone();
            expected.sort_by(order);
            // A NaN is equal to no other.
            expected.dedup_by(|a, b| a == b);
            let mut space = scratch(unique_scratch(x.view()));
            let space: &mut [u8] = bytemuck::cast_slice_mut(&mut space);
            let count = unique_count(x.view(), space);
            assert_eq!(count, expected.len(), "{dtype} {layout:?}");
            for index in [DType::I32, DType::I64] {
                let mut found = Array::zeros(dtype, &[count]);
                let [mut first, mut counts] = [0; 2].map(|_| Array::zeros(index, &[count]));
                let mut inverse = Array::zeros(index, &[4, 15]);
                let out = Unique {
                    values: found.out(),
                    first: Some(first.out()),
                    inverse: Some(inverse.out()),
                    counts: Some(counts.out()),
                };
                unique_fill(x.view(), space, out);
                assert!(same(&found.values(), &expected), "{dtype} {layout:?}");
                let equal = |a: f64, b: f64| order(&a, &b) == Ordering::Equal;
                for (n, &value) in expected.iter().enumerate() {
                    if value.is_nan() {
                        assert!(values[first.values()[n] as usize].is_nan());
                        assert_eq!(counts.values()[n], 1.0);
                        continue;
                    }
                    let position = values.iter().position(|&v| equal(v, value)).unwrap();
                    assert_eq!(first.values()[n], position as f64);
                    assert_eq!(
                        counts.values()[n],
                        values.iter().filter(|&&v| equal(v, value)).count() as f64
                    );
                }
                assert!(inverse.values().iter().zip(&values).all(|(&n, &v)| equal(expected[n as usize], v)));
            }
        }
    }
    let empty = Array::zeros(DType::F32, &[0]);
    assert_eq!(unique_count(empty.view(), &mut []), 0);
}

#[test]
fn long_lines_are_split_and_sorted() {
    let len = 2 * UNCHECKED + 7;
    let mut slots: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 4).collect();
    let mut expected = slots.clone();
    expected.sort_unstable();
    sort_slots(&mut slots);
    assert!(slots == expected);
}

#[test]
fn sorting_can_be_interrupted() {
    let mut slots: Vec<u32> = (0..1000).rev().collect();
    assert!(pool::interruptible(|| true, || sort_slots(&mut slots)).is_none());
    assert!(pool::interruptible(|| false, || sort_slots(&mut slots)).is_some());
    assert!(slots.is_sorted());
}
