/** Serves the dashboard on the loopback interface: the page, the present state, and each new state as an event. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../../util/listen.ts';
import { cookieName, refusalOf } from './access.ts';
import { actionIn } from './actions.ts';
import type { UiFiles } from './bundle.ts';
import { pageOf } from './page.ts';
import type { ActionRequest, ActionResult, DashboardState, Said } from './state.ts';

export interface DashboardServer {
  readonly port: number;
  /** Has the token, so it is only for the user who runs the command. */
  readonly url: string;
  /** Sends the state to every open page. */
  publish(state: DashboardState): void;
  close(): Promise<void>;
}

interface Parts {
  readonly port: number;
  readonly files: UiFiles;
  readonly explain: (plan: string, node: string) => readonly Said[];
  /** Carries out what a button asks for. Without it, the server only answers GET. */
  readonly act?: ((request: ActionRequest) => Promise<ActionResult>) | undefined;
}

/** In bytes: more than the longest name and reason need. */
const LONGEST_BODY = 8192;

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Listens at 127.0.0.1. Rejects with REFIT_USAGE if the port is in use. */
export async function serveDashboard({
  port,
  files,
  explain,
  act,
}: Parts): Promise<DashboardServer> {
  const token = randomBytes(24).toString('base64url');
  const place = `/${randomBytes(12).toString('base64url')}/`;
  const pages = new Set<ServerResponse>();
  const behind = new Set<ServerResponse>();
  let last = '';
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://localhost');
    if (url === null) return send(response, 400, 'text/plain', 'this is not an address\n');
    const refusal = refusalOf(request, url, rules);
    if (refusal !== undefined) return send(response, refusal.code, 'text/plain', refusal.text);
    if (url.searchParams.has('token')) {
      const cookie = `${cookieName(own)}=${token}; HttpOnly; SameSite=Strict; Path=${place}`;
      response.writeHead(303, { ...HEADERS, location: place, 'set-cookie': cookie }).end();
      return undefined;
    }
    if (act !== undefined && request.method === 'POST')
      return void answerAction(act, request, response);
    const path = url.pathname.slice(place.length);
    if (path === 'api/events') return subscribe(response);
    const found = answerTo(path, url.searchParams);
    return found === undefined
      ? send(response, 404, 'text/plain', 'not found\n')
      : send(response, 200, found.type, found.body);
  });
  const { port: own } = await listen(server, `127.0.0.1:${port}`);
  const rules = { port: own, place, token, allowsActions: act !== undefined };
  const answerTo = (path: string, searchParams: URLSearchParams) => {
    if (path === '') return { type: 'text/html', body: pageOf({ kind: 'served' }) };
    if (path === 'ui.js') return { type: 'text/javascript', body: files.script };
    if (path === 'ui.css') return { type: 'text/css', body: files.style };
    if (path === 'api/state' && last !== '') return { type: 'application/json', body: last };
    if (path !== 'api/why') return undefined;
    const said = explain(searchParams.get('plan') ?? '', searchParams.get('node') ?? '');
    return { type: 'application/json', body: JSON.stringify(said) };
  };
  const subscribe = (response: ServerResponse): void => {
    response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' });
    pages.add(response);
    response.on('close', () => {
      pages.delete(response);
      behind.delete(response);
    });
    response.on('drain', () => void (behind.delete(response) && response.write(eventOf(last))));
    if (last !== '') response.write(eventOf(last));
  };
  return {
    port: own,
    url: `http://127.0.0.1:${own}${place}?token=${token}`,
    publish(state) {
      last = JSON.stringify(state);
      for (const page of pages) {
        // A page that does not read gets the newest state once it reads again, and none between.
        if (page.writableNeedDrain) behind.add(page);
        else page.write(eventOf(last));
      }
    },
    close: async () =>
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The answer has the code 200 even if the action was refused: the request was understood, and the page shows the reason. */
async function answerAction(
  act: (request: ActionRequest) => Promise<ActionResult>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // A connection that breaks has nobody to answer.
  const body = await bodyOf(request).catch(() => undefined);
  const action = body === undefined ? undefined : actionIn(body);
  if (action === undefined) return send(response, 400, 'text/plain', 'this is not an action\n');
  send(response, 200, 'application/json', JSON.stringify(await act(action)));
}

function eventOf(state: string): string {
  return `data: ${state}\n\n`;
}

/** Reads the body of a request. Resolves with undefined if it is longer than an action is. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LONGEST_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, code: number, type: string, body: string): void {
  response.writeHead(code, { ...HEADERS, 'content-type': `${type}; charset=utf-8` }).end(body);
}
