use super::testing::*;
use super::*;
use crate::DType;

const INDEX_TYPES: [DType; 8] =
    [DType::U8, DType::U16, DType::U32, DType::U64, DType::I8, DType::I16, DType::I32, DType::I64];

/// What each code does to an old and a new value.
type Combine = fn(f64, f64) -> f64;
const CODES: [(Scatter, Combine); 6] = [
    (Scatter::Update, |_, b| b),
    (Scatter::Add, |a, b| a + b),
    (Scatter::Sub, |a, b| a - b),
    (Scatter::Max, f64::max),
    (Scatter::Min, f64::min),
    (Scatter::Mul, |a, b| a * b),
];

fn counting(count: usize) -> Vec<f64> {
    (0..count).map(|i| (i % 120) as f64).collect()
}

/// Values that are what `dtype` makes of them.
fn rounded(dtype: DType, values: Vec<f64>) -> Vec<f64> {
    if dtype == DType::Bool { values.iter().map(|&v| f64::from(v != 0.0)).collect() } else { values }
}

#[test]
fn gather_follows_its_definition_for_all_types_and_layouts() {
    let (shape, axis) = ([2, 5, 3], 1);
    let picks = [4.0, 0.0, 4.0, 1.0];
    for dtype in DType::REAL {
        for layout in LAYOUTS {
            let values = rounded(dtype, counting(30));
            let x = Array::laid_out(layout, dtype, &shape, &values);
            let indices = Array::laid_out(layout, DType::I32, &[2, 2], &picks);
            let mut out = Array::zeros(dtype, &[2, 2, 2, 3]);
            gather(x.view(), indices.view(), axis, 0, out.out()).unwrap();
            let expected: Vec<f64> = coordinates(&out.shape)
                .iter()
                .map(|c| values[flat(&shape, &[c[0], picks[c[1] * 2 + c[2]] as usize, c[3]])])
                .collect();
            assert_eq!(out.values(), expected, "{dtype} {layout:?}");
        }
    }
}

#[test]
fn every_integer_type_can_index() {
    let x = Array::new(DType::F32, &[4], &[10.0, 11.0, 12.0, 13.0]);
    for dtype in INDEX_TYPES {
        let indices = Array::new(dtype, &[3], &[3.0, 0.0, 2.0]);
        let mut out = Array::zeros(DType::F32, &[3]);
        gather(x.view(), indices.view(), 0, 0, out.out()).unwrap();
        assert_eq!(out.values(), [13.0, 10.0, 12.0], "{dtype}");
    }
}

#[test]
fn gather_with_batch_dimensions() {
    // x [2, 2, 4, 2], indices [2, 3]: out[b, o, j, i] = x[b, o, indices[b, j], i].
    let shape = [2, 2, 4, 2];
    let values = counting(32);
    let picks = [0.0, 3.0, 1.0, 2.0, 2.0, 0.0];
    for layout in LAYOUTS {
        let x = Array::laid_out(layout, DType::I16, &shape, &values);
        let indices = Array::laid_out(layout, DType::I64, &[2, 3], &picks);
        let mut out = Array::zeros(DType::I16, &[2, 2, 3, 2]);
        gather(x.view(), indices.view(), 2, 1, out.out()).unwrap();
        let expected: Vec<f64> = coordinates(&out.shape)
            .iter()
            .map(|c| values[flat(&shape, &[c[0], c[1], picks[c[0] * 3 + c[2]] as usize, c[3]])])
            .collect();
        assert_eq!(out.values(), expected);
    }
}

#[test]
fn gather_of_many_rows_crosses_tiles_and_chunks() {
    let values = counting(7 * 3);
    let picks = scrambled(30_000, 7);
    let x = Array::new(DType::U8, &[7, 3], &values);
    let indices = Array::new(DType::I32, &[30_000], &picks);
    let mut out = Array::zeros(DType::U8, &[30_000, 3]);
    gather(x.view(), indices.view(), 0, 0, out.out()).unwrap();
    let expected: Vec<f64> =
        picks.iter().flat_map(|&p| values[p as usize * 3..p as usize * 3 + 3].to_vec()).collect();
    assert_eq!(out.values(), expected);
}

