"""`slipway status`: a live cluster at a glance. `readings` asks, `overview` summarizes, `screen` formats, `live` prints."""
