"""The series of profiles: their samples as arrays, their estimates, and reasons to doubt them."""
