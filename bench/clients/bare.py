"""No client at all: start the processes, send each one line, read one line. The floor under connecting."""

import asyncio

LINE = (
    b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}\n'
)


async def start(command: list[str]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    process.stdin.write(LINE)
    await process.stdout.readline()
    return process


class Client:
    async def connect(self, commands: list[list[str]]) -> None:
        self.processes = await asyncio.gather(*map(start, commands))

    async def close(self) -> None:
        for process in self.processes:
            process.stdin.close()
        await asyncio.gather(*(process.wait() for process in self.processes))
