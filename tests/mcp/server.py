"""A server on the official Python library, with the tools of its examples and a few more: text,
numbers, lists, structures, images, errors, progress, and one that counts its effects in a file."""

import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("examples")
effects = Path(sys.argv[1])


class Weather(BaseModel):
    city: str
    celsius: float
    id: int


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> int:
    return a + b


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def weather(city: str) -> Weather:
    # An integer that no double holds: a proxy that reads numbers would change it.
    return Weather(city=city, celsius=21.0, id=1152921504606846977)


@server.tool()
def texts(count: int) -> list[str]:
    return [f"text {i} \u2600 \\u0041 \u0001" for i in range(count)]


@server.tool()
def picture() -> Image:
    return Image(data=bytes(range(256)), format="png")


@server.tool()
def large(kib: int) -> str:
    return "0123456789abcdef" * 64 * kib


@server.tool()
def fails() -> str:
    raise ValueError("it broke halfway")


@server.tool()
async def slow(seconds: float, context: Context) -> str:
    for step in range(4):
        await context.report_progress(step + 1, 4)
        await anyio.sleep(seconds / 4)
    return "done"


@server.tool()
def send(to: str) -> str:
    with effects.open("a") as file:
        file.write(f"{to}\n")
    return f"sent to {to}"


server.run("stdio")
