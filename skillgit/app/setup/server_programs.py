"""The programs that serve models on one's own machine, and where each listens unless its user says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

COMPATIBLE = "openai_compatible"
"""The backend that asks them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProgram:
    title: str
    ports: tuple[int, ...]

    def address(self, port: int | None = None) -> str:
        return f"http://127.0.0.1:{port or self.ports[0]}/v1"


_OLLAMA = ServerProgram(title="Ollama", ports=(11434,))
_LM_STUDIO = ServerProgram(title="LM Studio", ports=(1234,))
_LLAMA_CPP = ServerProgram(title="llama.cpp", ports=(8080, 8081))
_VLLM = ServerProgram(title="vLLM", ports=(8000,))
PROGRAMS = (_OLLAMA, _LM_STUDIO, _LLAMA_CPP, _VLLM)

SERVERS = {
    "ollama": _OLLAMA,
    "lmstudio": _LM_STUDIO,
    **dict.fromkeys(("llamacpp", "llamaserver", "llama"), _LLAMA_CPP),
    "vllm": _VLLM,
}
"""By the names that people give them, in small letters and digits."""
