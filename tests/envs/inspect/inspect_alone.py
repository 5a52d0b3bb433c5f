"""Run tasks by Inspect itself, with the script as its model, and print each sample's score as JSON."""

from __future__ import annotations

import json
import sys

from inspect_ai import eval as inspect_eval
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolCall
from script import said


class Script(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):  # noqa: A002
        del tool_choice, config
        conversation = [(message.role, message.text) for message in input]
        words = said(conversation, {tool.name: tool.parameters.model_dump(exclude_none=True) for tool in tools})
        arguments = json.loads(words.arguments or "{}")
        calls = [ToolCall(id=f"c{len(input)}", function=words.tool, arguments=arguments)] if words.tool else None
        message = ChatMessageAssistant(content=words.text, tool_calls=calls, source="generate")
        stop = "tool_calls" if calls else "stop"
        return ModelOutput(model="script", choices=[ChatCompletionChoice(message=message, stop_reason=stop)])

    async def count_text_tokens(self, text):
        return len(text)


modelapi("script")(Script)


def main() -> None:
    """Take the folder of the logs and a JSON list of objects with ``tasks``, ``task_args`` and ``limit``."""
    for spec in json.loads(sys.argv[2]):
        logs = inspect_eval(
            **spec,
            model="script/model",
            model_roles={"grader": "script/grader", "user": "script/user"},
            display="none",
            log_dir=sys.argv[1],
            log_format="json",
            epochs=1,
            fail_on_error=False,
        )
        rows = {
            str(sample.id): {name: score.value for name, score in (sample.scores or {}).items()}
            for sample in logs[0].samples or []
        }
        print(json.dumps(rows))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
