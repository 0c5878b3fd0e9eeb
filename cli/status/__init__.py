"""`slipway status`: a live cluster at a glance. `readings` asks, `overview` sums up, `screen` shows."""
