"""ReFrame: is a node good enough to train on? The thresholds are the site file's, the figures go into ReFrame's performance log.
reframe -c configs/acceptance/chexnet_reframe.py -r -S site=/etc/chexnet/site.yaml -S node_type=gpu_node -S ranks=4"""
import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function, variable


@rfm.simple_test
class ChexnetAcceptance(rfm.RunOnlyRegressionTest):
    descr = 'chexnet-train doctor --acceptance'
    valid_systems = ['*']
    valid_prog_environs = ['*']
    sourcesdir = None
    executable = 'chexnet-train'
    site = variable(str, value=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'site.yaml'))
    node_type = variable(str, value='')
    ranks = variable(int, value=2)  # started by the program, on the node that the job has

    @run_before('run')
    def arguments(self):
        self.executable_opts = ['doctor', '--acceptance', self.site, '--ranks', str(self.ranks), '--json']
        if self.node_type:
            self.executable_opts += ['--node-type', self.node_type]

    def result(self):
        with open(os.path.join(self.stagedir, self.stdout.evaluate()), encoding='utf-8') as file:
            return json.load(file)

    @sanity_function
    def nothing_failed(self):
        failed = [f"{check['name']}: {check['text']}" for check in self.result()['checks'] if check['level'] == 'FAIL']
        return sn.assert_eq(failed, [], '; '.join(failed))

    @run_before('performance')
    def figures(self):
        for row in self.result()['acceptance']['rows']:
            if row['unit']:
                self.perf_variables[row['name']] = sn.make_performance_function(
                    lambda row=row: float(row['found']), row['unit'])
                self.reference.setdefault('*', {})[row['name']] = (float(row['wanted']), 0.0, None, row['unit'])
