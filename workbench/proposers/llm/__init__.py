"""Language models as proposers: prompts, calls, answers, and the fake model for tests and lessons."""

from workbench.proposers.llm.bandit import Bandit, Choice
from workbench.proposers.llm.caller import Retry
from workbench.proposers.llm.calls import Delta, Message, ModelCall, ModelRequest
from workbench.proposers.llm.endpoint import Endpoint, Timeouts
from workbench.proposers.llm.parser import Reply, Wanted, parse
from workbench.proposers.llm.prices import Price, load_prices
from workbench.proposers.llm.prompts import PURPOSES, render
from workbench.proposers.llm.proposer import LlmProposer
from workbench.proposers.llm.scripted import ScriptedModel
from workbench.proposers.llm.transport import ContextTooLong, TransientFault, Transport

__all__ = [
    "PURPOSES", "Bandit", "Choice", "ContextTooLong", "Delta", "Endpoint", "LlmProposer", "Message", "ModelCall", "ModelRequest", "Price",
    "Reply", "Retry", "ScriptedModel", "Timeouts", "TransientFault", "Transport", "Wanted", "load_prices", "parse", "render",
]  # fmt: skip
