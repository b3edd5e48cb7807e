#!/usr/bin/env python3
"""Every file of the catalogue against the schema of its kind, as editors check it; results against theirs.

check_schemas.py FORETRAIN
"""
import json
import pathlib
import subprocess
import sys

import jsonschema
import yaml

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "scenarios"
FILES = {
    "scenario": ["runs/*.yaml"],
    "hardware": ["hardware/*.yaml", "hardware/*/*.yaml"],
    "model": ["models/*.yaml"],
    "calibration": ["calibrations/*.yaml"],
    "framework": ["frameworks/*.yaml"],
}
WRONG = {
    "scenario": "cluster: { node: dgx-h100, nodez: 2 }\nworkload: { train: { model: gpt2 } }",
    "hardware": "kind: gpu\nmemory: 80 apples",
    "model": "family: lama\nlayers: 2",
    "calibration": "kind: calibration\nconstants: []",
    "framework": "kind: framework\nsettings: { plan.tensr: { value: 1 } }",
}


class Loader(yaml.SafeLoader):
    """YAML 1.2, as editors read it: on, off, yes and no are words."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def best_complaint(error):
    while error.context:
        error = max(error.context, key=lambda one: len(one.absolute_path))
    return f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"


def check_results():
    said = [subprocess.run([sys.argv[1], *command], check=True, capture_output=True, text=True).stdout
            for command in (["keys", "--schema", "result"],
                            ["predict", "gpt2-xl-dgx-a100", "servers-jitter", "sync-ring-4", "hierarchy-l1", "execution-mlp",
                             "--fidelity", "estimate", "--json"])]
    schema, results = map(json.loads, said)
    jsonschema.Draft7Validator.check_schema(schema)
    complaints = [best_complaint(error) for result in results for error in jsonschema.Draft7Validator(schema).iter_errors(result)]
    print("\n".join([*complaints, f"result: {len(results)} results"]))
    return len(complaints)


def main():
    failed = 0
    for kind, patterns in FILES.items():
        command = [sys.argv[1], "keys", "--schema", kind]
        schema = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        files = [file for pattern in patterns for file in sorted(SCENARIOS.glob(pattern))]
        for file in files:
            for error in validator.iter_errors(yaml.load(file.read_text(), Loader)):
                print(f"{file.relative_to(SCENARIOS)}: {best_complaint(error)}")
                failed += 1
        if validator.is_valid(yaml.load(WRONG[kind], Loader)):
            print(f"{kind}: the schema takes what is wrong")
            failed += 1
        print(f"{kind}: {len(files)} files")
    return 1 if failed + check_results() else 0


if __name__ == "__main__":
    sys.exit(main())
