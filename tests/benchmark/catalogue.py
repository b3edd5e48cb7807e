"""The shipped catalogue with other constants, and what the program predicts with it."""
import json
import os
import re
import subprocess
import tempfile

SCENARIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scenarios")
CASES = os.path.join(SCENARIOS, "cases")
PUBLISHED = os.path.join(SCENARIOS, "calibrations", "published.yaml")


def published():
    with open(PUBLISHED, encoding="utf-8") as text:
        return text.read()


def shipped(name):
    return float(re.search(rf"  {re.escape(name)}: {{ value: ([0-9.e+-]+)", published()).group(1))


def with_constants(folder, values):
    """A catalogue in `folder` that differs from the shipped one in these constants."""
    for name in os.listdir(SCENARIOS):
        if name != "calibrations":
            os.symlink(os.path.join(SCENARIOS, name), os.path.join(folder, name))
    text = published()
    for name, value in values.items():
        text, found = re.subn(rf"(  {re.escape(name)}: {{ value: )[0-9.e+-]+", rf"\g<1>{value:.8g}", text)
        assert found == 1, name
    os.mkdir(os.path.join(folder, "calibrations"))
    with open(os.path.join(folder, "calibrations", "published.yaml"), "w", encoding="utf-8") as file:
        file.write(text)


def validated(program, files, values, *options):
    """The cases of tables as `foretrain validate` has them with these constants."""
    with tempfile.TemporaryDirectory() as folder:
        with_constants(folder, values)
        run = subprocess.run([program, "validate", "--json", *options, "--cases", *files], check=False,
                             stdout=subprocess.PIPE, env={**os.environ, "FORETRAIN_SCENARIOS": folder})
    return json.loads(run.stdout)["cases"]
