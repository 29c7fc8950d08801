"""How fast, how safe and how honest the product is, each measured beside a reference.

`python -m benchmarks [NAME ...] [--quick]`; README.md says what each one measures.
"""
