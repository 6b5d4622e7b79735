"""Runs one class of tests: run.py MODULE CLASS. Exits 77 (skipped) where CUPTI's host library is missing."""

import importlib
import sys
import unittest

import harness

if not harness.can_profile():
    print("skipped: kprof cannot plan without CUPTI's host library")
    sys.exit(harness.SKIPPED)
tests = unittest.defaultTestLoader.loadTestsFromTestCase(getattr(importlib.import_module(sys.argv[1]), sys.argv[2]))
sys.exit(not unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful())
