"""Container images of Slipway and the program that builds them."""
