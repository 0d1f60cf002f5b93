#!/usr/bin/env python3
"""Which tests were skipped, each with the last line that it printed. usage: skipped.py JUNIT_FILE"""
import sys
import xml.etree.ElementTree

for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter('testcase'):
    skipped = case.find('skipped')
    if skipped is not None:
        said = (case.findtext('system-out') or '').strip().splitlines()
        print(f"skipped: {case.get('name')}: {said[-1] if said else skipped.get('message')}")
