"""The command `slipway`: its verbs, and what a person sees and is asked."""
