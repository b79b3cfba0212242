//! Softmax and cross-entropies.

use super::super::*;
use super::*;

fn naive_softmax(x: &[f64], shape: &[usize], axis: usize, log: bool) -> Vec<f64> {
    let (outer, n, inner) = around(shape, axis);
    let mut out = vec![0.0; x.len()];
    for o in 0..outer {
        for i in 0..inner {
            let at = |k: usize| (o * n + k) * inner + i;
            let max = (0..n).map(|k| x[at(k)]).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = (0..n).map(|k| (x[at(k)] - max).exp()).sum();
            for k in 0..n {
                let shifted = x[at(k)] - max;
                out[at(k)] = if log { shifted - sum.ln() } else { shifted.exp() / sum };
            }
        }
    }
    out
}

fn check_one<T: Stored>(x: &Host<T>, axis: usize) {
    for log in [false, true] {
        let run = if log { log_softmax } else { softmax };
        let expected = naive_softmax(&x.values(), &x.shape, axis, log);
        let mut out = Host::<T>::random(&x.shape, 9);
        run(x.arg(), axis, out.out());
        assert_near(&out.values(), &expected, tolerance::<T>());
        let mut in_place = x.contiguous();
        run(Arg::InPlace(0), axis, in_place.out());
        assert_same(&in_place, &out);
    }
}

fn check_softmax<T: Stored>() {
    let shapes: [&[usize]; 9] =
        [&[1], &[7], &[3, 33], &[2, 1300], &[5, 2, 3], &[4, 1, 2], &[2, 40, 600], &[0, 3], &[3, 0, 2]];
    for shape in shapes {
        for axis in 0..shape.len() {
            check_one(&Host::<T>::random(shape, 1), axis);
            check_one(&Host::<T>::scattered(shape, 2), axis);
            check_one(&Host::<T>::random(shape, 3).repeated(2), axis);
        }
    }
}

#[test]
fn softmax_matches_the_formula_for_all_axes_and_strides() {
    for_floats!(check_softmax);
}

fn check_extremes<T: Stored>() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows = [
        [-inf, -inf, -inf],
        [inf, 0.0, 1.0],
        [nan, 0.0, 1.0],
        [-inf, 0.0, -inf],
        [30000.0, 29999.0, -30000.0],
        [-30000.0, -30000.0, -30000.0],
    ];
    let values: Vec<f64> = rows.iter().flatten().copied().collect();
    let x = Host::<T>::new(&[6, 3], &values);
    check_one(&x, 1);
    let transposed: Vec<f64> = (0..18).map(|i| rows[i % 6][i / 6]).collect();
    let x = Host::<T>::new(&[3, 6], &transposed);
    check_one(&x, 0);
    let mut out = Host::<T>::random(&[3, 6], 1);
    softmax(x.arg(), 0, out.out());
    let out = out.values();
    for column in 0..6 {
        let sum = out[column] + out[6 + column] + out[12 + column];
        assert!(if column < 3 { sum.is_nan() } else { (sum - 1.0).abs() < 3.0 * tolerance::<T>() });
    }
}

#[test]
fn softmax_of_infinities_and_huge_values() {
    for_floats!(check_extremes);
}

