"""Rows of comma-separated values, valid and not, which must be read or refused as TensorFlow does.

`python/tools/answers.py` reads them with TensorFlow and writes `csv_answers.json`; the tests compare.
"""

import os

#: Strings that are one record each.
RECORDS = (
    '1,2|"1","2"|"2"x,1|1,"2|1,"2""|"a""b",c|a"b,c|"a,b",c||\n|1,2\n|1,2\r\n|1\n,2|1\r,2|"1\n2",3|"1\r\n2",3|a,b,c|a'
    '| "a",b|a, "b"|"a" ,b|,|"",""|NA,1|"NA",1|"1",NA|a,b,|"a","b"\n|a,b\r|a\r\nb,c|"|""|"""|""""|"a|a""b,c|"""a""",b'
    '|"a"\n,b|"a"\r,b|"a"",b|ä,b'
).split("|")
NUMBERS = (
    " 1, 2|1.5,2|1e3,2|0x10,2|nan,inf|-inf,+1|1_0,2|1 2,3|99999999999,1|-0,1|1.,.5|1e400,1|\t1,2|1d,2|INF,Nan|-nan,1"
    "|1e-400,1|３,1|--1,1|1e,1|\u00a01,2"
).split("|")

#: Files of two columns.
FILES = {
    "plain": b"1,2\n3,4\n",
    "no_end": b"1,2\n3,4",
    "crlf": b"1,2\r\n3,4\r\n",
    "cr": b"1,2\r3,4\r",
    "blank": b"1,2\n\n3,4\n",
    "blank_crlf": b"1,2\r\n\r\n3,4\r\n",
    "blank_end": b"1,2\n3,4\n\n",
    "blank_start": b"\n1,2\n",
    "quoted": b'"1","2"\n3,4\n',
    "unterminated": b'"1,2\n3,4\n',
    "unterminated_last": b'1,"2\n3,4',
    "unterminated_third": b'1,2,"x\n3,4\n',
    "behind_quote": b'1,"2"x\n3,4\n',
    "behind_quote_again": b'"a"b,"d\n3,4\n5",6\n7,8\n',
    "inner_quote": b'1,a"b\n3,4\n',
    "inner_quote_then_quoted": b'a"b,"d\n3,4\n5",6\n7,8\n',
    "line_break": b'1,"a\nb"\n3,4\n',
    "line_break_crlf": b'1,"a\r\nb"\r\n3,4\r\n',
    "doubled": b'1,"a""b"\n3,"""c"""\n',
    "space_quote": b'1, "a"\n3,4\n',
    "missing": b"1\n3,4\n",
    "extra": b"1,2,3\n3,4\n",
    "empty": b"",
    "line": b"\n",
    "na": b"NA,2\n3,NA\n",
    "na_quoted": b'"NA",2\n3,"NA"\n',
    "empty_quoted": b'"",""\n3,4\n',
    "empty_fields": b",\n3,4\n",
    "trailing": b"1,2,\n3,4\n",
    "cr_inside": b"1,a\rb\n3,4\n",
    "mark": b"\xef\xbb\xbf1,2\n3,4\n",
    "zero": b"1,a\0b\n",
    "latin": b"1,\xff\xfe\n3,4\n",
    "quote_at_end": b'1,"2"',
    "quote_cr": b'1,"2"\r',
    "cr_crlf": b"1,2\r\r\n3,4\n",
    "space": b"1,2\n \n3,4\n",
}
#: Files of one column.
SINGLE = {
    "single": b"1\n\n3\n",
    "single_end": b"1\n\n",
    "single_crlf": b"1\r\n\r\n3\r\n",
    "single_lines": b"\n\n",
    "single_quoted": b'""\n1\n',
    "single_cr": b"1\r\r3\r",
}
#: Files with a header, for `make_csv_dataset`.
TABLES = {
    "names": b"a,b\n1,2\n3,4\n5,6\n",
    "types": b"a,b,c,d\n1,2.5,x,99999999999\n3,4,y,1\n",
    "quoted_names": b'"a,x","b"\n"1","x,y"\n',
    "crlf_names": b"a,b\r\n1,2\r\n",
    "unterminated_field": b'a,b\n1,"2\n',
    "empty_values": b"a,b\n,x\n1,\n",
    "text_after_numbers": b"a\n1\n1\nx\n",
    "header_only": b"a,b\n",
    "large": b"a\n1e300\n",
    "spaces": b"a, b\n1, 2\n",
    "words": b"a\ntrue\n",
    "not_finite": b"a\nnan\ninf\n",
}

