/** Request bodies: accepted media types, size limits, and the errors for bodies that do not parse. */
import type { IncomingMessage } from 'node:http';
import { isRecord } from '../../src/util/json.ts';
import { parseYaml } from '../../src/util/yaml.ts';
import { ApiFailure, badRequest } from './failure.ts';
import { decodeMessage, PROTOBUF, readEnvelope } from './protobuf/decode.ts';
import type { ApiRequest } from './request.ts';

/** The maximum size of a body that kube-apiserver reads, in bytes. */
const BODY_LIMIT = 3 * 1024 * 1024;

/** The maximum size of one request to etcd by default, in bytes. */
const STORE_LIMIT = 1.5 * 1024 * 1024;

/** Keeps each byte of a body in protobuf. */
const BYTES = 'latin1';

/**
 * A body that is too long is still read to its end, so that the client gets the answer. Each character of a body in
 * protobuf is one byte.
 */
export async function readBody(request: IncomingMessage, contentType: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= BODY_LIMIT) chunks.push(chunk);
  }
  if (size <= BODY_LIMIT)
    return Buffer.concat(chunks).toString(contentType === PROTOBUF ? BYTES : 'utf8');
  throw new ApiFailure(
    413,
    'RequestEntityTooLarge',
    `Request entity too large: limit is ${BODY_LIMIT}`,
  );
}

/** Refuses an object that is too large for etcd, with the message that a client of a real server gets. */
export function checkStoredSize(value: unknown): void {
  const size = Buffer.byteLength(JSON.stringify(value));
  if (size > STORE_LIMIT) throw new ApiFailure(500, '', 'etcdserver: request is too large');
}

/** Returns the error 415, which lists the accepted media types. */
export const unsupportedMediaType = (accepted: readonly string[]): ApiFailure => {
  const what = 'the body of the request was in an unknown format - accepted media types include';
  return new ApiFailure(415, 'UnsupportedMediaType', `${what}: ${accepted.join(', ')}`);
};

const JSON_AND_YAML = ['application/json', 'application/yaml'];

/** Decodes the object of a POST, PUT or DELETE. `kind` is the kind that the server expects. */
export function decodeObject(
  { body, contentType }: ApiRequest,
  kind: string,
): Record<string, unknown> {
  if (contentType === PROTOBUF) return decodeProtobuf(body, kind);
  if (contentType !== '' && !JSON_AND_YAML.includes(contentType))
    throw unsupportedMediaType([...JSON_AND_YAML, PROTOBUF]);
  const value = parseText(body, contentType === 'application/yaml', (why) =>
    badRequest(
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why}`,
    ),
  );
  if (value === null) return {};
  if (isRecord(value)) return value;
  throw badRequest(
    `the object provided is unrecognized (must be of type ${kind}): it is no object`,
  );
}

/** Real servers, too, read custom kinds only from JSON and YAML. */
function decodeProtobuf(body: string, kind: string): Record<string, unknown> {
  try {
    const { apiVersion, kind: given, message, raw } = readEnvelope(Buffer.from(body, BYTES));
    if (message === undefined) throw unsupportedMediaType(JSON_AND_YAML);
    return { ...decodeMessage(message, raw), apiVersion, kind: given };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind}): ${error.message}`,
    );
  }
}

/** Parses JSON or, if `yaml` is true, YAML. `refuse` makes the error that is thrown if the text does not parse. */
export function parseText(
  text: string,
  yaml: boolean,
  refuse: (why: string) => ApiFailure,
): unknown {
  try {
    return yaml ? parseYaml(text, notYaml)[0] : (JSON.parse(text) as unknown);
  } catch {
    throw refuse('unexpected end of JSON input');
  }
}

function notYaml(why: string): never {
  throw new Error(why);
}
