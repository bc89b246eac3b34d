"""The series of profiles: their samples as arrays, their estimates, and their quality flags."""
