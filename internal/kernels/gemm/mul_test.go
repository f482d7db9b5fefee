package gemm

import "testing"

// Blocks of rows are all rows, in order, none larger than a call takes or than one before it; where pairs of rows cost
// as much as a row, only the last may have an odd number.
func TestBlocksOfRows(t *testing.T) {
	for _, e := range []engine{{rows: 1}, {rows: 3}, {rows: 5}, {rows: 12}, {rows: 2, even: true}, {rows: 6, even: true}} {
		for n := 1; n <= 4*chunkRows; n++ {
			blocks := (n + e.rows - 1) / e.rows
			total, last := 0, e.rows
			for b := 0; b < blocks; {
				rows, count := e.splitRows(n, b, blocks)
				if rows < 1 || rows > last || count < 1 || b+count > blocks {
					t.Fatalf("%+v: %d rows in %d blocks: %d blocks of %d rows from block %d on, after one of %d", e, n, blocks, count, rows, b, last)
				}
				if e.even && rows%2 == 1 && b+1 < blocks {
					t.Fatalf("%d rows in %d blocks: block %d has %d rows", n, blocks, b, rows)
				}
				total = total + rows*count
				last = rows
				b = b + count
			}
			if total != n {
				t.Fatalf("%+v: %d blocks of %d rows have %d", e, blocks, n, total)
			}
		}
	}
}
