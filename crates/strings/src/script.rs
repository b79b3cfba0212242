//! The scripts of characters: Latin, Greek, and so on.

use regex_syntax::hir::{Class, HirKind};
use std::sync::LazyLock;
use taut_core::{DType, Error, Result, Tensor};

/// The script of code points that are not assigned.
const UNKNOWN: i32 = 103;

/// The scripts by their codes of ISO 15924, and their numbers in ICU (`UScriptCode`), which TensorFlow returns.
#[rustfmt::skip]
const NUMBERS: [(&str, i32); 170] = [
    ("Zyyy", 0), ("Zinh", 1), ("Arab", 2), ("Armn", 3), ("Beng", 4), ("Bopo", 5), ("Cher", 6), ("Copt", 7),
    ("Cyrl", 8), ("Dsrt", 9), ("Deva", 10), ("Ethi", 11), ("Geor", 12), ("Goth", 13), ("Grek", 14),
    ("Gujr", 15), ("Guru", 16), ("Hani", 17), ("Hang", 18), ("Hebr", 19), ("Hira", 20), ("Knda", 21),
    ("Kana", 22), ("Khmr", 23), ("Laoo", 24), ("Latn", 25), ("Mlym", 26), ("Mong", 27), ("Mymr", 28),
    ("Ogam", 29), ("Ital", 30), ("Orya", 31), ("Runr", 32), ("Sinh", 33), ("Syrc", 34), ("Taml", 35),
    ("Telu", 36), ("Thaa", 37), ("Thai", 38), ("Tibt", 39), ("Cans", 40), ("Yiii", 41), ("Tglg", 42),
    ("Hano", 43), ("Buhd", 44), ("Tagb", 45), ("Brai", 46), ("Cprt", 47), ("Limb", 48), ("Linb", 49),
    ("Osma", 50), ("Shaw", 51), ("Tale", 52), ("Ugar", 53), ("Bugi", 55), ("Glag", 56), ("Khar", 57),
    ("Sylo", 58), ("Talu", 59), ("Tfng", 60), ("Xpeo", 61), ("Bali", 62), ("Batk", 63), ("Brah", 65),
    ("Cham", 66), ("Egyp", 71), ("Hmng", 75), ("Hung", 76), ("Java", 78), ("Kali", 79), ("Lepc", 82),
    ("Lina", 83), ("Mand", 84), ("Mero", 86), ("Nkoo", 87), ("Orkh", 88), ("Perm", 89), ("Phag", 90),
    ("Phnx", 91), ("Plrd", 92), ("Vaii", 99), ("Xsux", 101), ("Cari", 104), ("Lana", 106), ("Lyci", 107),
    ("Lydi", 108), ("Olck", 109), ("Rjng", 110), ("Saur", 111), ("Sgnw", 112), ("Sund", 113), ("Mtei", 115),
    ("Armi", 116), ("Avst", 117), ("Cakm", 118), ("Kthi", 120), ("Mani", 121), ("Phli", 122), ("Phlp", 123),
    ("Prti", 125), ("Samr", 126), ("Tavt", 127), ("Bamu", 130), ("Lisu", 131), ("Sarb", 133), ("Bass", 134),
    ("Dupl", 135), ("Elba", 136), ("Gran", 137), ("Mend", 140), ("Merc", 141), ("Narb", 142), ("Nbat", 143),
    ("Palm", 144), ("Sind", 145), ("Wara", 146), ("Mroo", 149), ("Nshu", 150), ("Shrd", 151), ("Sora", 152),
    ("Takr", 153), ("Tang", 154), ("Hluw", 156), ("Khoj", 157), ("Tirh", 158), ("Aghb", 159), ("Mahj", 160),
    ("Ahom", 161), ("Hatr", 162), ("Modi", 163), ("Mult", 164), ("Pauc", 165), ("Sidd", 166), ("Adlm", 167),
    ("Bhks", 168), ("Marc", 169), ("Newa", 170), ("Osge", 171), ("Gonm", 175), ("Soyo", 176), ("Zanb", 177),
    ("Dogr", 178), ("Gong", 179), ("Maka", 180), ("Medf", 181), ("Rohg", 182), ("Sogd", 183), ("Sogo", 184),
    ("Elym", 185), ("Hmnp", 186), ("Nand", 187), ("Wcho", 188), ("Chrs", 189), ("Diak", 190), ("Kits", 191),
    ("Yezi", 192), ("Cpmn", 193), ("Ougr", 194), ("Tnsa", 195), ("Toto", 196), ("Vith", 197), ("Kawi", 198),
    ("Nagm", 199), ("Gara", 201), ("Gukh", 202), ("Krai", 203), ("Onao", 204), ("Sunu", 205), ("Todr", 206),
    ("Tutg", 207),
];

/// Ranges of code points in ascending order, first and last of each, and their scripts.
static RANGES: LazyLock<Vec<(u32, u32, i32)>> = LazyLock::new(|| {
    let mut ranges = Vec::new();
    for (name, number) in NUMBERS {
        // A script that the tables do not have has no characters.
        if let Ok(parsed) = regex_syntax::parse(&format!("\\p{{sc={name}}}"))
            && let HirKind::Class(Class::Unicode(class)) = parsed.kind()
        {
            ranges.extend(class.iter().map(|range| (range.start() as u32, range.end() as u32, number)));
        }
    }
    ranges.sort_unstable();
    ranges
});

/// The script of each code point (`int32`): ICU's number of it, 103 if it is not assigned, -1 if it is not a code point.
///
/// ```
/// use taut_core::Tensor;
/// let points = Tensor::from_vec(vec!['a' as i32, 'я' as i32, -5], [3])?;
/// assert_eq!(taut_strings::unicode_script(&points)?.to_vec::<i32>()?, [25, 8, -1]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn unicode_script(points: &Tensor) -> Result<Tensor> {
    if points.dtype() != DType::I32 {
        return Err(Error::dtype(format!("code points must be int32, got {}", points.dtype())));
    }
    let scripts = points.to_vec::<i32>()?.into_iter().map(script).collect();
    Tensor::from_vec(scripts, points.shape().clone())
}

fn script(point: i32) -> i32 {
    let Some(point) = u32::try_from(point).ok().filter(|&point| point <= u32::from(char::MAX)) else {
        return -1;
    };
    let behind = RANGES.partition_point(|&(first, _, _)| first <= point);
    let range = behind.checked_sub(1).map(|index| RANGES[index]);
    range.filter(|&(_, last, _)| point <= last).map_or(UNKNOWN, |(_, _, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_one_script() {
        assert!(RANGES.len() > 500, "{} ranges", RANGES.len());
        assert!(RANGES.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert_eq!((script('あ' as i32), script('一' as i32), script('ق' as i32)), (20, 17, 2));
        assert_eq!((script('7' as i32), script(0x0301), script(0xd800)), (0, 1, UNKNOWN));
        assert_eq!((script(0x10_ffff), script(0x11_0000), script(i32::MIN)), (UNKNOWN, -1, -1));
    }
}
