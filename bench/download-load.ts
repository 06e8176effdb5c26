/**
 * Runs one process that loads a download server. `download-load.ts <port> <path> <file bytes> <clients> <range bytes>`
 * prints the milliseconds that all downloads take.
 */
import { connect, type Socket } from 'node:net';

const [port = 0, , size = 0, clients = 0, rangeBytes = 0] = process.argv.slice(2).map(Number);
const path = process.argv[3] ?? '';
/** The buffer into which all sockets read. The program counts the bytes and does not keep them. */
const buffer = Buffer.allocUnsafe(256 * 1024);

/** Resolves when the whole range has arrived. Rejects if the server sends any other answer. */
async function download(index: number): Promise<void> {
  // The ranges are spread over the file, in the same way for every server.
  const from = (index * 7_919_003) % (size - rangeBytes);
  const range = `bytes=${from}-${from + rangeBytes - 1}`;
  await new Promise<void>((resolve, reject) => {
    let body = -1;
    const read = (bytes: number, into: Uint8Array): boolean => {
      body =
        body < 0
          ? bodyIn(Buffer.from(into.buffer, into.byteOffset, bytes).toString('latin1'))
          : body + bytes;
      if (body === rangeBytes) resolve();
      if (body > rangeBytes) reject(new Error(`more than ${rangeBytes} bytes came`));
      return true;
    };
    const socket: Socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback: read } });
    socket.once('error', reject).once('close', () => reject(new Error(`only ${body} bytes came`)));
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nRange: ${range}\r\nConnection: close\r\n\r\n`,
    );
  });
}

/** Returns the number of bytes after the head of the response. The head fits into the first piece. */
function bodyIn(text: string): number {
  const end = text.indexOf('\r\n\r\n');
  if (!text.startsWith('HTTP/1.1 206 ') || end < 0)
    throw new Error(`the answer is ${text.slice(0, 100)}`);
  return text.length - end - 4;
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: clients }, async (_, index) => await download(index)));
process.stdout.write(`${performance.now() - startedAt}\n`);
