# SPDX-License-Identifier: MIT
"""A QUIC client: `quic_client.py ADDRESS PORT BYTES` fetches BYTES bytes from quic_server.py."""

import asyncio
import ssl
import sys
import time

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration

WINDOW_BYTES = 16 << 20  # of flow control, so that congestion control alone limits the sender


async def main(address: str, port: int, wanted: int) -> None:
    configuration = QuicConfiguration(
        alpn_protocols=["bytes"], verify_mode=ssl.CERT_NONE, max_data=WINDOW_BYTES, max_stream_data=WINDOW_BYTES
    )
    begin = time.monotonic()
    async with connect(address, port, configuration=configuration) as client:
        reader, writer = await client.create_stream()
        writer.write(str(wanted).encode())
        writer.write_eof()
        got = 0
        while data := await reader.read(1 << 20):
            got += len(data)
    print(f"{got} bytes in {time.monotonic() - begin:.6f} s")
    if got != wanted:
        sys.exit(f"asked for {wanted} bytes, got {got}")


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
