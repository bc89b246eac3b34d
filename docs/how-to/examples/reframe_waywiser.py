"""A run-only test of ReFrame: the links of a node beside those of a healthy one.

waywiser export healthy.wwp --for reframe -o references.json
WAYWISER_REFERENCES=$PWD/references.json reframe -c reframe_waywiser.py -r
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function

with open(os.environ["WAYWISER_REFERENCES"]) as file:
    REFERENCES = json.load(file)["references"]


@rfm.simple_test
class WaywiserLinks(rfm.RunOnlyRegressionTest):
    """Bandwidths of the headline paths, each with a tolerance for its noise."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "waywiser"
    executable_opts = ["survey", "--preset", "check", "-o", "node.wwp"]
    postrun_cmds = ["waywiser export node.wwp --summary --format json -o summary.json"]
    keep_files = ["node.wwp", "summary.json"]
    time_limit = "10m"

    @sanity_function
    def is_measured(self):
        """Whether each path has a bandwidth. A lost GPU has none."""
        missing = [each["name"] for each in REFERENCES if self.bandwidth(each) is None]
        return sn.assert_false(missing, f"not measured: {', '.join(missing)}")

    @run_before("performance")
    def set_references(self):
        """Makes a value of each path."""
        self.reference = {
            "*": {
                each["name"]: (each["gb_per_s"], -each["tolerance"], None, "GB/s")
                for each in REFERENCES
            }
        }
        for each in REFERENCES:
            value = sn.make_performance_function(self.bandwidth, "GB/s", each)
            self.perf_variables[each["name"]] = value

    def bandwidth(self, reference):
        """GB/s of the path of a reference; None if it was not measured."""
        with open(os.path.join(self.stagedir, "summary.json")) as file:
            rows = json.load(file)["series"]
        found = [row for row in rows if row["workload"] == reference["workload"]]
        return found[0]["gb_per_s"] if found else None
