#!/usr/bin/env python3
"""Makes lark_goldens.json beside this file: which texts Lark's own parser accepts, by small grammars.

    pip install lark==1.3.1
    python3 make_lark_goldens.py

Lark parses with Earley and the lexer dynamic_complete, which tries every reading of a text. Texts are drawn from each
grammar's letters, and so that they grow out of accepted ones: one character is changed, added or left out.
"""

import json
import pathlib
import random

import lark

GRAMMARS = {
    "sums": (r'''
        // left recursion, a priority, modifiers and aliases make no difference
        ?start: sum
        ?sum: sum "+" product -> add
            | sum "-" product -> sub
            | product
        !product.2: product "*" atom | atom
        atom: NUMBER | "-" atom | "(" sum ")"
        %import common.NUMBER
        ''', "12.+-*()e", ["1+2", "-(1.5-2)*3", "2e5*-.5"]),
    "spaced": (r'''
        start: "let" NAME "=" value ";"
        value: NAME | INT | "[" [value ("," value)*] "]"
        NAME: /[a-c]+/
        %import common (INT, WS)
        %ignore WS
        ''', "letabc=[], ;\n12", ["let a=1;", " let b = [ a, 1 ,[] ] ;\n", "leta=b;"]),
    "terminals": (r'''
        start: (A | B ~ 2..3 | C ~ 2 | D)+
        A: "a".."c" | "Q"i "ü"
        B: /x[yz]{1,2}/i
        C: "\u00e9" | "\x2d" | "\n"
        D: /[^a-z\/]"\// | "\"" "\\"
        ''', "abcQqüxXyYzé-\n\"\\/Z", ["a", "xyXyz", "éé--", "Z\"/", "\"\\", "qüQü"]),
    "optional": (r'''
        start: [A] [B C?] ("!" | /\?+/)? _TAIL*
        A: "a"
        B: "b"+
        C: "c"+
         | "d"
        _TAIL: "."
        ''', "abcd!?.", ["", "a", "abbc!", "b??..", "bd."]),
    "common": (r'''
        start: ESCAPED_STRING SIGNED_FLOAT CNAME HEXDIGIT _NL WORD C_COMMENT? SQL_COMMENT?
        %import common.ESCAPED_STRING
        %import common (SIGNED_FLOAT, CNAME, HEXDIGIT, WORD, C_COMMENT, SQL_COMMENT)
        %import common.NEWLINE -> _NL
        ''', "\"\\a1.+e_F\r\n/*-", ["\"a\\\"\"+1.5a_1F\nab", "\"\"1e-1a0\r\n\nz/*a*b*/--x", "\"\"-.1aaa\na/***/"]),
}


def main():
    rng = random.Random(3)
    out = {}
    for name, (grammar, letters, seeds) in GRAMMARS.items():
        parser = lark.Lark(grammar, parser="earley", lexer="dynamic_complete")

        def accepts(text):
            try:
                parser.parse(text)
                return True
            except lark.exceptions.LarkError:
                return False

        texts = dict.fromkeys(seeds)
        pool = list(seeds)
        while len(texts) < 220:
            text = rng.choice(pool)
            for _ in range(rng.randrange(1, 3)):
                at = rng.randrange(len(text) + 1)
                kept = text[at + rng.randrange(2):]
                text = text[:at] + rng.choice(["", rng.choice(letters), rng.choice(letters)]) + kept
            if text not in texts and len(text) < 40:
                texts[text] = None
                if accepts(text):
                    pool.append(text)
        made = [[text, accepts(text)] for text in texts]
        assert all(accepts(seed) for seed in seeds), name
        assert 15 <= sum(ok for _, ok in made) <= 200, (name, sum(ok for _, ok in made))
        out[name] = {"grammar": grammar, "texts": made}
    body = ",\n".join(
        json.dumps(name) + ": {" + json.dumps("grammar") + ": " + json.dumps(one["grammar"]) + ', "texts": [\n'
        + ",\n".join(json.dumps(case) for case in one["texts"]) + "]}" for name, one in out.items())
    pathlib.Path(__file__).with_name("lark_goldens.json").write_text("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
