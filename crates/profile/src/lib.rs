//! What happened when: memory and time of a piece of work, op by op, and the page that shows it.
