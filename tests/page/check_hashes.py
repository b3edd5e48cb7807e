#!/usr/bin/env python3
"""The page's policy allows exactly the script and the style sheet that it has: check_hashes.py TEMPLATE.html"""
import base64
import hashlib
import re
import sys

page = open(sys.argv[1], encoding="utf-8", newline="").read()
for element, directive in (("script", "script-src"), ("style", "style-src")):
    text = re.search(f"<{element}>(.*?)</{element}>", page, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    if f"{directive} 'sha256-{digest}'" not in page:
        sys.exit(f"{sys.argv[1]}: the policy does not allow its {element}; `make page` bundles it anew")