REFUSED = "refused"


def _found(tf, elements, most=12):
    """The elements of an iterator; those that are refused by name."""
    running, found = iter(elements), []
    while len(found) < most:
        try:
            found.append(next(running))
        except StopIteration:
            break
        # TensorFlow's messages can have bytes of the file, which Python cannot decode.
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
            found.append(REFUSED)
    return found


def _decoded(tf, records, defaults, **options):
    """Each record by itself, because one that is refused refuses the others."""

    def parse(record):
        try:
            return tf.io.decode_csv([record], defaults, **options)
        except tf.errors.InvalidArgumentError:
            return REFUSED

    return [parse(record) for record in records]


def _variants(tf, path, columns):
    """The rows of a file, read in several ways."""

    def rows(defaults=None, **options):
        defaults = ["x", "y"][:columns] if defaults is None else defaults
        return tf.data.experimental.CsvDataset(path, defaults, **options)

    made = {
        "rows": rows(),
        "without_quotes": rows(use_quote_delim=False),
        "header": rows(header=True),
        "missing": rows(na_value="NA"),
        "integers": rows([[7], [8]][:columns]),
        "required": rows([tf.string] * columns),
        "small_buffer": rows(buffer_size=2),
        "without_errors": rows().ignore_errors(),
        "first": rows(["x"], select_cols=[0]),
        "second": rows(["x"], select_cols=[1]),
        "delimiter": rows(["x"], field_delim=";"),
    }
    return {name: _found(tf, dataset) for name, dataset in made.items()}


def _table(tf, path):
    batches = tf.data.experimental.make_csv_dataset(path, 2, num_epochs=1, shuffle=False)
    return [batch if batch == REFUSED else dict(batch) for batch in _found(tf, batches, 3)]


def _file(folder, name, contents):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(contents)
    return path


def _cases():
    texts = ["x", "y"]
    cases = {
        "records": lambda tf, folder: _decoded(tf, RECORDS, texts),
        "records_without_quotes": lambda tf, folder: _decoded(tf, RECORDS, texts, use_quote_delim=False),
        "records_missing": lambda tf, folder: _decoded(tf, RECORDS, texts, na_value="NA"),
        "records_integers": lambda tf, folder: _decoded(tf, RECORDS, [[7], [8]]),
        "records_first": lambda tf, folder: _decoded(tf, RECORDS, ["x"], select_cols=[0]),
        "records_second": lambda tf, folder: _decoded(tf, RECORDS, ["x"], select_cols=[1]),
        "records_single": lambda tf, folder: _decoded(tf, RECORDS, ["x"]),
        "records_delimiter": lambda tf, folder: _decoded(tf, ["1;2", "1\n2", "1,2"], [[1], [2]], field_delim=";"),
    }
    for kind in ("int32", "int64", "float32", "float64"):
        cases[f"numbers_{kind}"] = lambda tf, folder, kind=kind: _decoded(
            tf, NUMBERS, [tf.constant([], getattr(tf, kind))] * 2
        )
    for columns, files in ((2, FILES), (1, SINGLE)):
        for name, contents in files.items():
            cases[name] = lambda tf, folder, name=name, contents=contents, columns=columns: _variants(
                tf, _file(folder, name, contents), columns
            )
    for name, contents in TABLES.items():
        cases[name] = lambda tf, folder, name=name, contents=contents: _table(tf, _file(folder, name, contents))
    return cases


CASES = _cases()
