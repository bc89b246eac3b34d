"""Models of a machine: the time of a transfer that was not measured, with its interval.

What may happen here: curves are fitted, capacities of shared links are found, sets of transfers are
predicted, machines are simulated. A file is one concept; all values are frozen.

Types to know:

- `CurveModel` (`model.curve`): one curve: a line, or lines with switches. Reports and predictions
  read the same one. A parameter that the measurements do not determine is a `FittedParameter`
  without a value and with the reason.
- `CapacityModel` (`model.capacity`): curves of single transfers and the capacities of what they
  share. `model.resources` says what a transfer uses, `model.share` fills max-min shares over time,
  `model.capacity_fit` finds capacities in measured sets, `model.whatif` changes a model.
- `SimulatedMachine` (`model.simulation`): a model with changes and with the noise of a profile; the
  simulation answers orders in the place of a worker.

Messages between ranks (`model.messages`, `model.rate`, `model.strategies`) come from imported
results; `model.published` is the rule of a paper, kept apart from our own fits. `model.export`
writes models for other programs, one file per format.

Never here: samples that a validation set holds. `Machine.simulated` is the only mark of a simulated
machine; `require_real` protects what is for real machines.
"""
