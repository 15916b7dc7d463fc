"""``experience list|show|export|import``: what runs have taught, in the user's own library."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from workbench.errors import MisuseError

WIDTH = 110


def add_options(parser: argparse.ArgumentParser) -> None:
    """What ``experience`` understands."""
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="all cards, the most trusted first")
    listing.set_defaults(command=list_cards)
    listing.add_argument(
        "--learnt", action="store_true", help="only what runs have learnt or tried, not what merely came with the workbench"
    )
    listing.add_argument("--json", action="store_true")
    showing = verbs.add_parser("show", help="one card with its code")
    showing.set_defaults(command=show_card)
    showing.add_argument("card", metavar="ID")
    showing.add_argument("--json", action="store_true")
    exporting = verbs.add_parser("export", help="write all cards that were learnt or tried into one file, a card a line")
    exporting.set_defaults(command=export_cards)
    exporting.add_argument("file", metavar="FILE", type=Path)
    importing = verbs.add_parser("import", help="take the cards of such a file over; of one card, that with more trials stays")
    importing.set_defaults(command=import_cards)
    importing.add_argument("file", metavar="FILE", type=Path)


def list_cards(options: argparse.Namespace) -> int:
    """One card a line: id, confidence, trials, effect, advice."""
    from workbench.records import encode

    library = _store().library
    cards = [card for card in library.cards if card.trials or not options.learnt]
    cards.sort(key=lambda card: (-card.confidence, -card.trials, card.id))
    if options.json:
        print(json.dumps(encode(cards), ensure_ascii=False))
        return 0
    for card in cards:
        line = f"{card.id:<24} {card.confidence:.2f}  {card.effect_in_words() or 'never measured'}: {card.advice}"
        print(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…")
    if not cards:
        print("nothing was learnt here yet")
    return 0


def show_card(options: argparse.Namespace) -> int:
    """Everything on one card."""
    from workbench.records import encode

    library = _store().library
    card = library.card(options.card)
    if card is None:
        alike = [one.id for one in library.cards if one.id.startswith(options.card)]
        if len(alike) != 1:
            said = f"{', '.join(alike[:5])} begin so" if alike else "workbench experience list names them all"
            raise MisuseError(f"no card {options.card!r}: {said}")
        card = library.card(alike[0])
    assert card is not None
    if options.json:
        print(json.dumps(encode(card), ensure_ascii=False))
        return 0
    print(f"{card.id}: confidence {card.confidence:.2f}, {card.effect_in_words() or 'never measured'}")
    print(f"when    {card.when or card.trigger.words() or 'always'}")
    print(f"advice  {card.advice}")
    print(f"source  {card.source}" + (f", {card.measured_on}" if card.measured_on else ""))
    if card.code:
        print(card.code)
    return 0


def export_cards(options: argparse.Namespace) -> int:
    """Writes what was learnt or tried. What merely came with the workbench is everywhere already."""
    from workbench.records import dumps

    cards = sorted((card for card in _store().library.cards if card.trials), key=lambda card: card.id)
    try:
        options.file.write_text("".join(dumps(card) + "\n" for card in cards), encoding="utf-8")
    except OSError as error:
        raise MisuseError(f"{options.file}: can't be written ({error.strerror}): name a file in a folder that is there") from None
    print(f"{len(cards)} cards in {options.file}", file=sys.stderr)
    return 0


def import_cards(options: argparse.Namespace) -> int:
    """Merges the cards of a file, all or none of them."""
    changed = _store().merge(read_cards(options.file))
    print(f"{changed} cards came or changed", file=sys.stderr)
    return 0


def read_cards(path: Path) -> list[Any]:
    """The cards of an exported file.

    Raises:
        MisuseError: it can't be read, or a line is no card; the message names the line.
    """
    from workbench.knowledge.experience import Card
    from workbench.records import decode

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise MisuseError(f"{path}: {error.strerror}: give a file that experience export wrote") from None
    except UnicodeDecodeError:
        raise MisuseError(f"{path} is no text: give a file that experience export wrote") from None
    cards = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            card = decode(Card, json.loads(line))
            if not (isinstance(card.id, str) and card.id and card.trials >= 0 and 0 <= card.hits <= card.trials and card.advice):
                raise ValueError("its figures make no sense")
        except (ValueError, TypeError, KeyError, AttributeError):
            raise MisuseError(f"line {number} of {path} is no experience card: give a file that experience export wrote") from None
        cards.append(card)
    return cards


def _store() -> Any:
    from workbench.store import open_experience

    return open_experience()
