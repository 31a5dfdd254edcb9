"""A session of the official Python client with a server: the same each time.

    drive.py SERVER COMMAND [ARGUMENT...]
"""

import os
import sys

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def call(session, tool, arguments=None, **more):
    return await session.call_tool(tool, arguments or {}, **more)


async def everything(session):
    await session.list_resources()
    await session.list_resource_templates()
    await session.list_prompts()
    await session.get_prompt("simple-prompt")
    await call(session, "echo", {"message": "hallo \u2600 \"x\" \\ \n"})
    await call(session, "get-sum", {"a": 1e21, "b": -0.5})
    await call(session, "get-tiny-image")
    await call(session, "get-annotated-message", {"messageType": "error", "includeImage": True})
    await call(session, "get-structured-content", {"location": "Chicago"})
    await call(session, "get-resource-links", {"count": 2})
    await call(session, "get-sum", {"a": "no number"})
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(call, session, "get-sum", {"a": number, "b": 1})

    async def progress(done, total, message):
        pass

    operation = {"duration": 0.4, "steps": 4}
    await call(session, "trigger-long-running-operation", operation, progress_callback=progress)
    await call(session, "trigger-sampling-request", {"prompt": "p", "maxTokens": 5})
    await call(session, "trigger-elicitation-request")


async def filesystem(session):
    folder = os.environ["TEST_FOLDER"]
    await call(session, "list_allowed_directories")
    await call(session, "write_file", {"path": f"{folder}/a.txt", "content": "one\ntwo\n"})
    await call(session, "write_file", {"path": f"{folder}/big.txt", "content": "x" * 1_500_000})
    await call(session, "read_text_file", {"path": f"{folder}/a.txt"})
    await call(session, "read_text_file", {"path": f"{folder}/big.txt"})
    edits = [{"oldText": "two", "newText": "three"}]
    await call(session, "edit_file", {"path": f"{folder}/a.txt", "edits": edits})
    await call(session, "list_directory", {"path": folder})
    await call(session, "read_text_file", {"path": f"{folder}/missing.txt"})
    await call(session, "read_text_file", {"path": "/etc/hostname"})


async def memory(session):
    entity = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
    await call(session, "create_entities", {"entities": [entity]})
    await call(session, "create_entities", {"entities": [entity]})
    relation = {"from": "Ada", "to": "Ada", "relationType": "knows"}
    await call(session, "create_relations", {"relations": [relation]})
    await call(session, "read_graph")
    await call(session, "search_nodes", {"query": "ada"})
    await call(session, "delete_entities", {"entityNames": ["Ada"]})
    await call(session, "read_graph")


async def thinking(session):
    thought = {"thought": "first", "thoughtNumber": 1, "totalThoughts": 2}
    await call(session, "sequentialthinking", {**thought, "nextThoughtNeeded": True})
    thought = {"thought": "other", "thoughtNumber": 2, "totalThoughts": 2, "isRevision": True}
    await call(session, "sequentialthinking", {**thought, "nextThoughtNeeded": False})
    await call(session, "sequentialthinking", {"thought": 1})


async def git(session):
    repository = {"repo_path": os.environ["TEST_FOLDER"]}
    await call(session, "git_status", repository)
    await call(session, "git_add", {**repository, "files": ["a.txt"]})
    await call(session, "git_commit", {**repository, "message": "one"})
    await call(session, "git_log", {**repository, "max_count": 1})
    await call(session, "git_create_branch", {**repository, "branch_name": "two"})
    await call(session, "git_checkout", {**repository, "branch_name": "two"})
    await call(session, "git_show", {**repository, "revision": "no-such-revision"})


async def time(session):
    zones = {"source_timezone": "Europe/Oslo", "target_timezone": "Asia/Tokyo"}
    await call(session, "convert_time", {**zones, "time": "12:30"})
    await call(session, "convert_time", {**zones, "time": "late"})
    await call(session, "get_current_time", {"timezone": "Nowhere/None"})


async def fetch(session):
    page = os.environ["TEST_PAGE"]
    await call(session, "fetch", {"url": page})
    await call(session, "fetch", {"url": page, "raw": True, "max_length": 20})
    await call(session, "fetch", {"url": f"{page}/missing"})


async def examples(session):
    await call(session, "add", {"a": 1, "b": 2})
    await call(session, "weather", {"city": "Oslo"})
    await call(session, "texts", {"count": 0})
    await call(session, "texts", {"count": 3})
    await call(session, "picture")
    await call(session, "large", {"kib": 3 * 1024})
    await call(session, "fails")
    await call(session, "missing")
    await call(session, "add", {"a": "x"})
    await call(session, "send", {"to": "bob"})

    async def progress(done, total, message):
        pass

    await call(session, "slow", {"seconds": 0.2}, progress_callback=progress)


async def sample(context, params):
    text = types.TextContent(type="text", text="sampled")
    return types.CreateMessageResult(role="assistant", content=text, model="m")


async def elicit(context, params):
    return types.ElicitResult(action="decline")


async def main():
    sessions = (everything, filesystem, memory, git, time, fetch, examples)
    session_of = {f.__name__: f for f in sessions}
    session_of["sequential-thinking"] = thinking
    server = StdioServerParameters(
        command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ)
    )
    async with stdio_client(server) as (read, write):
        async with ClientSession(
            read, write, sampling_callback=sample, elicitation_callback=elicit
        ) as session:
            await session.initialize()
            await session.list_tools()
            await session_of[sys.argv[1]](session)
            await session.send_ping()


anyio.run(main)
