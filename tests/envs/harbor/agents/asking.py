"""Asks the model what to do, does it, and tells it what came of it, until it has nothing more to be done."""

import json
import os
import re
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

MOST = 5

address = urlsplit(os.environ["OPENAI_BASE_URL"])
skills = [path.read_text() for path in sorted(Path(os.environ["SKILLS"]).glob("*/SKILL.md"))]
messages = [{"role": "system", "content": "\n".join(skills)}, {"role": "user", "content": os.environ["INSTRUCTION"]}]
headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
for _ in range(MOST):
    connection = HTTPConnection(address.netloc, timeout=60)
    connection.request(
        "POST", f"{address.path}/chat/completions", json.dumps({"model": "any", "messages": messages}), headers
    )
    response = connection.getresponse()
    body = json.loads(response.read())
    if response.status != 200:
        sys.exit(str(body))
    text = body["choices"][0]["message"]["content"]
    command = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    if command is None:
        break
    result = subprocess.run(["bash", "-c", command[1]], capture_output=True, text=True, check=False)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"output: {result.stdout}"}]
