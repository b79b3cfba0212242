//! Computing with several processes: groups of ranks, and ops that exchange tensors between them.
//!
//! A [`Transport`] carries bytes ([`mpi`] between processes, [`Threads`] in tests, [`Paper`] for plans); a [`Group`] is a set of ranks;
//! [`all_reduce`], [`reduce_scatter`], [`all_gather`] and [`broadcast`] are ops like any other: they are traced, differentiated and
//! planned. Sums are added in an order that depends on the number of ranks alone ([`tree_sum`]), so that every rank, every MPI
//! library and every size of message gives the same bits.
//!
//! ```
//! use taut_core::Tensor;
//! use taut_distribute::{Group, ReduceOp, Threads, all_reduce};
//! let ranks = Threads::of(3).into_iter().map(|rank| {
//!     std::thread::spawn(move || -> taut_core::Result<Vec<f32>> {
//!         let group = Group::of(rank)?;
//!         let x = Tensor::new([group.rank() as f32, 1.0])?;
//!         all_reduce(x, ReduceOp::Sum, &group)?.to_vec()
//!     })
//! });
//! for rank in ranks.collect::<Vec<_>>() {
//!     assert_eq!(rank.join().unwrap()?, [3.0, 3.0]);
//! }
//! # Ok::<(), taut_core::Error>(())
//! ```

mod collective;
mod group;
pub mod mpi;
mod ops;
mod plan;
mod threads;
mod transport;
mod tree;
mod variables;

pub use group::{Digest, Group};
pub use ops::{
    ReduceOp, all_gather, all_reduce, broadcast, gather_shards, own_shard, reduce_scatter, reduce_shard,
    replace_shards,
};
pub use plan::{Network, RankPlan};
pub use threads::Threads;
pub use transport::{Paper, Transport};
pub use tree::tree_sum;
pub use variables::{broadcast_variables, check_equal};
