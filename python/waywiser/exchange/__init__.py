"""Other programs: their results as profiles (`imports`), their settings from profiles
(`settings`)."""