#[test]
fn long_rows_and_columns_stay_accurate() {
    let n = 200_001;
    for shape in [[n, 1, 1], [n, 1, 2]] {
        let x = Host::<f32>::random(&shape, 5);
        let mut out = Host::<f32>::random(&shape, 6);
        softmax(x.arg(), 0, out.out());
        let expected = naive_softmax(&x.values(), &shape, 0, false);
        for (found, expected) in out.values().iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn softmax_does_not_depend_on_the_number_of_threads() {
    for (shape, axis) in [([300, 700], 1), ([300, 700], 0)] {
        let x = Host::<f32>::random(&shape, 5);
        same_on_any_threads(|| {
            let mut out = Host::<f32>::random(&shape, 6);
            softmax(x.arg(), axis, out.out());
            out.data
        });
    }
}

fn naive_lse(row: &[f64]) -> f64 {
    let max = row.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
    if max == f64::NEG_INFINITY { max } else { max + row.iter().map(|x| (x - max).exp()).sum::<f64>().ln() }
}

fn check_dense<T: Stored>() {
    for (rows, classes) in [(1, 1), (5, 3), (3, 1100), (0, 4), (40, 600)] {
        for scattered in [false, true] {
            let make = if scattered { Host::<T>::scattered } else { Host::<T>::random };
            let x = make(&[rows, classes], 3);
            let labels = Host::<T>::new(
                &[rows, classes],
                &random(rows * classes, 4).iter().map(|p| p.abs() / classes as f64).collect::<Vec<_>>(),
            );
            let (mut loss, mut lse) = (Host::<T>::random(&[rows], 1), wide::<T>(&[rows]));
            softmax_cross_entropy(x.view(), labels.view(), loss.out(), lse.out());
            let (x, p) = (x.values(), labels.values());
            for r in 0..rows {
                let row = r * classes..(r + 1) * classes;
                let expected = naive_lse(&x[row.clone()]);
                let sum: f64 = row.map(|i| p[i] * (expected - x[i])).sum();
                assert_near(&[lse.values()[r]], &[expected], 2e-6);
                assert_near(&[loss.values()[r]], &[sum], 2.0 * tolerance::<T>());
            }
        }
    }
}

#[test]
fn dense_cross_entropy_matches_the_formula() {
    for_floats!(check_dense);
}

#[test]
fn a_class_without_weight_contributes_nothing() {
    let x = Host::<f32>::new(&[1, 3], &[f64::NEG_INFINITY, 0.0, 0.0]);
    let p = Host::<f32>::new(&[1, 3], &[0.0, 0.25, 0.75]);
    let (mut loss, mut lse) = (Host::<f32>::random(&[1], 1), Host::<f32>::random(&[1], 1));
    softmax_cross_entropy(x.view(), p.view(), loss.out(), lse.out());
    assert_near(&[loss.values()[0], lse.values()[0]], &[2f64.ln(), 2f64.ln()], 1e-6);
}

fn check_sparse<T: Stored>() {
    for (rows, classes) in [(1, 1), (6, 5), (3, 1100), (0, 4)] {
        let x = Host::<T>::scattered(&[rows, classes], 3);
        let ids: Vec<f64> = (0..rows).map(|r| ((r * 7 + 2) % classes) as f64).collect();
        let (mut loss, mut lse) = (Host::<T>::random(&[rows], 1), wide::<T>(&[rows]));
        let labels = Host::<i64>::new(&[rows], &ids);
        sparse_softmax_cross_entropy(x.view(), labels.view(), loss.out(), lse.out()).unwrap();
        let first = loss.data.clone();
        let labels = Host::<i32>::new(&[rows], &ids);
        sparse_softmax_cross_entropy(x.view(), labels.view(), loss.out(), lse.out()).unwrap();
        assert_eq!(first, loss.data);
        let x = x.values();
        for r in 0..rows {
            let expected = naive_lse(&x[r * classes..][..classes]);
            assert_near(&[lse.values()[r]], &[expected], 2e-6);
            let picked = x[r * classes + ids[r] as usize];
            assert_near(&[loss.values()[r]], &[expected - picked], 2.0 * tolerance::<T>());
        }
    }
}

#[test]
fn sparse_cross_entropy_matches_the_formula() {
    for_floats!(check_sparse);
}

#[test]
fn labels_out_of_range_are_errors() {
    let x = Host::<f32>::random(&[3, 4], 1);
    for bad in [-1, 4, i64::MAX, i64::MIN] {
        let labels = Host::<i64> { data: vec![0, 3, bad], ..Host::new(&[3], &[0.0; 3]) };
        let (mut loss, mut lse) = (Host::<f32>::new(&[3], &[5.0; 3]), Host::<f32>::new(&[3], &[5.0; 3]));
        let result = sparse_softmax_cross_entropy(x.view(), labels.view(), loss.out(), lse.out());
        assert_eq!(result, Err(LabelOutOfRange { row: 2, label: bad, classes: 4 }));
        assert_eq!((loss.data, lse.data), (vec![5.0; 3], vec![5.0; 3]), "nothing was written");
    }
    let error = LabelOutOfRange { row: 2, label: -1, classes: 4 };
    assert_eq!(error.to_string(), "label -1 of row 2 is outside 0..4");
}
