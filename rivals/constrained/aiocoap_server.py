"""The server of aiocoap: accepts POSTs on one path. Prints a line when it is ready.

    aiocoap_server.py ADDRESS PORT PATH
"""

import asyncio
import importlib.metadata
import sys

import aiocoap
import aiocoap.resource


class Sink(aiocoap.resource.Resource):
    async def render_post(self, request):
        return aiocoap.Message(code=aiocoap.CHANGED)


async def main(address, port, path):
    site = aiocoap.resource.Site()
    site.add_resource([path], Sink())
    context = await aiocoap.Context.create_server_context(site, bind=(address, int(port)))
    print('{"version":"%s"}' % importlib.metadata.version("aiocoap"), flush=True)
    # The bench closes the input.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await context.shutdown()


asyncio.run(main(*sys.argv[1:]))