#[test]
fn bad_indices_are_named_and_nothing_is_written() {
    let x = Array::new(DType::F32, &[2, 3], &[1.0; 6]);
    let mut out = Array::new(DType::F32, &[2, 2], &[7.0; 4]);
    let indices = Array::new(DType::I32, &[2], &[2.0, 3.0]);
    let error = gather(x.view(), indices.view(), 1, 0, out.out()).unwrap_err();
    assert_eq!(error, BadIndex { value: 3, limit: 3, position: 1, axis: 1 });
    assert_eq!(error.to_string(), "indices of axis 1 must be in [0, 3), got 3 at position 1");
    assert_eq!(out.values(), [7.0; 4]);

    let indices = Array::new(DType::I8, &[2], &[0.0, -1.0]);
    let error = gather(x.view(), indices.view(), 1, 0, out.out()).unwrap_err();
    assert_eq!(error, BadIndex { value: -1, limit: 3, position: 1, axis: 1 });

    let indices = Array::of::<u64>(&[2], &[u64::MAX, 0]);
    let error = gather(x.view(), indices.view(), 1, 0, out.out()).unwrap_err();
    assert_eq!(error.value, i64::MAX);

    // The first bad coordinate in the order of the indices, whichever axis it is for.
    let indices = Array::new(DType::I64, &[3, 2], &[1.0, 2.0, 1.0, 3.0, 2.0, 0.0]);
    let mut out = Array::zeros(DType::F32, &[3]);
    let error = gather_nd(x.view(), indices.view(), 0, out.out()).unwrap_err();
    assert_eq!(error, BadIndex { value: 3, limit: 3, position: 3, axis: 1 });

    let empty = Array::zeros(DType::F32, &[0, 3]);
    let indices = Array::new(DType::I32, &[1], &[0.0]);
    let mut out = Array::zeros(DType::F32, &[1, 3]);
    assert_eq!(gather(empty.view(), indices.view(), 0, 0, out.out()).unwrap_err().limit, 0);
}

#[test]
fn empty_indices_gather_nothing_from_an_empty_tensor() {
    let x = Array::zeros(DType::F32, &[0, 3]);
    let indices = Array::zeros(DType::I32, &[0]);
    let mut out = Array::zeros(DType::F32, &[0, 3]);
    gather(x.view(), indices.view(), 0, 0, out.out()).unwrap();
    let x = Array::zeros(DType::F32, &[2, 0]);
    let indices = Array::zeros(DType::I32, &[4]);
    let mut out = Array::zeros(DType::F32, &[4, 0]);
    gather(x.view(), indices.view(), 0, 0, out.out()).unwrap();
}

#[test]
fn a_single_index_drops_the_axis() {
    let x = Array::new(DType::F64, &[3, 2], &counting(6));
    let index = Array::new(DType::I64, &[], &[2.0]);
    let mut out = Array::zeros(DType::F64, &[2]);
    gather(x.view(), index.view(), 0, 0, out.out()).unwrap();
    assert_eq!(out.values(), [4.0, 5.0]);
}

