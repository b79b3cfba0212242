//! The types of the fields in the footer of a Parquet file. Its reader takes every field for what it should be, whatever type
//! it is marked with: a text that is read as a list has a length that was not checked.

use super::compact::{BINARY, BYTE, Compact, DOUBLE, I16, I32, I64, LIST, STRUCT};

/// The type of a field, or of the elements of a list.
enum Type {
    Bool,
    /// A value that is marked with this type of the protocol.
    Plain(u8),
    List(&'static Type),
    /// A structure: the types of its fields by their numbers. It may have others, which are skipped.
    Struct(&'static [(u8, Type)]),
}

use Type::{Bool, List, Plain, Struct};

const INT: Type = Plain(I32);
const LONG: Type = Plain(I64);
const TEXT: Type = Plain(BINARY);
const REAL: Type = Plain(DOUBLE);
const EMPTY: Type = Struct(&[]);
const KEY_VALUES: Type = List(&Struct(&[(1, TEXT), (2, TEXT)]));

const TIME: Type = Struct(&[(1, Bool), (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);

/// `LogicalType`: one of these.
const LOGICAL_TYPE: Type = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, INT), (2, INT)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Plain(BYTE)), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, Plain(BYTE))])),
    (17, Struct(&[(1, TEXT)])),
    (18, Struct(&[(1, TEXT), (2, INT)])),
]);

const SCHEMA_ELEMENT: Type = Struct(&[
    (1, INT),
    (2, INT),
    (3, INT),
    (4, TEXT),
    (5, INT),
    (6, INT),
    (7, INT),
    (8, INT),
    (9, INT),
    (10, LOGICAL_TYPE),
]);

const STATISTICS: Type =
    Struct(&[(1, TEXT), (2, TEXT), (3, LONG), (4, LONG), (5, TEXT), (6, TEXT), (7, Bool), (8, Bool)]);

const BOUNDING_BOX: Type =
    Struct(&[(1, REAL), (2, REAL), (3, REAL), (4, REAL), (5, REAL), (6, REAL), (7, REAL), (8, REAL)]);

/// `ColumnMetaData`.
const COLUMN: Type = Struct(&[
    (1, INT),
    (2, List(&INT)),
    (3, List(&TEXT)),
    (4, INT),
    (5, LONG),
    (6, LONG),
    (7, LONG),
    (8, KEY_VALUES),
    (9, LONG),
    (10, LONG),
    (11, LONG),
    (12, STATISTICS),
    (13, List(&Struct(&[(1, INT), (2, INT), (3, INT)]))),
    (14, LONG),
    (15, INT),
    (16, Struct(&[(1, LONG), (2, List(&LONG)), (3, List(&LONG))])),
    (17, Struct(&[(1, BOUNDING_BOX), (2, List(&INT))])),
]);

const COLUMN_CHUNK: Type = Struct(&[
    (1, TEXT),
    (2, LONG),
    (3, COLUMN),
    (4, LONG),
    (5, INT),
    (6, LONG),
    (7, INT),
    (8, EMPTY),
    (9, TEXT),
]);

const ROW_GROUP: Type = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, LONG),
    (3, LONG),
    (4, List(&Struct(&[(1, INT), (2, Bool), (3, Bool)]))),
    (5, LONG),
    (6, LONG),
    (7, Plain(I16)),
]);

const FILE: Type = Struct(&[
    (1, INT),
    (2, List(&SCHEMA_ELEMENT)),
    (3, LONG),
    (4, List(&ROW_GROUP)),
    (5, KEY_VALUES),
    (6, TEXT),
    (7, List(&Struct(&[(1, EMPTY)]))),
    (8, EMPTY),
    (9, TEXT),
]);

/// Reads a footer; `None` if a field has another type than Parquet's, or a value beyond the end.
pub(super) fn check_types(footer: &[u8]) -> Option<()> {
    FILE.skip(&mut Compact::new(footer), STRUCT, 0)
}

impl Type {
    /// Skips a field of this type, which must be marked with it.
    fn skip(&self, values: &mut Compact<'_>, kind: u8, depth: usize) -> Option<()> {
        match self {
            // The value of a boolean field is its type.
            Bool => matches!(kind, 1 | 2).then_some(()),
            Plain(wanted) => (kind == *wanted).then(|| values.skip(kind, depth))?,
            List(_) if kind != LIST => None,
            List(each) => {
                let (kind, count) = values.list()?;
                (0..count).try_for_each(|_| each.skip(values, kind, depth + 1))
            }
            Struct(_) if kind != STRUCT => None,
            Struct(known) => {
                values.fields(depth, |values, id, kind| match known.iter().find(|(known, _)| *known == id) {
                    Some((_, of)) => of.skip(values, kind, depth + 1),
                    None => values.skip(kind, depth + 1),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_types_of_parquet() {
        let _ledger = taut_memory::testing::ledger_check();
        // Field 1, the version, and field 7, a list of one empty order; then the same order as a text.
        assert!(check_types(&[0x15, 2, 0x69, 0x1c, 0x1c, 0, 0, 0]).is_some());
        assert!(check_types(&[0x15, 2, 0x68, 2, 0x1c, 0, 0]).is_none());
        // The version as a 64-bit integer.
        assert!(check_types(&[0x16, 2, 0]).is_none());
        // A field that Parquet does not have is skipped.
        assert!(check_types(&[0x15, 2, 0x98, 1, b'a', 0]).is_some());
        assert!(check_types(&[0x15, 2, 0x98, 9, b'a', 0]).is_none());
    }
}
