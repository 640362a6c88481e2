"""From a torch model to a `secure` program: `fhelium.compile`.

`exported_graph.py` runs `torch.export` and reads what it gives, `builder.py` writes the program,
`operators` has one rule for each torch operator that has a meaning on secrets, and
`approximation.py` finds the polynomials that stand for activations. Only a call imports torch.
"""