#[test]
fn gather_nd_reads_points_and_slices() {
    let shape = [3, 4, 2];
    let values = counting(24);
    for layout in LAYOUTS {
        let x = Array::laid_out(layout, DType::F32, &shape, &values);
        let places = [2.0, 3.0, 0.0, 1.0, 2.0, 3.0];
        let indices = Array::laid_out(layout, DType::I32, &[3, 2], &places);
        let mut out = Array::zeros(DType::F32, &[3, 2]);
        gather_nd(x.view(), indices.view(), 0, out.out()).unwrap();
        assert_eq!(out.values(), [22.0, 23.0, 2.0, 3.0, 22.0, 23.0]);

        let indices = Array::laid_out(layout, DType::I32, &[1, 3], &[1.0, 2.0, 1.0]);
        let mut out = Array::zeros(DType::F32, &[1]);
        gather_nd(x.view(), indices.view(), 0, out.out()).unwrap();
        assert_eq!(out.values(), [13.0]);

        // One batch dimension: out[b, j] = x[b, indices[b, j]].
        let indices = Array::laid_out(layout, DType::I64, &[3, 2, 1], &[0.0, 3.0, 1.0, 1.0, 2.0, 0.0]);
        let mut out = Array::zeros(DType::F32, &[3, 2, 2]);
        gather_nd(x.view(), indices.view(), 1, out.out()).unwrap();
        assert_eq!(out.values(), [0.0, 1.0, 6.0, 7.0, 10.0, 11.0, 10.0, 11.0, 20.0, 21.0, 16.0, 17.0]);

        // No coordinates: the whole tensor each time.
        let indices = Array::zeros(DType::I64, &[2, 0]);
        let mut out = Array::zeros(DType::F32, &[2, 3, 4, 2]);
        gather_nd(x.view(), indices.view(), 0, out.out()).unwrap();
        assert_eq!(out.values(), [values.clone(), values.clone()].concat());
    }
}

#[test]
fn take_and_put_along_every_axis() {
    let shape = [3, 70, 4];
    let values = counting(3 * 70 * 4);
    for axis in 0..3 {
        for layout in LAYOUTS {
            let mut picked = shape;
            picked[axis] = 5;
            let count = picked.iter().product();
            let picks = scrambled(count, shape[axis] as u64);
            let x = Array::laid_out(layout, DType::F32, &shape, &values);
            let indices = Array::laid_out(layout, DType::I32, &picked, &picks);
            let mut out = Array::zeros(DType::F32, &picked);
            take_along_axis(x.view(), indices.view(), axis, out.out()).unwrap();
            let source = |n: usize, c: &[usize]| {
                let mut c = c.to_vec();
                c[axis] = picks[n] as usize;
                flat(&shape, &c)
            };
            let places: Vec<usize> =
                coordinates(&picked).iter().enumerate().map(|(n, c)| source(n, c)).collect();
            let expected: Vec<f64> = places.iter().map(|&p| values[p]).collect();
            assert_eq!(out.values(), expected, "axis {axis} {layout:?}");

            let updates = Array::laid_out(layout, DType::F32, &picked, &counting(count));
            for (code, f) in CODES {
                let mut out = Array::new(DType::F32, &shape, &values);
                put_along_axis(code, out.out(), indices.view(), updates.view(), axis).unwrap();
                let mut expected = values.clone();
                places
                    .iter()
                    .zip(counting(count))
                    .for_each(|(&p, u)| expected[p] = f(expected[p], u) as f32 as f64);
                assert_eq!(out.values(), expected, "{code:?} axis {axis} {layout:?}");
            }
        }
    }
}

#[test]
fn scatter_applies_duplicates_in_order() {
    // out [5, 3]; row 1 is hit twice.
    let places = [1.0, 4.0, 1.0];
    let updates = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 3.0, 2.0, 7.0];
    for dtype in DType::REAL {
        for (code, f) in CODES {
            if dtype == DType::Bool && code != Scatter::Update
                || dtype.is_unsigned_integer() && code == Scatter::Sub
            {
                continue;
            }
            for layout in LAYOUTS {
                let indices = Array::laid_out(layout, DType::I32, &[3, 1], &places);
                let source = Array::laid_out(layout, dtype, &[3, 3], &updates);
                let start = rounded(dtype, vec![4.0; 15]);
                let mut out = Array::new(dtype, &[5, 3], &start);
                scatter_nd(code, out.out(), indices.view(), source.view()).unwrap();
                let mut expected = start;
                for (i, &u) in rounded(dtype, updates.to_vec()).iter().enumerate() {
                    let at = places[i / 3] as usize * 3 + i % 3;
                    expected[at] = f(expected[at], u);
                }
                assert_eq!(out.values(), expected, "{code:?} {dtype} {layout:?}");
            }
        }
    }
}

