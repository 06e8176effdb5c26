/** Sends the answers of both servers of the dashboard. The headers allow the page to send requests to its own server only. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from '../../util/errors.ts';
import { actionIn } from './actions.ts';
import type { AskEvents } from './node-events.ts';
import { type ActionRequest, type ActionResult, LONGEST_TEXT, type NodeEvents } from './state.ts';

/**
 * The maximum size of the body of an action in bytes. An action with the longest name and the longest reason is
 * smaller.
 */
const LONGEST_ACTION = 8192;

export const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Previews the plans that the text contains. */
export type Preview = (text: string) => Promise<ActionResult>;

/** Carries out the action of a button. */
export type Act = (request: ActionRequest) => Promise<ActionResult>;

/** Carries out an action and answers the request. The code is 200 even if the action was refused, because the page shows the reason. */
export async function answerAction(
  act: Act,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // If the connection breaks, the body cannot be read, and no answer would arrive.
  const body = await bodyOf(request, LONGEST_ACTION).catch(() => undefined);
  const action = body === undefined ? undefined : actionIn(body);
  if (action === undefined) return send(response, 400, 'text/plain', 'this is not an action\n');
  send(response, 200, 'application/json', JSON.stringify(await act(action)));
}

/** Previews the text of the request and answers it. The code is 200 even if the text is no plan, because the page shows the reason. */
export async function answerPreview(
  preview: Preview,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const text = await bodyOf(request, LONGEST_TEXT).catch(() => undefined);
  const result =
    text === undefined
      ? { isDone: false, lines: [`The text is longer than ${LONGEST_TEXT / 1024} KiB.`] }
      : await preview(text);
  send(response, 200, 'application/json', JSON.stringify(result));
}

export const EVENTS_PATH = 'api/node-events';

/** Answers with the Events about the node that the query names. The code is 200 even if they cannot be read, because the page shows the reason. */
export async function answerEvents(
  ask: AskEvents,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  const found = await ask(query.get('plan') ?? '', query.get('node') ?? '').catch(
    (error: unknown): NodeEvents => ({ events: [], missing: messageOf(error) }),
  );
  send(response, 200, 'application/json', JSON.stringify(found));
}

/**
 * Resolves with the body of a request; undefined if the body has more bytes than `longest`. The server reads and
 * discards the rest of a longer body, because the client might not receive the answer if the server closed the
 * connection earlier. The time limit of the server also ends such a read.
 */
export async function bodyOf(
  request: IncomingMessage,
  longest: number,
): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= longest) chunks.push(chunk);
  }
  return length > longest ? undefined : Buffer.concat(chunks).toString('utf8');
}

export function send(
  response: ServerResponse,
  code: number,
  type: string,
  body: string,
  more: Readonly<Record<string, string>> = {},
): void {
  const headers = { ...HEADERS, 'content-type': `${type}; charset=utf-8`, ...more };
  response.writeHead(code, headers).end(body);
}
