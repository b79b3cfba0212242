//! Datasets: where elements come from, what is done to them on the way, and how far one got.