#[test]
fn scatter_points_and_integers_wrap() {
    let indices = Array::new(DType::I32, &[2, 2], &[0.0, 1.0, 1.0, 0.0]);
    let updates = Array::new(DType::U8, &[2], &[200.0, 3.0]);
    let mut out = Array::new(DType::U8, &[2, 2], &[1.0, 100.0, 2.0, 5.0]);
    scatter_nd(Scatter::Add, out.out(), indices.view(), updates.view()).unwrap();
    assert_eq!(out.values(), [1.0, 44.0, 5.0, 5.0]);
    scatter_nd(Scatter::Sub, out.out(), indices.view(), updates.view()).unwrap();
    assert_eq!(out.values(), [1.0, 100.0, 2.0, 5.0]);
}

#[test]
fn a_nan_update_stays() {
    let indices = Array::zeros(DType::I32, &[3, 1]);
    let updates = Array::new(DType::F32, &[3], &[1.0, f64::NAN, 9.0]);
    for code in [Scatter::Max, Scatter::Min] {
        let mut out = Array::new(DType::F32, &[1], &[5.0]);
        scatter_nd(code, out.out(), indices.view(), updates.view()).unwrap();
        assert!(out.values()[0].is_nan());
    }
}

#[test]
fn the_gradient_of_an_embedding() {
    // Large enough to be shared out; each row's sum is known from the counts.
    let (rows, width, count) = (100, 64, 5000);
    let ids = scrambled(count, rows as u64);
    let indices = Array::new(DType::I64, &[count, 1], &ids);
    let updates = Array::new(DType::F32, &[1, width], &counting(width)).broadcast(&[count, width]);
    let mut out = Array::zeros(DType::F32, &[rows, width]);
    scatter_nd(Scatter::Add, out.out(), indices.view(), updates.view()).unwrap();
    let expected: Vec<f64> = coordinates(&[rows, width])
        .iter()
        .map(|c| ids.iter().filter(|&&i| i as usize == c[0]).count() as f64 * c[1] as f64)
        .collect();
    assert_eq!(out.values(), expected);
}

#[test]
fn scatter_checks_before_it_writes() {
    let indices = Array::new(DType::I32, &[2, 1], &[0.0, 2.0]);
    let updates = Array::new(DType::F32, &[2], &[1.0, 1.0]);
    let mut out = Array::zeros(DType::F32, &[2]);
    let error = scatter_nd(Scatter::Add, out.out(), indices.view(), updates.view()).unwrap_err();
    assert_eq!(error, BadIndex { value: 2, limit: 2, position: 1, axis: 0 });
    assert_eq!(out.values(), [0.0, 0.0]);
    let indices = Array::new(DType::I32, &[2], &[0.0, -3.0]);
    let error = put_along_axis(Scatter::Add, out.out(), indices.view(), updates.view(), 0).unwrap_err();
    assert_eq!(error, BadIndex { value: -3, limit: 2, position: 1, axis: 0 });
    assert_eq!(out.values(), [0.0, 0.0]);
}

fn run_segment(
    code: Segment,
    x: &Array,
    ids: &Array,
    sorted: bool,
    empty: Empty,
    segments: usize,
) -> Result<Array, SegmentError> {
    let dtype = x.view().dtype();
    let shape = [&[segments], &x.shape[ids.shape.len()..]].concat();
    let mut out = Array::zeros(dtype, &shape);
    let mut space = scratch(segment_scratch(dtype, &shape));
    segment(code, x.view(), ids.view(), sorted, empty, out.out(), bytemuck::cast_slice_mut(&mut space))?;
    Ok(out)
}

