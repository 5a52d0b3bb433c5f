"""Run tasks by Inspect itself, with the script as its model, and print each sample's score as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai import eval as inspect_eval
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolCall
from script import said


class Script(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):  # noqa: A002
        del tool_choice, config
        question = next(message.text for message in input if message.role == "user")
        results = [message.text for message in input if message.role == "tool"]
        words = said(question, results, {tool.name for tool in tools})
        calls = (
            [ToolCall(id=f"c{len(input)}", function=words.tool, arguments=json.loads(words.arguments))]
            if words.tool
            else None
        )
        message = ChatMessageAssistant(content=words.text, tool_calls=calls, source="generate")
        stop = "tool_calls" if calls else "stop"
        return ModelOutput(model="script", choices=[ChatCompletionChoice(message=message, stop_reason=stop)])

    async def count_text_tokens(self, text):
        return len(text)


modelapi("script")(Script)


def main() -> None:
    folder, *specs = sys.argv[1:]
    for spec in specs:
        file, _, arguments = spec.partition(" ")
        logs = inspect_eval(
            file,
            task_args=json.loads(arguments or "{}"),
            model="script/model",
            display="none",
            log_dir=folder,
            log_format="json",
            epochs=1,
            fail_on_error=False,
            limit=30,
        )
        rows = {}
        for sample in logs[0].samples or []:
            scores = {name: score.value for name, score in (sample.scores or {}).items()}
            asked = "".join(message.text for message in sample.messages if message.role != "system")
            rows[str(sample.id)] = [scores, asked if sample.error is None else sample.error.message]
        print(json.dumps([spec, logs[0].status, rows]))  # noqa: T201 - a program


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
