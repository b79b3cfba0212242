//! Regular expressions, and functions of strings that are not text. The first line is the pattern, the second the rewrite.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taut_strings::{Regex, StringTensor, regex_full_match, regex_replace};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |&byte| byte == b'\n');
    let (pattern, rewrite) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
    let text = parts.next().unwrap_or(b"");
    let strings = StringTensor::from_values([text, pattern], [2]).expect("strings are made");
    if let Ok(pattern) = std::str::from_utf8(pattern) {
        if let Ok(regex) = Regex::new(pattern) {
            let _ = regex_replace(&strings, &regex, rewrite, true);
            let _ = regex_replace(&strings, &regex, rewrite, false);
        }
        if let Ok(regex) = Regex::whole(pattern) {
            let _ = regex_full_match(&strings, &regex);
        }
    }
    let _ = taut_strings::split(&strings, rewrite, None);
    let _ = taut_strings::bytes_split(&strings);
});