#[test]
fn segments_reduce_their_rows() {
    let values = [2.0, 3.0, 6.0, 5.0, 4.0, 7.0, 1.0, 2.0];
    for dtype in DType::REAL.into_iter().filter(|d| *d != DType::Bool) {
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &[4, 2], &values);
            let ids = Array::laid_out(layout, DType::I32, &[4], &[3.0, 0.0, 3.0, 0.0]);
            let run = |code| run_segment(code, &x, &ids, false, Empty::Zero, 4).unwrap().values();
            let zeros = [0.0; 4];
            assert_eq!(run(Segment::Sum), [&[7.0, 7.0], &zeros[..], &[6.0, 10.0]].concat());
            assert_eq!(run(Segment::Prod), [&[6.0, 10.0], &zeros[..], &[8.0, 21.0]].concat());
            assert_eq!(run(Segment::Max), [&[6.0, 5.0], &zeros[..], &[4.0, 7.0]].concat());
            assert_eq!(run(Segment::Min), [&[1.0, 2.0], &zeros[..], &[2.0, 3.0]].concat());
            let half = if dtype.is_float() { 3.5 } else { 3.0 };
            assert_eq!(run(Segment::Mean), [&[half, half], &zeros[..], &[3.0, 5.0]].concat());
        }
    }
}

#[test]
fn empty_segments_have_the_requested_value() {
    let x = Array::new(DType::F32, &[1], &[5.0]);
    let ids = Array::new(DType::I32, &[1], &[1.0]);
    let run = |code| run_segment(code, &x, &ids, true, Empty::Identity, 2).unwrap().values()[0];
    assert_eq!(run(Segment::Sum), 0.0);
    assert_eq!(run(Segment::Mean), 0.0);
    assert_eq!(run(Segment::Prod), 1.0);
    assert_eq!(run(Segment::Max), f32::MIN as f64);
    assert_eq!(run(Segment::Min), f32::MAX as f64);
    let x = Array::new(DType::I8, &[1], &[5.0]);
    let run = |code| run_segment(code, &x, &ids, true, Empty::Identity, 2).unwrap().values()[0];
    assert_eq!((run(Segment::Max), run(Segment::Min)), (-128.0, 127.0));
}

#[test]
fn segments_of_infinities_and_nan() {
    let x = Array::new(DType::F32, &[3], &[f64::NEG_INFINITY, f64::NAN, 1.0]);
    let ids = Array::new(DType::I32, &[3], &[0.0, 1.0, 1.0]);
    let out = run_segment(Segment::Max, &x, &ids, true, Empty::Identity, 2).unwrap().values();
    assert_eq!(out[0], f64::NEG_INFINITY);
    assert!(out[1].is_nan());
}

#[test]
fn half_precision_segments_are_summed_in_single_precision() {
    // 4096 ones: adding in half precision stalls at 2048, in bfloat16 at 256.
    let x = Array::new(DType::F16, &[1], &[1.0]).broadcast(&[4096]);
    let ids = Array::zeros(DType::I32, &[4096]);
    assert_eq!(run_segment(Segment::Sum, &x, &ids, true, Empty::Zero, 1).unwrap().values(), [4096.0]);
    let x = Array::new(DType::BF16, &[1], &[1.0]).broadcast(&[4096]);
    assert_eq!(run_segment(Segment::Mean, &x, &ids, true, Empty::Zero, 1).unwrap().values(), [1.0]);
}

