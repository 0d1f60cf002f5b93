#!/usr/bin/env python3
"""usage: check_manifest.py FILE: objects of Kubernetes against its schemas, none of whose keys may be unknown.

An MPIJob is checked against mpijob_schema.json beside this file, each of its pods against Kubernetes' own schema. Prints
each object's kind and name. Needs the package kubernetes-validate.
"""
import json
import os
import sys

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.36"


def check(document):
    kind = document["kind"]
    if kind != "MPIJob":
        kubernetes_validate.validate(document, VERSION, strict=True)
        return
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpijob_schema.json")) as f:
        jsonschema.validate(document, json.load(f))
    for name, replica in document["spec"]["mpiReplicaSpecs"].items():
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name.lower()}}
        template["template"] = dict(replica["template"])
        # The operator sets what a pod of its own would need.
        template["template"]["spec"] = dict(template["template"]["spec"], restartPolicy=replica["restartPolicy"])
        kubernetes_validate.validate(template, VERSION, strict=True)


for document in yaml.safe_load_all(open(sys.argv[1])):
    check(document)
    print(document["kind"], document["metadata"]["name"])
