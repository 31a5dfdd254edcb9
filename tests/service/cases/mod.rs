//! Accidents that hurt people elsewhere, each as a test of what must be true here.

mod claims;
mod identity;
mod late;
mod leases;
mod settling;
mod twins;
