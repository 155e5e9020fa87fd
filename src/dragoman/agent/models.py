"""Chooses and loads the model of a conversation.

The model library takes seconds to import: `load_model` imports it in a thread, so that servers connect
meanwhile. Nothing here contacts a provider.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dragoman.cleaning import is_safe, one_line
from dragoman.errors import MissingPackage, ModelNotConfigured

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

Load = Callable[["ModelChoice"], Awaitable["Model"]]

VARIABLE: Final = "DRAGOMAN_MODEL"
DEFAULTS: Final[Mapping[str, str]] = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5",
    "OPENAI_API_KEY": "openai:gpt-5.5",
    "GOOGLE_API_KEY": "google:gemini-3-pro-preview",
}
"""The default model of each provider, by the variable that holds its key."""
KEY_VARIABLES: Final[Mapping[str, str]] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "xai": "XAI_API_KEY",
}
_OTHER_KEYS: Final = (
    *("ALIBABA_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_API_KEY"),
    *("AZURE_VOICELIVE_API_KEY", "CEREBRAS_API_KEY", "COPILOT_GITHUB_TOKEN", "CO_API_KEY", "CRUSOE_API_KEY"),
    *("DASHSCOPE_API_KEY", "ELEVENLABS_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GITHUB_API_KEY"),
    *("GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "HEROKU_INFERENCE_KEY", "HF_TOKEN"),
    *("META_API_KEY", "MOONSHOTAI_API_KEY", "NEBIUS_API_KEY", "OLLAMA_API_KEY", "OPENAI_ADMIN_KEY"),
    *("OPENROUTER_API_KEY", "OVHCLOUD_API_KEY", "PAIG_API_KEY", "PYDANTIC_AI_GATEWAY_API_KEY"),
    *("SAMBANOVA_API_KEY", "SNOWFLAKE_TOKEN", "SYSTEM_ONE_API_KEY", "TOGETHER_API_KEY", "TYPESAFE_API_KEY"),
    *("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN", "VLLM_API_KEY", "VOYAGE_API_KEY", "ZAI_API_KEY"),
)
"""The key variables of further providers that the model library supports."""
SECRET_VARIABLES: Final = frozenset({*KEY_VARIABLES.values(), *_OTHER_KEYS})
"""All key variables of providers; commands of a model do not get them."""
_WITHOUT_MODEL: Final = "`dragoman tools`, `dragoman call` and `dragoman demo` need no model."


class ModelChoice(Struct, frozen=True):
    spec: str
    """The model, as `provider:name`."""
    base_url: str | None = None
    """The URL of a compatible endpoint: Ollama, vLLM, llama.cpp, a proxy."""

    def with_spec(self, spec: str) -> ModelChoice:
        """The choice of another model. The base URL is kept only for the same provider, so that an endpoint
        does not receive the key of another provider."""
        other = ModelChoice(spec)
        has_same_key = KEY_VARIABLES.get(other.provider, other.provider) == KEY_VARIABLES.get(
            self.provider, self.provider
        )
        return ModelChoice(spec, self.base_url if has_same_key else None)

    @property
    def provider(self) -> str:
        return self.spec.partition(":")[0]

    @property
    def name(self) -> str:
        return self.spec.partition(":")[2]


def choose_model(named: str | None, base_url: str | None = None) -> ModelChoice:
    """The named model, or the default model of the first provider whose key is set."""
    spec = named or os.environ.get(VARIABLE)
    if spec is None:
        spec = next((model for variable, model in DEFAULTS.items() if os.environ.get(variable)), None)
    if spec is None:
        keys = ", ".join(DEFAULTS)
        raise ModelNotConfigured(
            "no model is chosen",
            hint=f"Set one of {keys}, or name a model: --model provider:name (with --base-url for an "
            f"endpoint of your own). {_WITHOUT_MODEL}",
        )
    choice = ModelChoice(spec, base_url)
    if not choice.name or not is_safe(spec):  # the name may come from an agent's file
        raise ModelNotConfigured(
            f"{one_line(spec, 100)!r} is not a model",
            hint="Write provider:name, such as anthropic:claude-opus-5.",
        )
    return choice


async def load_model(choice: ModelChoice) -> Model:
    """Loads the model. Raises `ModelNotConfigured` or `MissingPackage`."""
    is_imported = "pydantic_ai.models" in sys.modules
    with nullcontext() if is_imported else _paused_garbage_collection():
        return await asyncio.to_thread(_load, choice)


@contextmanager
def _paused_garbage_collection() -> Generator[None]:
    """Disables garbage collection during the import, and excludes the imported objects from later
    collections. The import creates half a million objects that stay; a collection that visits them stops all
    threads for 100 ms."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


class LazyModel:
    """A model that is loaded when it is first needed."""

    def __init__(self, choice: ModelChoice, load: Load = load_model) -> None:
        self.choice = choice
        self._load = load
        self._model: Model | None = None

    async def get(self) -> Model:
        """Loads the model. Raises `ModelNotConfigured` or `MissingPackage`."""
        if self._model is None:
            self._model = await self._load(self.choice)
        return self._model


def _load(choice: ModelChoice) -> Model:
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider
    except ImportError:
        raise MissingPackage("pydantic-ai-slim", "agent") from None
    if choice.provider == "local":
        from dragoman.agent.local import load_local

        return load_local(choice.name)

    def provider(name: str) -> Provider[Any]:
        return infer_provider(name) if choice.base_url is None else _provider_at(name, choice.base_url)

    try:
        return infer_model(choice.spec, provider)
    except ImportError as error:
        raise ModelNotConfigured(
            f"the package for {choice.provider} is not installed", hint=one_line(str(error), 300)
        ) from None
    except (UserError, ValueError) as error:
        raise _unavailable(choice, str(error)) from None


def _provider_at(name: str, base_url: str) -> Provider[Any]:
    """A provider at another URL. Such endpoints often need no key."""
    key = os.environ.get(KEY_VARIABLES.get(name, ""), "no key")
    if name == "anthropic":
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicProvider(base_url=base_url, api_key=key)
    if name in ("openai", "openai-chat"):
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIProvider(base_url=base_url, api_key=key)
    raise ValueError(f"--base-url can be used with anthropic, openai and openai-chat, not with {name}")


def _unavailable(choice: ModelChoice, cause: str) -> ModelNotConfigured:
    variable = KEY_VARIABLES.get(choice.provider)
    if variable is not None and not os.environ.get(variable) and variable in cause:
        return ModelNotConfigured(
            f"there is no API key for {choice.provider}", hint=f"Set {variable}. {_WITHOUT_MODEL}"
        )
    return ModelNotConfigured(
        f"the model {one_line(choice.spec, 100)!r} cannot be used: {one_line(cause, 200)}",
        hint="Write provider:name, such as anthropic:claude-opus-5 or openai-chat:llama3 with --base-url.",
    )
