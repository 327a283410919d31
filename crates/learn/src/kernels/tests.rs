#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

/// Numbers that are sums of few powers of two, so that every order of addition gives the same sum.
fn exact(len: usize) -> impl Strategy<Value = Vec<f32>> {
    proptest::collection::vec((-8i8..=8).prop_map(|i| f32::from(i) / 4.0), len)
}

fn starts() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(0u32..150, 0..13)
}

proptest! {
    #[test]
    fn rows_are_their_definition(
        (a, b) in (exact(200), exact(400)),
        rows in proptest::collection::vec((0u32..100, 0u32..200), 0..12),
        terms in proptest::collection::vec((0u32..100, 0u32..250), 0..30),
        len in 0usize..150,
    ) {
        // Rows of the output are apart, as the definition asks.
        let rows: Vec<OutputRow> = rows.iter().enumerate()
            .map(|(m, &(a, start))| OutputRow {
                a,
                out: (m * 151) as u32,
                start: if start % 2 == 0 { Start::Output } else { Start::Number(start as f32) },
            })
            .collect();
        let terms: Vec<Term> = terms.iter().map(|&(a, b)| Term { a, b }).collect();
        let job = Rows { a: &a, b: &b, terms: &terms, rows: &rows, len };
        let mut expected = vec![0.5f32; 12 * 151];
        for row in &rows {
            for p in 0..len {
                if let Start::Number(x) = row.start {
                    expected[row.out as usize + p] = x;
                }
                for t in &terms {
                    expected[row.out as usize + p] += a[(row.a + t.a) as usize] * b[t.b as usize + p];
                }
            }
        }
        for kernels in Kernels::available() {
            let mut out = vec![0.5f32; 12 * 151];
            kernels.rows(&job, &mut out);
            prop_assert_eq!(&out, &expected, "{}", kernels.name());
        }
    }

    #[test]
    fn dots_are_their_definition(
        (g, x) in (exact(500), exact(500)),
        segments in proptest::collection::vec((0u32..200, 0u32..200), 0..6),
        (left, right) in (starts(), starts()),
        len in 0usize..150,
    ) {
        let segments: Vec<Segment> = segments.iter().map(|&(g, x)| Segment { g, x }).collect();
        let factors = |starts: &[u32], step: usize| -> Vec<Factor> {
            let places = starts.iter().enumerate();
            places.map(|(i, &start)| Factor { start, out: (i * step) as u32 }).collect()
        };
        let (left, right) = (factors(&left, right.len()), factors(&right, 1));
        let job = Dots { g: &g, x: &x, segments: &segments, left: &left, right: &right, len };
        let expected: Vec<f32> = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)))
            .map(|(l, r)| 1.5 + segments.iter().map(|s| {
                let (g, x) = (&g[(s.g + l.start) as usize..], &x[(s.x + r.start) as usize..]);
                g[..len].iter().zip(x).map(|(g, x)| g * x).sum::<f32>()
            }).sum::<f32>())
            .collect();
        for kernels in Kernels::available() {
            let mut out = vec![1.5f32; left.len() * right.len()];
            kernels.dots(&job, &mut out);
            prop_assert_eq!(&out, &expected, "{}", kernels.name());
        }
    }

    /// Four sums at once must not add in another order than one: what comes of an input does not depend on how many there are.
    #[test]
    fn dots_have_the_same_bits_alone_and_together(
        (g, x) in (
            proptest::collection::vec(-1.0f32..1.0, 200),
            proptest::collection::vec(-1.0f32..1.0, 800),
        ),
        len in 0usize..150,
    ) {
        let segments = [Segment { g: 0, x: 0 }];
        let left: Vec<Factor> = (0..7).map(|k| Factor { start: k, out: 4 * k }).collect();
        let right: Vec<Factor> = (0..4).map(|k| Factor { start: 150 * k, out: k }).collect();
        for kernels in Kernels::available() {
            let (mut together, mut alone) = (vec![0.25f32; 28], vec![0.25f32; 28]);
            let dots = |right: &[Factor], out: &mut [f32]| {
                let job = Dots { g: &g, x: &x, segments: &segments, left: &left, right, len };
                kernels.dots(&job, out);
            };
            dots(&right, &mut together);
            right.iter().for_each(|one| dots(std::slice::from_ref(one), &mut alone));
            prop_assert_eq!(&together, &alone, "{}", kernels.name());
        }
    }

    #[test]
    fn columns_have_the_bits_of_dots(
        (x, w) in (
            proptest::collection::vec(-1.0f32..1.0, 5 * 70),
            proptest::collection::vec(-1.0f32..1.0, 70 * 70),
        ),
        (rows, inputs, outputs) in (0usize..6, 1usize..70, 1usize..70),
    ) {
        let stride = outputs.next_multiple_of(COLUMN_STRIDE);
        let mut weights = vec![9.0; inputs * stride];
        for (k, m) in (0..inputs).flat_map(|k| (0..outputs).map(move |m| (k, m))) {
            weights[k * stride + m] = w[m * inputs + k];
        }
        let start: Vec<f32> = (0..outputs).map(|m| m as f32 / 7.0 - 3.0).collect();
        let factors = |count: usize, out: usize| -> Vec<Factor> {
            let factor = |i| Factor { start: (i * inputs) as u32, out: (i * out) as u32 };
            (0..count).map(factor).collect()
        };
        let (left, right) = (factors(rows, outputs), factors(outputs, 1));
        let segments = [Segment { g: 0, x: 0 }];
        let dots = Dots { g: &x, x: &w, segments: &segments, left: &left, right: &right, len: inputs };
        let columns = Columns { x: &x, weights: &weights, start: &start, inputs, stride };
        for kernels in Kernels::available() {
            let (mut expected, mut out) = (start.repeat(rows), vec![5.0f32; rows * outputs]);
            kernels.dots(&dots, &mut expected);
            kernels.columns(&columns, &mut out);
            prop_assert_eq!(&out, &expected, "{}", kernels.name());
        }
    }

    #[test]
    fn patches_are_gathered_and_scattered(
        numbers in exact(2000),
        entries in proptest::collection::vec((0u32..400, -8i8..=8), 0..20),
        (rows, width, gap) in (1usize..7, 1usize..70, 0usize..40),
    ) {
        let entries: Vec<Entry> = entries.iter()
            .map(|&(at, g)| Entry { at, gradient: f32::from(g) / 4.0 }).collect();
        let pitch = width + gap;
        let job = Patches { entries: &entries, rows, width, pitch };
        let pictures = &numbers[..400 + rows * pitch + PICTURE_ROOM];
        let weights = &numbers[1000..1000 + rows * width];
        let mut patch = vec![0.25; rows * width];
        let mut spread = pictures.to_vec();
        for entry in &entries {
            for (r, i) in (0..rows).flat_map(|r| (0..width).map(move |i| (r, i))) {
                let at = entry.at as usize + r * pitch + i;
                patch[r * width + i] += entry.gradient * pictures[at];
                spread[at] += entry.gradient * weights[r * width + i];
            }
        }
        for kernels in Kernels::available() {
            let mut gathered = vec![0.25; rows * width];
            kernels.gather(job, pictures, &mut gathered);
            prop_assert_eq!(&gathered, &patch, "{}", kernels.name());
            let mut scattered = pictures.to_vec();
            kernels.scatter(job, weights, &mut scattered);
            prop_assert_eq!(&scattered, &spread, "{}", kernels.name());
        }
    }

    #[test]
    fn gradients_pass_where_something_came_out(
        pixels in proptest::collection::vec((-4i8..=4, -8i8..=8, 0u8..4, 0u32..1000), 0..70),
        scale in 1u8..4,
    ) {
        let y: Vec<f32> = pixels.iter().map(|p| f32::from(p.0)).collect();
        let dy: Vec<f32> = pixels.iter().map(|p| f32::from(p.1)).collect();
        let which: Vec<u8> = pixels.iter().map(|p| p.2).collect();
        let corners: Vec<u32> = pixels.iter().map(|p| p.3).collect();
        let (steps, scale) = ([0, 7, 100, 107], f32::from(scale));
        let channel = Channel { y: &y, dy: &dy, which: &which, corners: &corners, steps, scale };
        let expected: Vec<Entry> = pixels.iter().filter(|p| p.0 > 0).map(|p| Entry {
            at: p.3 + steps[p.2 as usize],
            gradient: f32::from(p.1) * scale,
        }).collect();
        for kernels in Kernels::available() {
            let mut entries = vec![Entry { at: 0, gradient: 0.0 }; pixels.len() + ENTRY_ROOM];
            let count = kernels.passing(channel, &mut entries);
            prop_assert_eq!(&entries[..count], &expected[..], "{}", kernels.name());
        }
    }

    #[test]
    fn folding_is_the_adjoint_of_expanding(
        (planes, height, shifts, out_width) in (1usize..3, 1usize..5, 1usize..6, 1usize..40),
        numbers in exact(2 * 5 * 5 * 45 * 2),
    ) {
        let shape = Windows { planes, height, width: out_width + shifts - 1, shifts };
        let (pictures, rest) = numbers.split_at(planes * height * shape.width);
        let weights = &rest[..shape.len()];
        for kernels in Kernels::available() {
            let mut windows = vec![9.0; shape.len()];
            kernels.expand(shape, pictures, &mut windows);
            for (i, &value) in windows.iter().enumerate() {
                let (x, i) = (i % out_width, i / out_width);
                let (y, i) = (i % height, i / height);
                let (s, plane) = (i % shifts, i / shifts);
                prop_assert_eq!(value, pictures[(plane * height + y) * shape.width + x + s]);
            }
            let mut folded = vec![9.0; pictures.len()];
            kernels.fold(shape, weights, &mut folded);
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            prop_assert_eq!(dot(&windows, weights), dot(pictures, &folded), "{}", kernels.name());
        }
    }

    #[test]
    fn pooling_finds_the_first_largest(
        (height, width, count, rows) in (1usize..9, 1usize..40, 1usize..4, 1usize..3), seed in exact(9 * 40 * 4),
    ) {
        let planes = Planes { height, width, rows };
        let (ho, wo) = (height / rows, width / 2);
        prop_assume!(ho * wo > 0);
        let x = &seed[..count * height * width];
        for kernels in Kernels::available() {
            let (mut y, mut which) = (vec![0.0; count * ho * wo], vec![9; count * ho * wo]);
            kernels.pool(planes, x, &mut y, &mut which);
            let dy: Vec<f32> = (0..y.len()).map(|i| i as f32 + 1.0).collect();
            let mut dx = vec![7.0; x.len()];
            kernels.unpool(planes, &dy, &which, &mut dx);
            let mut expected = vec![0.0; x.len()];
            for plane in 0..count {
                for (r, c) in (0..ho).flat_map(|r| (0..wo).map(move |c| (r, c))) {
                    let at = [(0, 0), (0, 1), (1, 0), (1, 1)]
                        .map(|(dr, dc)| (plane * height + rows * r + dr) * width + 2 * c + dc);
                    let first = at.into_iter().take(2 * rows).reduce(|a, b| if x[b] > x[a] { b } else { a }).unwrap();
                    let i = (plane * ho + r) * wo + c;
                    prop_assert_eq!(y[i], x[first]);
                    expected[first] = dy[i];
                }
            }
            prop_assert_eq!(&dx, &expected, "{}", kernels.name());
        }
    }
}

#[test]
#[should_panic(expected = "rows inside their slices")]
fn a_row_that_leaves_its_slice_is_refused() {
    let job = Rows {
        a: &[1.0],
        b: &[1.0; 8],
        terms: &[Term { a: 0, b: 1 }],
        rows: &[OutputRow { a: 0, out: 0, start: Start::Output }],
        len: 8,
    };
    Kernels::fastest().rows(&job, &mut [0.0; 8]);
}