#[test]
fn segment_ids_are_checked() {
    let x = Array::new(DType::F32, &[3], &[1.0, 2.0, 3.0]);
    let ids = Array::new(DType::I32, &[3], &[0.0, 2.0, 1.0]);
    let error = run_segment(Segment::Sum, &x, &ids, true, Empty::Zero, 3).unwrap_err();
    assert_eq!(error, SegmentError::NotSorted { position: 2 });
    assert_eq!(run_segment(Segment::Sum, &x, &ids, false, Empty::Zero, 3).unwrap().values(), [1.0, 3.0, 2.0]);
    let error = run_segment(Segment::Sum, &x, &ids, false, Empty::Zero, 2).unwrap_err();
    assert_eq!(error, SegmentError::BadIndex(BadIndex { value: 2, limit: 2, position: 1, axis: 0 }));
    // Ids of several dimensions take as many of the input's.
    let x = Array::new(DType::F32, &[2, 2, 2], &counting(8));
    let ids = Array::new(DType::I32, &[2, 2], &[0.0, 1.0, 1.0, 0.0]);
    let out = run_segment(Segment::Sum, &x, &ids, false, Empty::Zero, 2).unwrap();
    assert_eq!(out.values(), [6.0, 8.0, 6.0, 8.0]);
    // No rows at all.
    let (x, ids) = (Array::zeros(DType::F32, &[0, 2]), Array::zeros(DType::I32, &[0]));
    let out = run_segment(Segment::Prod, &x, &ids, true, Empty::Identity, 1).unwrap();
    assert_eq!(out.values(), [1.0, 1.0]);
}

#[test]
fn nonzero_lists_coordinates() {
    let values = [0.0, 1.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0];
    let shape = [2, 3, 2];
    for dtype in DType::REAL {
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &shape, &values);
            assert_eq!(count_nonzero(x.view()), 4);
            let mut out = Array::zeros(DType::I64, &[4, 3]);
            nonzero(x.view(), out.out());
            let expected: Vec<f64> = coordinates(&shape)
                .iter()
                .filter(|c| values[flat(&shape, c)] != 0.0)
                .flat_map(|c| c.iter().map(|&i| i as f64).collect::<Vec<_>>())
                .collect();
            assert_eq!(out.values(), expected);
        }
    }
    let odd = Array::new(DType::F32, &[4], &[-0.0, f64::NAN, 0.0, f64::INFINITY]);
    assert_eq!(count_nonzero(odd.view()), 2);
    let scalar = Array::new(DType::F32, &[], &[2.0]);
    assert_eq!(count_nonzero(scalar.view()), 1);
    nonzero(scalar.view(), Array::zeros(DType::I64, &[1, 0]).out());
    let empty = Array::zeros(DType::F32, &[0, 3]);
    assert_eq!(count_nonzero(empty.view()), 0);
    nonzero(empty.view(), Array::zeros(DType::I64, &[0, 2]).out());
}

#[test]
fn bincount_counts_and_weighs() {
    for layout in LAYOUTS {
        let x = Array::laid_out(layout, DType::I32, &[2, 3], &[1.0, 4.0, 1.0, 0.0, 1.0, 4.0]);
        let mut out = Array::zeros(DType::I64, &[6]);
        bincount(x.view(), None, false, out.out()).unwrap();
        assert_eq!(out.values(), [1.0, 3.0, 0.0, 0.0, 2.0, 0.0]);
        let weights = Array::laid_out(layout, DType::F64, &[2, 3], &[0.5, 1.0, 0.25, 7.0, 0.125, 2.0]);
        let mut out = Array::zeros(DType::F64, &[5]);
        bincount(x.view(), Some(weights.view()), false, out.out()).unwrap();
        assert_eq!(out.values(), [7.0, 0.875, 0.0, 0.0, 3.0]);
        let mut out = Array::zeros(DType::I32, &[2]);
        bincount(x.view(), None, true, out.out()).unwrap();
        assert_eq!(out.values(), [1.0, 3.0]);
        let error = bincount(x.view(), None, false, out.out()).unwrap_err();
        assert_eq!(error, BadIndex { value: 4, limit: 2, position: 1, axis: 0 });
    }
    let x = Array::new(DType::I32, &[1], &[-1.0]);
    let mut out = Array::zeros(DType::I32, &[2]);
    assert_eq!(bincount(x.view(), None, true, out.out()).unwrap_err().value, -1);
}
