/** Owns bodies: which media types are read, their limits, and what is said where they do not parse. */
import type { IncomingMessage } from 'node:http';
import { parse } from 'yaml';
import { isRecord } from '../../util/json.ts';
import { ApiFailure, badRequest } from './failure.ts';
import type { Kind } from './kind.ts';

/** Bytes of a body that kube-apiserver reads at most. */
const BODY_LIMIT = 3 * 1024 * 1024;

/** Bytes that etcd takes in one request, by default. */
const STORE_LIMIT = 1.5 * 1024 * 1024;

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    // The rest is read and dropped, so that the client gets to see the answer.
    if (size <= BODY_LIMIT) chunks.push(chunk);
  }
  if (size > BODY_LIMIT) {
    const message = `Request entity too large: limit is ${BODY_LIMIT}`;
    throw new ApiFailure(413, 'RequestEntityTooLarge', message);
  }
  return Buffer.concat(chunks).toString();
}

/** Refuses what etcd would refuse, in the words in which its refusal reaches the client. */
export function checkStoredSize(text: string): void {
  if (Buffer.byteLength(text) > STORE_LIMIT) throw new ApiFailure(500, '', 'etcdserver: request is too large');
}

const READABLE = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];

/** Decodes an object to be written; the caller checks its kind. */
export function decodeObject(body: string, contentType: string, { kind }: Pick<Kind, 'kind'>): Record<string, unknown> {
  if (contentType === READABLE[2] || (contentType !== '' && !READABLE.includes(contentType))) {
    const list = READABLE.join(', ');
    const message = `the body of the request was in an unknown format - accepted media types include: ${list}`;
    throw new ApiFailure(415, 'UnsupportedMediaType', message);
  }
  const unrecognized = (why: string): ApiFailure => {
    const about = `the object provided is unrecognized (must be of type ${kind})`;
    return badRequest(`${about}: couldn't get version/kind; json parse error: ${why} (${excerpt(body)})`);
  };
  let value: unknown;
  try {
    value = contentType === 'application/yaml' ? parse(body) : JSON.parse(body);
  } catch {
    throw unrecognized('unexpected end of JSON input');
  }
  if (value === null) return {};
  if (isRecord(value)) return value;
  const type = Array.isArray(value) ? 'array' : typeof value;
  const target = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;
  throw unrecognized(`json: cannot unmarshal ${type} into Go value of type ${target}`);
}

/** What the server quotes of a body that it cannot read: hexadecimal unless it looks like the start of JSON. */
function excerpt(body: string): string {
  if (body === '') return '<empty>';
  return body.startsWith('{') ? body.slice(0, 1000) : Buffer.from(body).toString('hex').slice(0, 1000);
}
