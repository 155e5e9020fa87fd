"""Lines that the server `writes_given_bytes.py` writes; `$ID` stands for the id of the request it answers."""

import json

TEXT_RESULT = '{"resultType":"complete","content":[{"type":"text","text":%s}]}'


def result(text: str = "right") -> str:
    """A tool result, as UTF-8 bytes decoded as Latin-1."""
    return (TEXT_RESULT % json.dumps(text, ensure_ascii=False)).encode().decode("latin-1")


VERSION, ID = '"jsonrpc":"2.0"', '"id":$ID'


def message(*members: str) -> str:
    """A message of these members, in this order, duplicates included."""
    return f"{{{','.join(members)}}}\n"


def reply(text: str = "right", id: str = "$ID") -> str:
    return message(VERSION, f'"id":{id}', f'"result":{result(text)}')


def log(text: str) -> str:
    return (
        f'{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{text}"}}}}\n'
    )
