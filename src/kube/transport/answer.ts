/** Reads the answers of an API server: their text, their JSON, and the Status of a refusal. */
import type { IncomingMessage } from 'node:http';
import { textIn } from '../../util/bounded-file.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import type { Call } from '../client.ts';
import type { Status } from '../resources.ts';
import { AnswerError, AnswerTooLarge } from '../status-error.ts';

/**
 * Returns the text of an answer. It throws an AnswerTooLarge if the text is longer than
 * `mostBytes`, because a server must not fill our memory.
 */
export async function readText(response: IncomingMessage, mostBytes: number): Promise<string> {
  return await textIn(
    response,
    mostBytes,
    `the answer has more than ${mostBytes} bytes`,
    AnswerTooLarge,
  );
}

/** Returns true if answers to the call contain values that no message may show. */
export function isAboutSecrets({ resource }: Pick<Call, 'resource'>): boolean {
  return resource.split('/')[0] === 'secrets';
}

/**
 * Returns the JSON value of an answer. It throws an AnswerError if the body is not JSON. The error quotes the body,
 * unless the call is about Secrets.
 */
export function parseAnswer(
  call: Pick<Call, 'resource'>,
  response: IncomingMessage,
  body: string,
): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    // The error of JSON.parse quotes the text, too.
    if (isAboutSecrets(call)) throw new AnswerError('it answered with something that is not JSON');
    const type = response.headers['content-type'] ?? 'text without a type';
    const start = body.trim().slice(0, 60);
    const message = `it answered ${response.statusCode} with ${type}, not with JSON: "${start}"`;
    throw new AnswerError(message, { cause: error });
  }
}

/** Throws an AnswerError if the check of the call finds a problem. */
export function assertExpected({ check }: Call, answer: unknown): void {
  const problem = check?.(answer);
  if (problem !== undefined) throw new AnswerError(problem);
}

/**
 * Returns the milliseconds of the Retry-After header, or undefined. API servers send whole seconds,
 * never a date.
 */
export function retryAfterMs(response: IncomingMessage): number | undefined {
  const seconds = Number.parseInt(response.headers['retry-after'] ?? '', 10);
  return Number.isNaN(seconds) ? undefined : seconds * 1000;
}

/**
 * Returns the Status that the server sent. If the server sent other content, such as the page of a proxy or `404 page
 * not found`, returns a Status that is made from this content.
 */
export function toStatus(call: Call, response: IncomingMessage, body: string): Status {
  const code = response.statusCode ?? 0;
  const waitMs = retryAfterMs(response);
  const details = waitMs === undefined ? {} : { retryAfterSeconds: waitMs / 1000 };
  const value = parseJson(body);
  const given =
    isRecord(value) && value['kind'] === 'Status' ? (value as unknown as Status) : undefined;
  if (given) return { ...given, code, details: { ...details, ...given.details } };
  const text = body.trim().slice(0, 200) || response.statusMessage || 'no text';
  const message = `${call.method} ${call.path}: ${code} ${text}`;
  return {
    kind: 'Status',
    status: 'Failure',
    code,
    reason: code === 404 ? 'NotFound' : '',
    details,
    message,
  };
}
