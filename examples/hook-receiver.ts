// A receiver for webhook hooks of an UpgradePolicy. It verifies each request, and runs a command of yours once for each
// run of a hook. The command gets the body of the request on its standard input. If the command exits with 0, the
// upgrade continues; with any other exit code the node fails. Change COMMAND only. CERTIFICATES is a directory with
// tls.crt and tls.key. KEY is a file with the bytes of `key` in the Secret. STATE is a directory that must outlive the
// receiver.
//   node hook-receiver.ts PORT CERTIFICATES KEY STATE COMMAND [ARGUMENT...]
import { spawn } from 'node:child_process';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';

const [port, certificates = '.', keyFile = 'key', state = '.', command = 'true', ...rest] =
  process.argv.slice(2);
const key = readFileSync(keyFile);
/**
 * The maximum difference between the clocks of the two hosts, in seconds. An older request is refused, because an
 * attacker who recorded a request could send it again.
 */
const MOST_SECONDS_APART = 300;
const MOST_BYTES = 64 * 1024;

interface Answer {
  /** 200 if the command is done, 503 if Refit must ask again, 4xx if the upgrade of the node must not continue. */
  readonly status: number;
  readonly message: string;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > MOST_BYTES) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Returns what is wrong with the request; undefined if the leader of Refit has sent it just now. */
function refusal({ headers }: IncomingMessage, body: Buffer): string | undefined {
  const timestamp = String(headers['refit-timestamp']);
  const expected = createHmac('sha256', key).update(`${timestamp}.`).update(body).digest();
  const [, hex = ''] = /^sha256=([0-9a-f]{64})$/.exec(String(headers['refit-signature'])) ?? [];
  const given = Buffer.from(hex, 'hex');
  // The comparison takes the same time no matter which byte differs, so nobody can guess a signature byte by byte.
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    return 'the signature is wrong';
  const secondsApart = Math.abs(Date.now() / 1000 - Number(timestamp));
  // The negated comparison is also true if the timestamp is not a number.
  if (!(secondsApart <= MOST_SECONDS_APART)) return 'the request is too old, or a clock is wrong';
  return undefined;
}

/** The ids of the runs whose command is running now. */
const running = new Set<string>();

/** Starts the command of a run, unless it was started before, and returns the answer for the current state of the run. */
function answerFor(id: string, body: Buffer): Answer {
  const file = join(state, `${id}.json`);
  if (running.has(id)) return { status: 503, message: 'the command runs' };
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Answer;
  // If the receiver is stopped before the command ends, the next receiver finds this answer.
  const lost = { status: 409, message: 'the receiver was restarted while the command ran' };
  writeFileSync(file, JSON.stringify(lost), { flag: 'wx' });
  running.add(id);
  const child = spawn(command, rest, { stdio: ['pipe', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => {
    errors = `${errors}${text.toString()}`.slice(-300);
  });
  const end = (failure: string | undefined): void => {
    const answer =
      failure === undefined ? { status: 200, message: 'done' } : { status: 422, message: failure };
    writeFileSync(file, JSON.stringify(answer));
    running.delete(id);
  };
  child.once('error', ({ message }) => end(message));
  child.once('close', (code) => end(code === 0 ? undefined : errors.trim() || `exit code ${code}`));
  // A command may ignore its input, so an error of this stream does not mean that the command failed.
  child.stdin.on('error', () => undefined).end(body);
  return { status: 503, message: 'the command was started' };
}

async function answerTo(request: IncomingMessage): Promise<Answer> {
  if (request.method !== 'POST') return { status: 405, message: 'only POST is answered' };
  const body = await bodyOf(request);
  if (body === undefined) return { status: 413, message: 'the body is too long' };
  const wrong = refusal(request, body);
  if (wrong !== undefined) return { status: 401, message: wrong };
  const { id } = JSON.parse(body.toString()) as { readonly id: string };
  // The signature covers only the body. So the id in the header must be the id in the body.
  if (id !== request.headers['idempotency-key'] || !/^[\w-]{1,100}$/.test(id))
    return { status: 400, message: 'the header Idempotency-Key is not the id of the body' };
  return answerFor(id, body);
}

const server = createServer(
  {
    cert: readFileSync(join(certificates, 'tls.crt')),
    key: readFileSync(join(certificates, 'tls.key')),
  },
  (request, response) => {
    void answerTo(request)
      .catch((error: unknown): Answer => ({ status: 500, message: String(error) }))
      .then(({ status, message }) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ message }));
      });
  },
);
// In a cluster, set the variable HOST to an address that Refit can reach, such as 0.0.0.0.
server.listen(Number(port), process.env['HOST'] ?? '127.0.0.1');
