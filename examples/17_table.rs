//! A table in a CSV file: numbers are normalised, words are looked up, missing fields have a default.

use taut::data::{CsvColumn, CsvFormat, FileSet, Shuffle, csv_rows};
use taut::layers::Dense;
use taut::losses::MeanSquaredError;
use taut::optimizers::{Adam, Optimizer};
use taut::random::Generator;
use taut::strings::{StringTable, StringTensor};
use taut::{DType, Layer, Result, Trainer, memory};
use taut_examples::{TemporaryFolder, is_quick};

const CITIES: [&str; 3] = ["bern", "graz", "oslo"];
/// Rows in the shuffle buffer.
const SHUFFLED: usize = 1000;

/// Rents that depend on area and city. One area in fifty is missing.
fn write_table(path: &std::path::Path, rows: usize) -> Result<()> {
    let random = Generator::from_seed(1);
    let area = random.integers([rows], 20, 150, DType::I64)?.to_vec::<i64>()?;
    let city = random.integers([rows], 0, 3, DType::I64)?.to_vec::<i64>()?;
    let mut text = String::from("area,city,rent\n");
    for (row, (area, city)) in area.iter().zip(&city).enumerate() {
        let rent = 5 * area + 300 * city;
        let area = if row % 50 == 0 { String::new() } else { area.to_string() };
        text.extend([area.as_str(), ",", CITIES[*city as usize], ",", &rent.to_string(), "\n"]);
    }
    Ok(std::fs::write(path, text)?)
}

fn main() -> Result<()> {
    let (rows, batch) = if is_quick() { (600, 50) } else { (50_000, 500) };
    taut::random::set_seed(1);
    let folder = TemporaryFolder::new()?;
    let path = folder.join("rents.csv");
    write_table(&path, rows)?;

    // An empty area is taken to be 85; an empty city or rent is an error with file and line.
    let columns = vec![CsvColumn::F32(Some(85.0)), CsvColumn::String(None), CsvColumn::F32(None)];
    let format = CsvFormat {
        header: true,
        delimiter: b',',
        quote: true,
        missing: Vec::new(),
        select: None,
        most_fields: None,
    };
    let table = csv_rows(&FileSet::new([&path]), columns, format)?;

    let (mut sum, mut squares) = (0.0, 0.0);
    for batch in table.batch(batch)?.iter()? {
        for area in batch?[0].numbers()?.to_vec::<f32>()? {
            (sum, squares) = (sum + f64::from(area), squares + f64::from(area).powi(2));
        }
    }
    let mean = sum / rows as f64;
    let deviation = (squares / rows as f64 - mean * mean).sqrt();
    println!("areas: mean {mean:.1}, standard deviation {deviation:.1}");

    let cities = StringTable::new(StringTensor::from_values(CITIES, [3])?)?;
    let batches = table
        .shuffle(Shuffle::new(SHUFFLED).seed(1))?
        .batch(batch)?
        .map(move |columns| {
            let area = ((columns[0].numbers()? - mean)? / deviation)?;
            let city = cities.positions(columns[1].strings()?)?;
            let city = taut::one_hot(city, CITIES.len(), 1, 0, -1, DType::F32)?;
            let features = taut::concat(&[taut::expand_dims(area, -1)?, city], 1)?;
            Ok((features, taut::expand_dims((columns[2].numbers()? / 1000.0)?, -1)?))
        })
        .prefetch(1)?;

    let model = Dense::new(1 + CITIES.len(), 1).build()?;
    let optimizer =
        Optimizer::new(Adam { rate: 0.1.into(), ..Adam::default() }, &model.trainable_variables())?;
    let mut trainer = Trainer::new(model, MeanSquaredError, optimizer);
    let before = memory::live_bytes();
    memory::reset_peak();
    let losses = trainer.fit(&batches, 5)?.scores("loss");
    let measured = memory::peak_bytes() - before;
    println!("losses {losses:.5?}");
    // The rows of the shuffle buffer, three columns each, and a few batches; not the table.
    let bound = SHUFFLED * 3 * 64 + 6 * batch * 64 + (1 << 16);
    let size = std::fs::metadata(&path)?.len();
    println!("{measured} bytes at most, bound {bound}, of a table of {size} bytes");
    assert!(measured <= bound);
    assert!(losses[4] < 0.1 * losses[0]);
    Ok(())
}
