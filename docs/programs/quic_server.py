# SPDX-License-Identifier: MIT
"""A QUIC server: `quic_server.py ADDRESS PORT [reno|cubic]`. Each stream asks for a number of bytes and gets them.

It makes a new certificate at each start. All Ed25519 signatures have the same length, so packets have the same lengths
in every run.
"""

import asyncio
import datetime
import sys

from aioquic.asyncio import serve
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

DAY = datetime.datetime(2025, 1, 1)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(bytes(int(await reader.read())))
    writer.write_eof()


def answer_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    tasks.add(asyncio.ensure_future(answer(reader, writer)))


async def main(address: str, port: int, congestion_control: str = "reno") -> None:
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["bytes"], congestion_control_algorithm=congestion_control
    )
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bufferscope")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, DAY, DAY + datetime.timedelta(36500))
    configuration.certificate, configuration.private_key = builder.sign(key, None), key
    await serve(address, port, configuration=configuration, stream_handler=answer_stream)
    await asyncio.Event().wait()


tasks: set = set()  # the event loop itself keeps only weak references
asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
