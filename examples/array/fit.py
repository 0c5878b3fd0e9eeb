"""Fits a line by gradient descent with the learning rate that it is given, and prints the rate and the loss that is left."""

import random
import sys

rate = float(sys.argv[1])
random.seed(1)
points = [(x / 50, 3 * x / 50 + 1 + random.gauss(0, 0.1)) for x in range(100)]
slope = offset = 0.0
for _ in range(200):
    errors = [(slope * x + offset - y, x) for x, y in points]
    slope -= rate * sum(error * x for error, x in errors) / len(points)
    offset -= rate * sum(error for error, _ in errors) / len(points)
loss = sum((slope * x + offset - y) ** 2 for x, y in points) / len(points)
print(f"{rate} {loss:.5g}")
