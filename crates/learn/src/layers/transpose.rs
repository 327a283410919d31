//! Rows become columns. Compiled once: gathers and scatters of wide registers are slower than single moves.

/// `to[j][i] = from[i][j]` for `rows` × `columns` numbers.
pub(super) fn transpose(rows: usize, columns: usize, from: &[f32], to: &mut [f32]) {
    let (from, to) = (&from[..rows * columns], &mut to[..rows * columns]);
    if rows == 1 || columns == 1 {
        to.copy_from_slice(from);
        return;
    }
    for (i, from) in from.chunks_exact(columns.max(1)).enumerate() {
        for (to, &number) in to.chunks_exact_mut(rows).zip(from) {
            to[i] = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::transpose;

    #[test]
    fn rows_become_columns_and_back() {
        for (rows, columns) in [(0, 3), (1, 5), (5, 1), (3, 4), (10, 25)] {
            let numbers: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
            let (mut once, mut twice) = (vec![9.0; numbers.len()], vec![9.0; numbers.len()]);
            transpose(rows, columns, &numbers, &mut once);
            for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                assert_eq!(once[j * rows + i], numbers[i * columns + j]);
            }
            transpose(columns, rows, &once, &mut twice);
            assert_eq!(twice, numbers);
        }
    }
}
