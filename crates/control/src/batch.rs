//! One more interpreter of graphs: many sets of inputs at once.
